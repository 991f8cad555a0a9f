// SPDX-License-Identifier: Apache-2.0
#pragma once

// Operations on tensors of 32-bit numbers as plain loops. On a device, run_affine(), run_blend() and run_grow() do the
// same: each backend's tests define them, with (manager, form, name, tensors...), for the programs of
// support/chain.hpp.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swapmm::test {

using Number = std::uint32_t;
using Numbers = std::vector<Number>;

/// Both ways in which an operation hands its work in.
enum class Form : std::uint8_t {
  plain,       ///< (auto& op)
  with_event,  ///< (auto& op, WaitList) -> event
};

/// Set by run_affine() and its kin when the callable of their operation begins. Who wants to know how far an operation
/// came sets it to false before.
inline bool callable_began = false;

inline void affine(const Numbers& from, Numbers& to, Number added) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = 3U * from[i] + added;
}
inline void blend(const Numbers& a, const Numbers& b, Numbers& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = 3U * a[i] + 5U * b[i] + static_cast<Number>(i);
}
inline void grow(const Numbers& by, Numbers& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = 7U * to[i] + by[i];
}

/// Numbers that tell one seed and one position from another.
inline Numbers numbers(std::size_t count, Number seed) {
  Numbers result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = seed * 2654435761U + static_cast<Number>(i) * 40503U;
  return result;
}

}  // namespace swapmm::test
