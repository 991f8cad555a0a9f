// SPDX-License-Identifier: Apache-2.0
#include "printable.hpp"

#include <cstddef>
#include <limits>

#include <swapmm/base/text/utf8.hpp>

namespace swapmm::cli {

namespace {

/// The length of a character there that is not shown: control characters, and those that change the direction or the
/// line of what follows. 0: it is none.
std::size_t hidden_at(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
  const auto is_in = [](unsigned value, unsigned first, unsigned last) { return value >= first && value <= last; };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  if (byte(0) == 0xC2 && is_in(byte(1), 0x80, 0x9F)) return 2;  // U+0080 to U+009F
  if (byte(0) == 0xD8 && byte(1) == 0x9C) return 2;             // U+061C
  if (byte(0) != 0xE2) return 0;
  if (byte(1) == 0x80 && (is_in(byte(2), 0x8E, 0x8F) || is_in(byte(2), 0xA8, 0xAE))) return 3;  // U+200E, U+2028, ...
  return byte(1) == 0x81 && is_in(byte(2), 0xA6, 0xA9) ? 3 : 0;                                 // U+2066 to U+2069
}

}  // namespace

std::string printable(std::string_view text) {
  const std::string valid = text::to_valid_utf8(text, std::numeric_limits<std::size_t>::max());
  std::string result;
  for (std::size_t at = 0; at < valid.size();) {
    const std::size_t hidden = hidden_at(std::string_view(valid).substr(at));
    result += hidden == 0 ? valid[at] : '?';
    at += hidden == 0 ? 1 : hidden;
  }
  return result;
}

}  // namespace swapmm::cli
