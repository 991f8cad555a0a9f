// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>

#include <swapmm/base/text/figures.hpp>

using namespace swapmm;
using namespace swapmm::literals;
using std::chrono::nanoseconds;

TEST_CASE("a figure has the decimals asked for, rounded to the nearest") {
  CHECK(text::fixed_point(0, 1000, 0) == "0");
  CHECK(text::fixed_point(0, 1000, 3) == "0.000");
  CHECK(text::fixed_point(1, 1000, 3) == "0.001");
  CHECK(text::fixed_point(12'345, 1000, 3) == "12.345");
  CHECK(text::fixed_point(12'345, 1000, 1) == "12.3");
  CHECK(text::fixed_point(12'350, 1000, 1) == "12.4");
  CHECK(text::fixed_point(999'999, 1000, 2) == "1000.00");
  CHECK(text::fixed_point(499, 1000, 0) == "0");
  CHECK(text::fixed_point(500, 1000, 0) == "1");
  CHECK(text::fixed_point(1, 3, 5) == "0.33333");
  CHECK(text::fixed_point(2, 3, 5) == "0.66667");
}

TEST_CASE("a figure below zero has its sign, unless nothing is left of it") {
  CHECK(text::fixed_point(-1500, 1000, 3) == "-1.500");
  CHECK(text::fixed_point(-1, 1000, 3) == "-0.001");
  CHECK(text::fixed_point(-1, 1000, 2) == "0.00");
  CHECK(text::fixed_point(-500, 1000, 0) == "-1");
}

TEST_CASE("the largest figures are right to the last digit") {
  CHECK(text::fixed_point(std::numeric_limits<std::int64_t>::max(), 1, 0) == "9223372036854775807");
  CHECK(text::fixed_point(std::numeric_limits<std::int64_t>::max(), 1'000'000'000, 9) == "9223372036.854775807");
  CHECK(text::fixed_point(std::numeric_limits<std::int64_t>::min(), 1, 0) == "-9223372036854775808");
  CHECK(text::size_text(Bytes{std::numeric_limits<std::uint64_t>::max()}) == "16777216.00 TiB");
}

TEST_CASE("times have the unit that fits them") {
  CHECK(text::time_text(nanoseconds{0}) == "0 ns");
  CHECK(text::time_text(nanoseconds{999}) == "999 ns");
  CHECK(text::time_text(nanoseconds{1000}) == "1.000 us");
  CHECK(text::time_text(nanoseconds{999'999}) == "999.999 us");
  CHECK(text::time_text(nanoseconds{1'000'000}) == "1.000 ms");
  CHECK(text::time_text(nanoseconds{1'234'567'890}) == "1.235 s");
  CHECK(text::time_text(nanoseconds{-1'500'000}) == "-1.500 ms");
  CHECK(text::time_text(nanoseconds{1'500'000}, text::time_unit(nanoseconds{2'000'000'000})) == "0.002 s");
}

TEST_CASE("sizes have the unit that fits them") {
  CHECK(text::size_text(0_bytes) == "0 B");
  CHECK(text::size_text(1023_bytes) == "1023 B");
  CHECK(text::size_text(1_KiB) == "1.00 KiB");
  CHECK(text::size_text(1536_KiB) == "1.50 MiB");
  CHECK(text::size_text(3_GiB) == "3.00 GiB");
  CHECK(text::size_text(2048_GiB) == "2.00 TiB");
  CHECK(text::size_text(512_MiB, text::size_unit(4_GiB)) == "0.50 GiB");
}

TEST_CASE("a share is in percent, and a share of nothing is none") {
  CHECK(text::percent_text(nanoseconds{1}, nanoseconds{3}) == "33.3 %");
  CHECK(text::percent_text(nanoseconds{2}, nanoseconds{3}) == "66.7 %");
  CHECK(text::percent_text(nanoseconds{5}, nanoseconds{5}) == "100.0 %");
  CHECK(text::percent_text(nanoseconds{0}, nanoseconds{0}) == "0.0 %");
  CHECK(text::percent_text(nanoseconds{std::int64_t{1} << 61U}, nanoseconds{std::int64_t{1} << 62U}) == "50.0 %");
}
