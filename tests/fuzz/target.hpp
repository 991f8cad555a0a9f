// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// What the targets share. Each defines LLVMFuzzerTestOneInput: libFuzzer brings a main, and replay.cpp another one.

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace swapmm::fuzz {

/// Ends the program where something does not hold, so that the fuzzer keeps the input.
inline void expect(bool holds, std::string_view what, const std::string& details = {}) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n%s\n", static_cast<int>(what.size()), what.data(), details.c_str());
  std::abort();
}

/// An error is one line for a person: it says something, and cannot disturb a terminal or fill it.
inline void expect_clear(const std::string& message) {
  expect(!message.empty(), "an error says something");
  expect(message.size() <= 2000, "an error is short", message);
  for (const char c : message) {
    expect(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F, "an error has no control characters", message);
  }
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};  // NOLINT(*-reinterpret-cast): bytes as the text they are
}

}  // namespace swapmm::fuzz
