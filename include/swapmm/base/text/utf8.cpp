// SPDX-License-Identifier: Apache-2.0
#include <swapmm/base/text/utf8.hpp>

namespace swapmm::text {
namespace {

/// Table 3-7: after these first bytes the second byte has narrower limits than 80..BF. This excludes overlong forms,
/// surrogates and code points above U+10FFFF.
struct SecondByte {
  unsigned char least = 0x80;
  unsigned char most = 0xBF;
};

SecondByte second_byte_after(unsigned char first) {
  switch (first) {
    case 0xE0: return {0xA0, 0xBF};
    case 0xED: return {0x80, 0x9F};
    case 0xF0: return {0x90, 0xBF};
    case 0xF4: return {0x80, 0x8F};
    default: return {};
  }
}

std::size_t length_by_first_byte(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view text, std::size_t position) {
  if (position >= text.size()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const std::size_t length = length_by_first_byte(byte(0));
  if (length > text.size() - position) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    const SecondByte limits = i == 1 ? second_byte_after(byte(0)) : SecondByte{};
    if (byte(i) < limits.least || byte(i) > limits.most) return 0;
  }
  return length;
}

std::string to_valid_utf8(std::string_view text, std::size_t most_bytes) {
  static constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
  std::string valid;
  std::size_t position = 0;
  while (position < text.size()) {
    const std::size_t length = utf8_sequence_length(text, position);
    const std::string_view next = length == 0 ? replacement : text.substr(position, length);
    if (next.size() > most_bytes - valid.size()) break;
    valid += next;
    position += length == 0 ? 1 : length;
  }
  return valid;
}

}  // namespace swapmm::text
