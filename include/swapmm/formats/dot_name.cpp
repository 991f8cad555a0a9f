// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/dot_name.hpp>

#include <swapmm/base/text/utf8.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::dot {

std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : text::to_valid_utf8(name, limits::name_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '&') {
      text += "&amp;";
    } else if (byte < 0x20 || byte == 0x7F) {
      static constexpr std::string_view digits = "0123456789ABCDEF";
      text += "\\\\x";
      text += digits[byte >> 4U];
      text += digits[byte & 0xFU];
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace swapmm::dot
