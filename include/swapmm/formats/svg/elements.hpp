// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// What pictures are made of; not part of the public interface.

namespace swapmm::svg {

/// A position or a size in hundredths of a pixel: integers, so that a picture is the same on every machine.
using Length = std::int64_t;
inline constexpr Length pixel = 100;

/// "12.5": pixels, in as few characters as it takes.
void append_length(std::string& out, Length length);

/// Any text as the content of an XML element. What is not UTF-8, and what XML cannot hold, becomes U+FFFD; a control
/// character is shown as \xNN.
[[nodiscard]] std::string escaped(std::string_view text);

/// `text` as valid UTF-8 of at most so many code points; the last one is an ellipsis where it was cut.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t code_points);

/// As much of `text` as is at most `width` wide in a usual sans-serif font, with an ellipsis where it was cut; nothing
/// where not even three characters of it fit.
[[nodiscard]] std::string fitted(std::string_view text, Length width, Length font_size);

/// How wide `text` is at most in a usual sans-serif font.
[[nodiscard]] Length text_width(std::string_view text, Length font_size);

struct Rectangle {
  Length x = 0;
  Length y = 0;
  Length width = 0;
  Length height = 0;
};

/// A filled rectangle that shows `title` while the pointer is on it; none where that is empty.
void append_rectangle(std::string& out, const Rectangle& place, std::string_view fill, std::string_view title = {});

/// `style` is further attributes, as they stand in the document.
void append_line(std::string& out, Length x1, Length y1, Length x2, Length y2, std::string_view style);

/// One line of text whose baseline is at y.
void append_text(std::string& out, Length x, Length y, std::string_view text, std::string_view style = {});

}  // namespace swapmm::svg
