// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Internal: the elements of SVG pictures.

namespace swapmm::svg {

/// A position or a size in hundredths of a pixel. An integer, so that a picture is the same on every machine.
using Length = std::int64_t;
inline constexpr Length pixel = 100;

/// Appends a length in pixels with as few characters as possible: "12.5".
void append_length(std::string& out, Length length);

/// Escapes any text for the content of an XML element. Bytes that are not UTF-8, and characters that XML cannot
/// contain, become U+FFFD. A control character is shown as \xNN.
[[nodiscard]] std::string escaped(std::string_view text);

/// `text` as valid UTF-8 of at most this many code points. If it was cut, the last one is an ellipsis.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t code_points);

/// As much of `text` as fits into `width` in a usual sans-serif font, with an ellipsis if it was cut. Empty if not even
/// three characters fit.
[[nodiscard]] std::string fitted(std::string_view text, Length width, Length font_size);

/// An upper bound for the width of `text` in a usual sans-serif font.
[[nodiscard]] Length text_width(std::string_view text, Length font_size);

struct Rectangle {
  Length x = 0;
  Length y = 0;
  Length width = 0;
  Length height = 0;
};

/// Appends a filled rectangle that shows `title` while the pointer is on it, unless `title` is empty.
void append_rectangle(std::string& out, const Rectangle& place, std::string_view fill, std::string_view title = {});

/// Appends a line. `style` contains further attributes as they appear in the document.
void append_line(std::string& out, Length x1, Length y1, Length x2, Length y2, std::string_view style);

/// Appends one line of text whose baseline is at y.
void append_text(std::string& out, Length x, Length y, std::string_view text, std::string_view style = {});

}  // namespace swapmm::svg
