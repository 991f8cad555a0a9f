// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>

namespace swapmm::runtime {

/// The memory that a value is in while it is not on the device. Only in `host` the host finds it as it is.
enum class Home : std::uint8_t {
  host,
  encoded,  ///< the host's, in an encoded form
  file,
  neighbour,  ///< path 0; see neighbour_home()
  neighbour_2,
  neighbour_3
};

/// The neighbours on that path.
[[nodiscard]] constexpr Home neighbour_home(std::size_t path) {
  return static_cast<Home>(static_cast<std::size_t>(Home::neighbour) + path);
}
[[nodiscard]] constexpr bool is_neighbour(Home home) { return home >= Home::neighbour; }
/// The path of a home that is_neighbour().
[[nodiscard]] constexpr std::size_t neighbour_path(Home home) {
  return static_cast<std::size_t>(home) - static_cast<std::size_t>(Home::neighbour);
}

/// Bytes of the neighbours on each path; 0 where there are none.
using NeighbourBytes = std::array<Bytes, neighbour_path_count>;

/// The paths of neighbours in an order.
using NeighbourOrder = std::array<std::size_t, neighbour_path_count>;
inline constexpr NeighbourOrder neighbours_as_listed{0, 1, 2};

/// The paths by the time of a copy, fastest first. Where times differ by a fifth or less, the order of the options
/// holds: they are measured, and those of neighbours that are alike are never equal.
[[nodiscard]] constexpr NeighbourOrder fastest_first(
    const std::array<std::chrono::nanoseconds, neighbour_path_count>& times) {
  NeighbourOrder order = neighbours_as_listed;
  for (auto at = order.begin(); at != order.end(); ++at) {
    const auto fastest =
        *std::min_element(at, order.end(), [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
    const auto next =
        std::find_if(at, order.end(), [&](std::size_t path) { return 5 * times[path] <= 6 * times[fastest]; });
    std::rotate(at, next, next + 1);
  }
  return order;
}

/// The queue of copies from there to the device.
[[nodiscard]] constexpr QueueKind in_queue(Home home) {
  if (is_neighbour(home)) return neighbour_in_queue(neighbour_path(home));
  return home == Home::file ? QueueKind::staged_h2d : QueueKind::h2d;
}
/// The queue of copies from the device to there.
[[nodiscard]] constexpr QueueKind out_queue(Home home) {
  if (is_neighbour(home)) return neighbour_out_queue(neighbour_path(home));
  return home == Home::file ? QueueKind::staged_d2h : QueueKind::d2h;
}
/// The queue whose commands read bytes there.
[[nodiscard]] constexpr QueueKind reading_queue(Home home) {
  return home == Home::file ? QueueKind::file_read : in_queue(home);
}
/// The queue whose commands write bytes there.
[[nodiscard]] constexpr QueueKind writing_queue(Home home) {
  return home == Home::file ? QueueKind::file_write : out_queue(home);
}

/// Whether the host waits for a copy, or for the device, to fill bytes there: another memory suits better what it fills
/// again and again.
[[nodiscard]] constexpr bool is_filled_slowly(Home home) { return is_neighbour(home) || home == Home::encoded; }

}  // namespace swapmm::runtime
