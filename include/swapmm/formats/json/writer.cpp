// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/json/writer.hpp>

#include <swapmm/base/text/utf8.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::json {

void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text::to_valid_utf8(text, limits::name_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      static constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[byte >> 4U];
      out += digits[byte & 0xFU];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace swapmm::json
