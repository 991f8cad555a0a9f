// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <swapmm/backend/testing/simulated/options.hpp>
#include <swapmm/backend/testing/simulated/random.hpp>

namespace swapmm::simulated::detail {

/// Queues whose next command could move, by index(QueueKind).
using Ready = std::array<bool, queue_count>;

/// Decides between the queues that could move, and while the host is inside a call also between them and the
/// host. For every order but virtual_time.
class StepOrder {
 public:
  explicit StepOrder(const Options& options);

  /// The host enters a call.
  void begin_call();
  /// The queue that moves next, or none: the host goes on. At least one is ready. A blocked host never goes on.
  [[nodiscard]] std::optional<QueueKind> next(const Ready& ready, bool host_blocked);
  /// Into how many steps a copy of `size` bytes is cut.
  [[nodiscard]] std::uint8_t pieces(std::uint64_t size);
  [[nodiscard]] bool coin() { return random_.below(2) == 1; }

 private:
  /// Who stands where in the priorities of PCT: the queues, then the host.
  static constexpr std::size_t host = queue_count;

  std::optional<QueueKind> next_by_priority(const Ready& ready, bool host_blocked);
  std::optional<QueueKind> next_by_choice(const Ready& ready, bool host_blocked);
  QueueKind any_of(const Ready& ready);
  void draw_change_points();

  Order order_;
  QueueKind starved_;
  Choices* choices_;
  int max_pieces_;
  Random random_;

  std::uint32_t eagerness_;       // how readily steps happen inside calls, drawn once per device
  std::uint32_t steps_left_ = 0;  // in the call under way

  std::array<std::int64_t, queue_count + 1> priority_{};  // the highest one moves
  std::int64_t lowest_ = 0;
  std::uint32_t pct_window_ = 0;  // change points are drawn anew for so many decisions
  std::uint32_t pct_tick_ = 0;
  std::array<std::uint32_t, 8> change_points_{};
  std::size_t change_point_count_;
};

}  // namespace swapmm::simulated::detail
