// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// The memory that a value is in while it is not on the device. Only in `host` the host finds it as it is.
enum class Home : std::uint8_t {
  host,
  encoded,  ///< the host's, in an encoded form
  neighbour,
  file
};

/// The queue of copies from there to the device.
[[nodiscard]] constexpr QueueKind in_queue(Home home) {
  switch (home) {
    case Home::host:
    case Home::encoded: break;
    case Home::neighbour: return QueueKind::neighbour_in;
    case Home::file: return QueueKind::staged_h2d;
  }
  return QueueKind::h2d;
}
/// The queue of copies from the device to there.
[[nodiscard]] constexpr QueueKind out_queue(Home home) {
  switch (home) {
    case Home::host:
    case Home::encoded: break;
    case Home::neighbour: return QueueKind::neighbour_out;
    case Home::file: return QueueKind::staged_d2h;
  }
  return QueueKind::d2h;
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
[[nodiscard]] constexpr bool is_filled_slowly(Home home) { return home == Home::neighbour || home == Home::encoded; }

}  // namespace swapmm::runtime
