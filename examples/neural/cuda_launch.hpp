// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many blocks of how many threads a kernel of kernels.h is launched with on a GPU. No part of CUDA is needed here.

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>

namespace neural {

/// Blocks of a grid and threads of a block, in x, y, z.
struct LaunchShape {
  std::array<unsigned, 3> grid{1, 1, 1};
  std::array<unsigned, 3> block{1, 1, 1};
};

namespace launch_limits {
inline constexpr std::size_t threads = 256;          // of our blocks; every GPU takes 1024
inline constexpr std::size_t widest_row = 64;        // of a block, where there is more than one dimension
inline constexpr std::size_t blocks_x = 2147483647;  // of every GPU's grid
inline constexpr std::size_t blocks_yz = 65535;      // in y, and in z
}  // namespace launch_limits

namespace detail {

[[nodiscard]] inline unsigned blocks(std::size_t items, std::size_t per_block, std::size_t limit) {
  const std::size_t count = items / per_block + (items % per_block == 0 ? 0 : 1);
  if (items == 0 || count > limit) {
    throw std::length_error("a launch over " + std::to_string(items) + " items makes " + std::to_string(count) +
                            " blocks, and a grid takes 1 to " + std::to_string(limit));
  }
  return static_cast<unsigned>(count);
}
[[nodiscard]] inline std::size_t row(std::size_t x) { return std::clamp<std::size_t>(x, 1, launch_limits::widest_row); }

}  // namespace detail

/// Whole rows of x, as far as they fit into a block: neighbouring threads touch neighbouring numbers. Each throws
/// std::length_error for more items than a grid has blocks for, and for none.
[[nodiscard]] inline LaunchShape launch_shape(std::size_t x) {
  return {{detail::blocks(x, launch_limits::threads, launch_limits::blocks_x), 1, 1},
          {static_cast<unsigned>(launch_limits::threads), 1, 1}};
}
[[nodiscard]] inline LaunchShape launch_shape(std::size_t x, std::size_t y) {
  const std::size_t width = detail::row(x);
  const std::size_t height = launch_limits::threads / width;
  return {{detail::blocks(x, width, launch_limits::blocks_x), detail::blocks(y, height, launch_limits::blocks_yz), 1},
          {static_cast<unsigned>(width), static_cast<unsigned>(height), 1}};
}
[[nodiscard]] inline LaunchShape launch_shape(std::size_t x, std::size_t y, std::size_t z) {
  const std::size_t width = detail::row(x);
  const std::size_t height = std::clamp<std::size_t>(y, 1, launch_limits::threads / width);
  return {{detail::blocks(x, width, launch_limits::blocks_x), detail::blocks(y, height, launch_limits::blocks_yz),
           detail::blocks(z, 1, launch_limits::blocks_yz)},
          {static_cast<unsigned>(width), static_cast<unsigned>(height), 1}};
}

/// The most of y that launch_shape(x, y) takes: a whole number of blocks.
[[nodiscard]] inline std::size_t most_y(std::size_t x) {
  return launch_limits::blocks_yz * (launch_limits::threads / detail::row(x));
}
/// The most images of that side whose rows launch_shape(x, y, z) takes as z.
[[nodiscard]] inline std::size_t most_images(std::size_t side) {
  return std::max<std::size_t>(launch_limits::blocks_yz / std::max<std::size_t>(side, 1), 1);
}

/// Calls part(first, count) for parts of `most`, and for what is left of `count`.
template <class Part>
void in_parts(std::size_t count, std::size_t most, Part&& part) {
  for (std::size_t first = 0; first < count; first += most) part(first, std::min(most, count - first));
}

/// The same, for work that may be done twice and must not reach beyond the end of a part: where there is more than one,
/// each is a multiple of `block`, for the last begins before the one before it ends. `most` is such a multiple.
template <class Part>
void in_whole_blocks(std::size_t count, std::size_t most, std::size_t block, Part&& part) {
  in_parts(count, most, [&](std::size_t first, std::size_t size) {
    const std::size_t whole = first == 0 ? size : (size + block - 1) / block * block;
    part(first + size - whole, whole);
  });
}

}  // namespace neural
