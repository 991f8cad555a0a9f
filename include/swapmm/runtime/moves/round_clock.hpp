// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/order/timeline.hpp>

namespace swapmm::runtime {

/// Keeps the rounds of a followed plan and the points that they record. Translates a wait of the plan ("the k-th point
/// of the previous round") into points of the queues.
template <Backend B>
class RoundClock {
 public:
  RoundClock(Timeline<B>& timeline, std::size_t run_ahead)
      : timeline_(timeline), run_ahead_(std::clamp<std::size_t>(run_ahead, 1, max_back)) {}

  /// Rounds that the host may be ahead of the device.
  [[nodiscard]] std::size_t run_ahead() const { return run_ahead_; }

  /// Starts a plan with this many points per round, after everything that is queued.
  void start(const std::array<std::uint32_t, device_queue_count>& points) {
    points_ = points;
    start_ = timeline_.everything();
    followed_ = -1;
    begun_ = false;
  }
  /// Begins the next round. Waits for the device only if it is run_ahead rounds behind.
  void begin_round() {
    for (std::size_t back = starts_.size() - 1; back > 0; --back) starts_[back] = starts_[back - 1];
    starts_[0] = timeline_.points();
    recorded_ = {};
    ++followed_;
    begun_ = true;
    if (static_cast<std::size_t>(followed_) >= run_ahead_) {
      timeline_.host_wait(Clock::point(QueueKind::compute, starts_[run_ahead_ - 1][QueueKind::compute]));
    }
  }
  void end_round() { begun_ = false; }
  /// True if a round has begun and not ended.
  [[nodiscard]] bool begun() const { return begun_; }
  /// The number of the current round or, between two rounds, of the next one; counted from 1.
  [[nodiscard]] std::uint64_t round() const { return static_cast<std::uint64_t>(followed_ + (begun_ ? 1 : 2)); }

  /// Counts a point of the plan that was recorded on that queue.
  void recorded(QueueKind queue) { ++recorded_[index(queue)]; }

  /// The `ordinal`-th point of the round that is this many rounds back. If points that are not in the plan were
  /// recorded in between, the result may be a later point, which was queued as well.
  [[nodiscard]] QueuePoint point(QueueKind queue, std::size_t back, std::uint32_t ordinal) const {
    const std::size_t q = index(queue);
    const QueuePoint end = back == 0 ? timeline_.issued(queue) : starts_[back - 1][queue];
    return end - (back == 0 ? recorded_[q] : points_[q]) + ordinal + 1;
  }

  [[nodiscard]] Clock resolve(const Needs& needs) const {
    // The first round comes after everything that was queued before start(), which includes the points of the previous
    // round that it refers to.
    Clock clock = followed_ == 0 ? start_ : Clock{};
    needs.for_each([&](QueueKind queue) {
      const std::size_t q = index(queue);
      if (needs.back[q] <= followed_) {
        clock.join(queue, point(queue, static_cast<std::size_t>(needs.back[q]), needs.ordinal[q]));
      } else {
        clock.join(queue, start_[queue]);  // the plan refers to a round before start()
      }
    });
    return clock;
  }

 private:
  Timeline<B>& timeline_;
  std::size_t run_ahead_;
  std::array<std::uint32_t, device_queue_count> points_{};    // points of the plan per round
  std::array<std::uint32_t, device_queue_count> recorded_{};  // those recorded in this round
  std::int64_t followed_ = -1;                                // rounds begun since start(), minus one
  bool begun_ = false;
  Clock start_;                               // everything queued before start()
  std::array<Clock, max_back + 1> starts_{};  // everything queued before this round, the one before, ...
};

}  // namespace swapmm::runtime
