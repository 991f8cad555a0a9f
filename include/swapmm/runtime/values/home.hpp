// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// The memory that a value is in while it is not on the device.
enum class Home : std::uint8_t { host, file };

/// The queue of copies from there to the device.
[[nodiscard]] constexpr QueueKind in_queue(Home home) {
  return home == Home::file ? QueueKind::staged_h2d : QueueKind::h2d;
}
/// The queue of copies from the device to there.
[[nodiscard]] constexpr QueueKind out_queue(Home home) {
  return home == Home::file ? QueueKind::staged_d2h : QueueKind::d2h;
}

}  // namespace swapmm::runtime
