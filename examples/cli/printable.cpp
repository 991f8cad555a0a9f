// SPDX-License-Identifier: Apache-2.0
#include "printable.hpp"

#include <cstddef>
#include <limits>

#include <swapmm/base/text/utf8.hpp>

namespace swapmm::cli {

std::string printable(std::string_view text) {
  const std::string valid = text::to_valid_utf8(text, std::numeric_limits<std::size_t>::max());
  std::string result;
  for (std::size_t at = 0; at < valid.size(); ++at) {
    const auto byte = static_cast<unsigned char>(valid[at]);
    // U+0080 to U+009F are two bytes: C2 and the code.
    const auto next = static_cast<unsigned char>(at + 1 < valid.size() ? valid[at + 1] : 0);
    const bool is_second_set = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    result += byte < 0x20 || byte == 0x7F || is_second_set ? '?' : valid[at];
    if (is_second_set) ++at;
  }
  return result;
}

}  // namespace swapmm::cli
