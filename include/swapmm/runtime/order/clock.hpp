// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// The s-th recorded point of a queue, counted from 1 over the life of a manager; 0 is before everything. Queues
/// run in order, so once point s has ended, all before it have too.
using Sequence = std::uint64_t;

/// A point in each queue: "everything up to here". The one way in which the runtime says what must come first.
struct Clock {
  std::array<Sequence, queue_count> at{};

  [[nodiscard]] static constexpr Clock point(QueueKind queue, Sequence sequence) {
    Clock clock;
    clock[queue] = sequence;
    return clock;
  }
  constexpr Sequence& operator[](QueueKind queue) { return at[index(queue)]; }
  constexpr Sequence operator[](QueueKind queue) const { return at[index(queue)]; }

  constexpr void join(const Clock& other) {
    for (std::size_t queue = 0; queue < queue_count; ++queue) at[queue] = std::max(at[queue], other.at[queue]);
  }
  friend constexpr bool operator==(const Clock&, const Clock&) = default;
};

inline constexpr std::array<QueueKind, queue_count> all_queues{QueueKind::compute, QueueKind::h2d, QueueKind::d2h};

}  // namespace swapmm::runtime
