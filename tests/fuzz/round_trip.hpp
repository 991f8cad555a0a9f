// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "fuzz/target.hpp"

namespace swapmm::fuzz {

template <class Outcome>
std::string message_of(const Outcome& outcome) {
  return outcome ? std::string{} : outcome.problem().message;
}

/// Reads a text from memory and from a stream: both give the same, a thing that comes back from its own text, or an
/// error. Returns what the reader returned.
template <class Read, class Write>
auto read_both_ways(std::string_view text, Read read, Write write) {
  auto outcome = read(text);
  std::istringstream in{std::string(text)};
  const auto streamed = read(in);
  expect(outcome.has_value() == streamed.has_value(), "memory and stream give the same",
         message_of(outcome) + message_of(streamed));
  if (!outcome) {
    expect_clear(outcome.problem().message);
    expect_clear(streamed.problem().message);
    return outcome;
  }
  expect(*outcome == *streamed, "memory and stream give the same");
  std::ostringstream out;
  write(out, *outcome);
  const std::string written = out.str();
  const auto again = read(std::string_view(written));
  expect(again.has_value(), "what was written can be read", message_of(again));
  expect(*again == *outcome, "what was written is read as it was", written);
  return outcome;
}

}  // namespace swapmm::fuzz
