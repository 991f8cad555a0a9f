// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <limits>

#include <swapmm/base/figures.hpp>

using namespace swapmm;
using namespace swapmm::literals;
using std::chrono::nanoseconds;

TEST_CASE("a figure has the decimals asked for, rounded to the nearest") {
  CHECK(fixed_point(0, 1000, 0) == "0");
  CHECK(fixed_point(0, 1000, 3) == "0.000");
  CHECK(fixed_point(1, 1000, 3) == "0.001");
  CHECK(fixed_point(12'345, 1000, 3) == "12.345");
  CHECK(fixed_point(12'345, 1000, 1) == "12.3");
  CHECK(fixed_point(12'350, 1000, 1) == "12.4");
  CHECK(fixed_point(999'999, 1000, 2) == "1000.00");
  CHECK(fixed_point(499, 1000, 0) == "0");
  CHECK(fixed_point(500, 1000, 0) == "1");
  CHECK(fixed_point(1, 3, 5) == "0.33333");
  CHECK(fixed_point(2, 3, 5) == "0.66667");
}

TEST_CASE("a figure below zero has its sign, unless nothing is left of it") {
  CHECK(fixed_point(-1500, 1000, 3) == "-1.500");
  CHECK(fixed_point(-1, 1000, 3) == "-0.001");
  CHECK(fixed_point(-1, 1000, 2) == "0.00");
  CHECK(fixed_point(-500, 1000, 0) == "-1");
}

TEST_CASE("the largest figures are right to the last digit") {
  CHECK(fixed_point(std::numeric_limits<std::int64_t>::max(), 1, 0) == "9223372036854775807");
  CHECK(fixed_point(std::numeric_limits<std::int64_t>::max(), 1'000'000'000, 9) == "9223372036.854775807");
  CHECK(fixed_point(std::numeric_limits<std::int64_t>::min(), 1, 0) == "-9223372036854775808");
  CHECK(size_text(Bytes{std::numeric_limits<std::uint64_t>::max()}) == "16777216.00 TiB");
}

TEST_CASE("times have the unit that fits them") {
  CHECK(time_text(nanoseconds{0}) == "0 ns");
  CHECK(time_text(nanoseconds{999}) == "999 ns");
  CHECK(time_text(nanoseconds{1000}) == "1.000 us");
  CHECK(time_text(nanoseconds{999'999}) == "999.999 us");
  CHECK(time_text(nanoseconds{1'000'000}) == "1.000 ms");
  CHECK(time_text(nanoseconds{1'234'567'890}) == "1.235 s");
  CHECK(time_text(nanoseconds{-1'500'000}) == "-1.500 ms");
  CHECK(time_text(nanoseconds{1'500'000}, time_unit(nanoseconds{2'000'000'000})) == "0.002 s");
}

TEST_CASE("sizes have the unit that fits them") {
  CHECK(size_text(0_bytes) == "0 B");
  CHECK(size_text(1023_bytes) == "1023 B");
  CHECK(size_text(1_KiB) == "1.00 KiB");
  CHECK(size_text(1536_KiB) == "1.50 MiB");
  CHECK(size_text(3_GiB) == "3.00 GiB");
  CHECK(size_text(2048_GiB) == "2.00 TiB");
  CHECK(size_text(512_MiB, size_unit(4_GiB)) == "0.50 GiB");
}

TEST_CASE("a share is in percent, and a share of nothing is none") {
  CHECK(percent_text(nanoseconds{1}, nanoseconds{3}) == "33.3 %");
  CHECK(percent_text(nanoseconds{2}, nanoseconds{3}) == "66.7 %");
  CHECK(percent_text(nanoseconds{5}, nanoseconds{5}) == "100.0 %");
  CHECK(percent_text(nanoseconds{0}, nanoseconds{0}) == "0.0 %");
  CHECK(percent_text(nanoseconds{std::int64_t{1} << 61U}, nanoseconds{std::int64_t{1} << 62U}) == "50.0 %");
}
