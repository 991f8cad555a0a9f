// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <swapmm/backend/backend.hpp>

namespace swapmm::runtime {

/// The s-th recorded point of a queue, counted from 1 over the life of a manager; 0 is before everything. Queues
/// run in order, so once point s has ended, all points before it have ended, too.
using QueuePoint = std::uint64_t;

inline constexpr auto all_queues = first_queues<queue_count>();
inline constexpr auto base_queues = first_queues<base_queue_count>();
inline constexpr auto device_queues = first_queues<device_queue_count>();

/// Whether the queue copies to the device.
[[nodiscard]] constexpr bool copies_in(QueueKind queue) {
  if (is_of_neighbours(queue)) return queue == neighbour_in_queue(neighbour_path(queue));
  return queue == QueueKind::h2d || queue == QueueKind::staged_h2d;
}

/// A point in each queue: "everything up to here". The runtime expresses every order between commands as a clock.
///
/// Most clocks have points in the first queues only. What is done for each operation takes time for these, and looks at
/// the others only if a clock has points there: compilers keep a few numbers in registers, but not a long array.
class Clock {
 public:
  constexpr Clock() {}  // NOLINT(cppcoreguidelines-pro-type-member-init,modernize-use-equals-default): see others_
  /// A point for each queue, in the order of QueueKind.
  constexpr Clock(const std::array<QueuePoint, queue_count>& points) {  // NOLINT: a literal; see others_
    for (const QueueKind queue : all_queues) {
      if (points[index(queue)] != 0) set(queue, points[index(queue)]);
    }
  }
  constexpr Clock(const Clock& other) : first_(other.first_), has_others_(other.has_others_) {  // NOLINT: see others_
    if (has_others_) [[unlikely]]
      others_ = other.others_;
  }
  constexpr Clock& operator=(const Clock& other) {
    first_ = other.first_;
    has_others_ = other.has_others_;
    if (has_others_) [[unlikely]]
      others_ = other.others_;
    return *this;
  }
  constexpr ~Clock() = default;

  [[nodiscard]] static constexpr Clock point(QueueKind queue, QueuePoint number) {
    Clock clock;
    clock.set(queue, number);
    return clock;
  }

  constexpr QueuePoint operator[](QueueKind queue) const {
    if (is_first(queue)) return first_[index(queue)];
    return has_others_ ? others_[index(queue) - base_queue_count] : 0;
  }
  constexpr void set(QueueKind queue, QueuePoint number) {
    if (is_first(queue)) {
      first_[index(queue)] = number;
      return;
    }
    if (!has_others_) others_.fill(0);
    has_others_ = true;
    others_[index(queue) - base_queue_count] = number;
  }

  constexpr void join(QueueKind queue, QueuePoint number) {
    if (number > (*this)[queue]) set(queue, number);
  }
  [[gnu::always_inline]] constexpr void join(const Clock& other) {
    for (std::size_t i = 0; i < base_queue_count; ++i) first_[i] = std::max(first_[i], other.first_[i]);
    if (other.has_others_) [[unlikely]]
      join_others(other);
  }

  /// False if all points in queues that not every backend has are 0.
  [[nodiscard]] constexpr bool has_others() const { return has_others_; }
  /// Calls visit(queue) for each queue that may have a point other than 0.
  template <class Visit>
  constexpr void for_each(Visit&& visit) const {
    for (const QueueKind queue : base_queues) visit(queue);
    if (!has_others_) [[likely]]
      return;
    for (std::size_t i = base_queue_count; i < queue_count; ++i) visit(all_queues[i]);
  }

  friend constexpr bool operator==(const Clock& a, const Clock& b) {
    return std::ranges::all_of(all_queues, [&](QueueKind queue) { return a[queue] == b[queue]; });
  }

 private:
  static constexpr bool is_first(QueueKind queue) { return index(queue) < base_queue_count; }

  [[gnu::cold, gnu::noinline]] constexpr void join_others(const Clock& other) {
    for (std::size_t i = base_queue_count; i < queue_count; ++i) join(all_queues[i], other[all_queues[i]]);
  }

  std::array<QueuePoint, base_queue_count> first_{};
  bool has_others_ = false;
  std::array<QueuePoint, queue_count - base_queue_count> others_;  // has values only with has_others_
};

}  // namespace swapmm::runtime
