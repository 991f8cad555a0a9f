// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <swapmm/base/text/utf8.hpp>

using namespace swapmm;

TEST_CASE("no text of UTF-8 begins with F5, and none is above U+10FFFF") {
  CHECK(text::to_valid_utf8("\xF5\x80\x80\x80", 100) == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(text::to_valid_utf8("\xF4\x8F\xBF\xBF", 100) == "\xF4\x8F\xBF\xBF");
  CHECK(text::to_valid_utf8("\xF4\x90\x80\x80", 100) != "\xF4\x90\x80\x80");
}
