// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// The s-th recorded point of a queue, counted from 1 over the life of a manager; 0 is before everything. Queues
/// run in order, so once point s has ended, all points before it have ended, too.
using QueuePoint = std::uint64_t;

/// A point in each queue: "everything up to here". The runtime expresses every order between commands as a clock.
struct Clock {
  std::array<QueuePoint, queue_count> at{};

  [[nodiscard]] static constexpr Clock point(QueueKind queue, QueuePoint number) {
    Clock clock;
    clock[queue] = number;
    return clock;
  }
  constexpr QueuePoint& operator[](QueueKind queue) { return at[index(queue)]; }
  constexpr QueuePoint operator[](QueueKind queue) const { return at[index(queue)]; }

  constexpr void join(const Clock& other) {
    for (std::size_t queue = 0; queue < queue_count; ++queue) at[queue] = std::max(at[queue], other.at[queue]);
  }
  friend constexpr bool operator==(const Clock&, const Clock&) = default;
};

inline constexpr std::array<QueueKind, queue_count> all_queues{QueueKind::compute, QueueKind::h2d, QueueKind::d2h,
                                                               QueueKind::file_read, QueueKind::file_write};
inline constexpr std::array<QueueKind, device_queue_count> device_queues{QueueKind::compute, QueueKind::h2d,
                                                                         QueueKind::d2h};

}  // namespace swapmm::runtime
