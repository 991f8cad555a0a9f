// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>

#include <swapmm/plan/problem/share.hpp>

using swapmm::planning::share_of;

TEST_CASE("a share of a whole is rounded down, and any number can be the part") {
  CHECK(share_of(100, 0.5) == 50);
  CHECK(share_of(100, 0.999) == 99);
  CHECK(share_of(100, 2.0) == 200);
  CHECK(share_of(100, 0.0) == 0);
  CHECK(share_of(100, -3.0) == 0);
  CHECK(share_of(100, std::numeric_limits<double>::quiet_NaN()) == 0);
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  CHECK(share_of(100, std::numeric_limits<double>::infinity()) == most);
  CHECK(share_of(std::numeric_limits<std::uint64_t>::max(), 1.0) == most);
  CHECK(share_of(100, -std::numeric_limits<double>::infinity()) == 0);
}
