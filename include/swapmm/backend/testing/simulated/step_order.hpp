// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <swapmm/backend/testing/simulated/options.hpp>
#include <swapmm/backend/testing/simulated/random.hpp>

namespace swapmm::simulated::detail {

/// The queues whose next command could run, by index(QueueKind).
using Ready = std::array<bool, queue_count>;

/// Decides which of the ready queues runs next. During a call of the host it also decides between the queues and the
/// host. For every order except virtual_time.
class StepOrder {
 public:
  explicit StepOrder(const Options& options);

  /// Called when the host enters a call.
  void begin_call();
  /// The queue that runs next, or none if the host continues. At least one queue must be ready. A blocked host never
  /// continues.
  [[nodiscard]] std::optional<QueueKind> next(const Ready& ready, bool host_blocked);
  /// The number of steps of a copy of `size` bytes.
  [[nodiscard]] std::uint8_t pieces(std::uint64_t size);
  [[nodiscard]] bool coin() { return random_.below(2) == 1; }

 private:
  /// Positions in the priorities of PCT: the queues, then the host.
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

  std::uint32_t eagerness_;       // probability of steps inside calls, drawn once per device
  std::uint32_t steps_left_ = 0;  // in the current call

  std::array<std::int64_t, queue_count + 1> priority_{};  // the highest one runs
  std::int64_t lowest_ = 0;
  std::uint32_t pct_window_ = 0;  // number of decisions after which change points are drawn again
  std::uint32_t pct_tick_ = 0;
  std::array<std::uint32_t, 8> change_points_{};
  std::size_t change_point_count_;
};

}  // namespace swapmm::simulated::detail
