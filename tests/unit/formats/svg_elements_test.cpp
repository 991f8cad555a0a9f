// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include <swapmm/formats/svg/elements.hpp>

using namespace swapmm::svg;
using namespace std::string_literals;

namespace {

const std::string ellipsis = "\xE2\x80\xA6";
const std::string replaced = "\xEF\xBF\xBD";
constexpr Length ten_pixels = 10 * pixel;

std::string length_text(Length length) {
  std::string text;
  append_length(text, length);
  return text;
}

}  // namespace

TEST_CASE("a length is written in pixels, without needless zeros") {
  CHECK(length_text(0) == "0");
  CHECK(length_text(100) == "1");
  CHECK(length_text(150) == "1.5");
  CHECK(length_text(105) == "1.05");
  CHECK(length_text(5) == "0.05");
  CHECK(length_text(-150) == "-1.5");
  CHECK(length_text(-5) == "-0.05");
}

TEST_CASE("text becomes what XML can hold") {
  CHECK(escaped("a<b>&\"c'") == "a&lt;b&gt;&amp;\"c'");
  CHECK(escaped("\0\t\n\x1F\x7F"s) == "\\x00\\x09\\x0A\\x1F\\x7F");
  CHECK(escaped("\xC3\xA4\xFF\xC3") == "\xC3\xA4" + replaced + replaced);
  CHECK(escaped("\xEF\xBF\xBD\xEF\xBF\xBE\xEF\xBF\xBF") == replaced + replaced + replaced);
  CHECK(escaped("") == "");
}

TEST_CASE("text is shortened by code points, and says so") {
  CHECK(shortened("abcd", 4) == "abcd");
  CHECK(shortened("abcd", 5) == "abcd");
  CHECK(shortened("abcde", 4) == "abc" + ellipsis);
  CHECK(shortened("\xC3\xA4\xE5\xA4\xA7\xF0\x9F\x98\x80z", 3) == "\xC3\xA4\xE5\xA4\xA7" + ellipsis);
  CHECK(shortened("\xFF\xFF\xFF", 2) == replaced + ellipsis);
  CHECK(shortened(std::string(1'000'000, 'a'), 3) == "aa" + ellipsis);
}

TEST_CASE("text is cut to a width, and left out where too little of it fits") {
  // A digit is 6.4 pixels wide in a font of ten, an ellipsis 10.5.
  CHECK(text_width("123", ten_pixels) == 3 * 640);
  CHECK(fitted("12345", 5 * 640, ten_pixels) == "12345");
  CHECK(fitted("12345", 5 * 640 - 1, ten_pixels) == "123" + ellipsis);
  CHECK(fitted("12345", 3 * 640 + 1050, ten_pixels) == "123" + ellipsis);
  CHECK(fitted("12345", 3 * 640 + 1049, ten_pixels).empty());
  CHECK(fitted("1", 640, ten_pixels) == "1");
  CHECK(fitted("1", 639, ten_pixels).empty());
  CHECK(fitted("1", -5, ten_pixels).empty());
  CHECK(fitted("", 100, ten_pixels).empty());
  CHECK(fitted(std::string(1'000'000, 'i'), 100 * 280, ten_pixels) == std::string(96, 'i') + ellipsis);
}

TEST_CASE("control characters are as wide as what stands for them") {
  CHECK(text_width("\x01", ten_pixels) >= text_width("\\x01", ten_pixels) * 9 / 10);
}

TEST_CASE("a rectangle has a title where there is one") {
  std::string out;
  append_rectangle(out, {100, 250, 1000, 50}, "#fff");
  CHECK(out == "<rect x=\"1\" y=\"2.5\" width=\"10\" height=\"0.5\" fill=\"#fff\"/>\n");
  out.clear();
  append_rectangle(out, {0, 0, 100, 100}, "#000", "a & b");
  CHECK(out == "<rect x=\"0\" y=\"0\" width=\"1\" height=\"1\" fill=\"#000\"><title>a &amp; b</title></rect>\n");
}
