// SPDX-License-Identifier: Apache-2.0
// Blocks and threads of the launches on CUDA: every item has its thread, and no limit of a GPU is passed.
#include "neural/cuda_launch.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

using neural::launch_shape;
using neural::LaunchShape;
using Counts = std::array<unsigned, 3>;

constexpr std::size_t two_31 = std::size_t{1} << 31U;
constexpr std::array<std::size_t, 14> extents{1,   2,   3,    10,    31,        64,        65,
                                              256, 257, 1000, 65535, 65536 * 4, 100000000, two_31};

bool keeps_limits(const LaunchShape& shape) {
  const auto [gx, gy, gz] = shape.grid;
  const auto [bx, by, bz] = shape.block;
  return gx >= 1 && gx <= 2147483647U && gy >= 1 && gy <= 65535 && gz >= 1 && gz <= 65535 && bx >= 1 && by >= 1 &&
         bz == 1 && std::size_t{bx} * by * bz <= 1024;
}
// All items, and less than a block more.
bool covers(const LaunchShape& shape, std::size_t dimension, std::size_t items) {
  const std::size_t threads = std::size_t{shape.grid[dimension]} * shape.block[dimension];
  return threads >= items && threads - items < shape.block[dimension];
}

// Each number of [0, count) is in a part; parts that overlap count once.
std::size_t covered(const std::vector<std::pair<std::size_t, std::size_t>>& parts) {
  std::size_t end = 0;
  for (const auto& [first, count] : parts) {
    if (first > end) return 0;
    end = first + count;
  }
  return end;
}

}  // namespace

TEST_CASE("launches over one, two and three dimensions have a thread for each item") {
  for (const std::size_t x : extents) {
    CAPTURE(x);
    CHECK(keeps_limits(launch_shape(x)));
    CHECK(covers(launch_shape(x), 0, x));
    for (const std::size_t y : extents) {
      CAPTURE(y);
      if (y <= neural::most_y(x)) {
        CHECK(keeps_limits(launch_shape(x, y)));
        CHECK(covers(launch_shape(x, y), 0, x));
        CHECK(covers(launch_shape(x, y), 1, y));
      } else {
        CHECK_THROWS_AS((void)launch_shape(x, y), std::length_error);
      }
      for (const std::size_t z : {1U, 28U, 65535U}) {
        if (y > 65535) continue;  // no image is so wide
        const LaunchShape shape = launch_shape(x, y, z);
        CHECK(keeps_limits(shape));
        CHECK(covers(shape, 0, x));
        CHECK(covers(shape, 1, y));
        CHECK(covers(shape, 2, z));
      }
    }
  }
}

TEST_CASE("blocks are whole rows of channels, of 256 threads where there are as many items") {
  CHECK(launch_shape(1000).grid == Counts{4, 1, 1});
  CHECK(launch_shape(1000).block == Counts{256, 1, 1});
  CHECK(launch_shape(32, 100352).block == Counts{32, 8, 1});
  CHECK(launch_shape(32, 100352).grid == Counts{1, 12544, 1});
  CHECK(launch_shape(1, 784).block == Counts{1, 256, 1});
  CHECK(launch_shape(10, 5).block == Counts{10, 25, 1});
  CHECK(launch_shape(100, 5).grid == Counts{2, 2, 1});
  CHECK(launch_shape(32, 14, 1792).block == Counts{32, 8, 1});
  CHECK(launch_shape(32, 14, 1792).grid == Counts{1, 2, 1792});
  CHECK(launch_shape(1, 28, 28).block == Counts{1, 28, 1});
}

TEST_CASE("a launch over nothing, or over more than a grid takes, is refused") {
  CHECK_THROWS_AS((void)launch_shape(0), std::length_error);
  CHECK_THROWS_AS((void)launch_shape(3, 0), std::length_error);
  CHECK_THROWS_AS((void)launch_shape(3, 3, 0), std::length_error);
  CHECK_THROWS_AS((void)launch_shape(3, 3, 65536), std::length_error);
  CHECK_THROWS_AS((void)launch_shape(two_31 * 256), std::length_error);
  CHECK_THROWS_AS((void)launch_shape(std::numeric_limits<std::size_t>::max()), std::length_error);
  CHECK_THROWS_WITH_AS((void)launch_shape(64, 262141),
                       "a launch over 262141 items makes 65536 blocks, and a grid takes 1 to 65535", std::length_error);
}

TEST_CASE("parts cover what they divide, and each fits into a launch") {
  for (const std::size_t x : extents) {
    for (const std::size_t y : extents) {
      if (y / neural::most_y(x) > 10000) continue;
      CAPTURE(x);
      CAPTURE(y);
      const std::size_t block = launch_shape(x, 1).block[1];
      std::vector<std::pair<std::size_t, std::size_t>> parts;
      std::vector<std::pair<std::size_t, std::size_t>> whole;
      neural::in_parts(y, neural::most_y(x), [&](std::size_t first, std::size_t count) {
        CHECK(keeps_limits(launch_shape(x, count)));
        parts.emplace_back(first, count);
      });
      neural::in_whole_blocks(y, neural::most_y(x), block, [&](std::size_t first, std::size_t count) {
        CHECK(keeps_limits(launch_shape(x, count)));
        whole.emplace_back(first, count);
      });
      CHECK(covered(parts) == y);
      CHECK(covered(whole) == y);
      // Threads that blocks have too many reach beyond a part's end, and so beyond the memory's: there are none.
      for (const auto& [first, count] : whole) CHECK((whole.size() == 1 || count % block == 0));
    }
  }
  CHECK(neural::most_images(28) * 28 <= 65535);
  CHECK(neural::most_images(1) == 65535);
  CHECK(neural::most_images(65535) == 1);
}
