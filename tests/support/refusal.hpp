// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <swapmm/error.hpp>

namespace swapmm::test {

/// How a call of the library ended. Bits, so that several can be allowed.
enum Refusal : unsigned {
  accepted = 0,
  undefined_value = 1,
  dropped_value = 2,
  too_large = 4,
  misused = 8,
  out_of_memory = 16,
  failed = 32,
};

/// What the model says of a call: it must be refused in one of the ways of `must`, or may be in those of `may`.
struct Expected {
  unsigned must = accepted;
  unsigned may = accepted;
};

/// Calls, and says what was thrown; `text` takes what it says, `lost`, if given, the values that it declares lost.
template <class Call>
Refusal attempt(Call&& call, std::string& text, std::vector<TensorName>* lost = nullptr) {
  if (lost != nullptr) lost->clear();
  try {
    call();
    return accepted;
  } catch (const UndefinedValue& error) {
    text = error.what();
    return undefined_value;
  } catch (const DroppedValue& error) {
    text = error.what();
    if (lost != nullptr) *lost = error.lost();
    return dropped_value;
  } catch (const BundleTooLarge& error) {
    text = error.what();
    return too_large;
  } catch (const UsageError& error) {
    text = error.what();
    return misused;
  } catch (const OutOfMemory& error) {
    text = error.what();
    return out_of_memory;
  } catch (const std::exception& error) {
    text = error.what();
    return failed;
  }
}

}  // namespace swapmm::test
