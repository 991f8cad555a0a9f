// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/svg/elements.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <swapmm/base/text/utf8.hpp>

namespace swapmm::svg {
namespace {

constexpr std::string_view ellipsis = "\xE2\x80\xA6";  // U+2026

bool is_control(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character.front());
  return byte < 0x20 || byte == 0x7F;
}

/// Widths of the characters from space to tilde in hundredths of the font's size, for DejaVu Sans, the widest of the
/// usual fonts.
constexpr std::array<unsigned char, 95> ascii_widths = {
    32,  41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34,
    64,  64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54,  //
    100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
    61,  79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50,  //
    50,  62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58, 28, 98, 64, 62,
    64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84};

Length character_width(std::string_view character) {
  if (is_control(character)) return Length{4} * 64;  // \xNN
  if (character.size() == 1) return ascii_widths[static_cast<std::size_t>(character.front() - ' ')];
  return 105;  // the width of the widest scripts
}

/// The first character of a text that is valid UTF-8.
std::string_view first_character(std::string_view text) { return text.substr(0, text::utf8_sequence_length(text, 0)); }

std::string valid(std::string_view text) { return text::to_valid_utf8(text, 4 * text.size()); }

void append_attribute(std::string& out, std::string_view name, Length length) {
  out += ' ';
  out += name;
  out += "=\"";
  append_length(out, length);
  out += '"';
}

}  // namespace

void append_length(std::string& out, Length length) {
  if (length < 0) out += '-';
  const Length size = length < 0 ? -length : length;
  out += std::to_string(size / pixel);
  const Length rest = size % pixel;
  if (rest == 0) return;
  out += '.';
  out += static_cast<char>('0' + rest / 10);
  if (rest % 10 != 0) out += static_cast<char>('0' + rest % 10);
}

std::string escaped(std::string_view text) {
  const std::string characters = valid(text);
  std::string out;
  for (std::string_view rest = characters; !rest.empty();) {
    const std::string_view character = first_character(rest);
    rest.remove_prefix(character.size());
    if (character == "&") {
      out += "&amp;";
    } else if (character == "<") {
      out += "&lt;";
    } else if (character == ">") {
      out += "&gt;";
    } else if (is_control(character)) {
      static constexpr std::string_view digits = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(character.front());
      out += "\\x";
      out += digits[byte >> 4U];
      out += digits[byte & 0xFU];
    } else if (character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") {
      out += "\xEF\xBF\xBD";  // U+FFFE and U+FFFF are valid UTF-8, but not XML characters
    } else {
      out += character;
    }
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t code_points) {
  // A sequence has at most four bytes, so bytes far after the cut need not be examined.
  const bool is_long = text.size() / 4 > code_points;
  std::string characters = valid(is_long ? text.substr(0, 4 * (code_points + 1)) : text);
  std::size_t position = 0;
  std::size_t before_last = 0;
  for (std::size_t i = 0; i < code_points; ++i) {
    if (position == characters.size()) return characters;
    before_last = position;
    position += first_character(std::string_view(characters).substr(position)).size();
  }
  if (position == characters.size()) return characters;
  characters.resize(before_last);
  characters += ellipsis;
  return characters;
}

Length text_width(std::string_view text, Length font_size) {
  const std::string characters = valid(text);
  Length width = 0;
  for (std::string_view rest = characters; !rest.empty();) {
    const std::string_view character = first_character(rest);
    width += character_width(character) * font_size / 100;
    rest.remove_prefix(character.size());
  }
  return width;
}

std::string fitted(std::string_view text, Length width, Length font_size) {
  // No character is narrower than a quarter of the font's size.
  const auto most = static_cast<std::size_t>(std::max<Length>(width, 0) * 4 / font_size + 1);
  std::string characters = shortened(text, most);
  if (text_width(characters, font_size) <= width) return characters;
  const Length room = width - character_width(ellipsis) * font_size / 100;
  Length used = 0;
  std::size_t position = 0;
  std::size_t kept = 0;
  for (;; ++kept) {
    const std::string_view character = first_character(std::string_view(characters).substr(position));
    used += character_width(character) * font_size / 100;
    if (used > room) break;
    position += character.size();
  }
  if (kept < 3) return {};
  characters.resize(position);
  characters += ellipsis;
  return characters;
}

void append_rectangle(std::string& out, const Rectangle& place, std::string_view fill, std::string_view title) {
  out += "<rect";
  append_attribute(out, "x", place.x);
  append_attribute(out, "y", place.y);
  append_attribute(out, "width", place.width);
  append_attribute(out, "height", place.height);
  out += " fill=\"";
  out += fill;
  if (title.empty()) {
    out += "\"/>\n";
    return;
  }
  out += "\"><title>";
  out += escaped(title);
  out += "</title></rect>\n";
}

void append_line(std::string& out, Length x1, Length y1, Length x2, Length y2, std::string_view style) {
  out += "<line";
  append_attribute(out, "x1", x1);
  append_attribute(out, "y1", y1);
  append_attribute(out, "x2", x2);
  append_attribute(out, "y2", y2);
  out += ' ';
  out += style;
  out += "/>\n";
}

void append_text(std::string& out, Length x, Length y, std::string_view text, std::string_view style) {
  out += "<text";
  append_attribute(out, "x", x);
  append_attribute(out, "y", y);
  if (!style.empty()) out += ' ';
  out += style;
  out += '>';
  out += escaped(text);
  out += "</text>\n";
}

}  // namespace swapmm::svg
