// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// What the tests of text formats share.

namespace swapmm::test {

template <class Write, class Thing>
std::string written(Write write, const Thing& thing) {
  std::ostringstream out;
  write(out, thing);
  return out.str();
}

/// One change to a good text, and what must be said of the outcome.
struct BadText {
  std::string from;
  std::string to;
  std::string message;
};

inline std::string changed(const std::string& text, const BadText& change) {
  const std::size_t position = text.find(change.from);
  REQUIRE_MESSAGE(position != std::string::npos, change.from);
  return text.substr(0, position) + change.to + text.substr(position + change.from.size());
}

/// Reads each changed text, from memory and from a stream, and expects exactly that message.
template <class Read>
void expect_refused(const std::string& good, const std::vector<BadText>& table, Read read) {
  for (const BadText& change : table) {
    const std::string text = changed(good, change);
    CAPTURE(text);
    const auto from_text = read(std::string_view(text));
    REQUIRE_FALSE(from_text.has_value());
    CHECK(from_text.problem().message == change.message);
    std::istringstream in(text);
    const auto from_stream = read(in);
    REQUIRE_FALSE(from_stream.has_value());
    CHECK(from_stream.problem().message == change.message);
  }
}

}  // namespace swapmm::test
