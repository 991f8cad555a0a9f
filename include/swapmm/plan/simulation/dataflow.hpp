// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/step_times.hpp>

namespace swapmm::simulation {

/// Simulates one iteration after another by the timing rules of docs/formats.md, as a max-plus recurrence: a step
/// starts at the latest of the ends that it waits for. Times are in nanoseconds; at time 0 everything of the iteration
/// before has ended. Times saturate at end_of_time instead of wrapping.
class Dataflow {
 public:
  /// The largest time, 146 years. An end at this time may really be later. The sum of two such times does not overflow.
  static constexpr std::int64_t end_of_time = longest_iteration.count();

  /// The plan must be valid for the trace.
  Dataflow(const Trace& trace, const Plan& plan);
  /// The same, with other durations than those of trace and machine.
  Dataflow(const Trace& trace, const Plan& plan, const StepTimes& times);

  /// Runs the next iteration.
  void advance();

  /// If the clock is far from its beginning, sets it back so that times count from iteration_end() on. The clock then
  /// suffices for any number of iterations, unless a single one takes longer than end_of_time.
  void wind_back();
  /// True if the iteration, with the copies that run after it, was longer than end_of_time. Its times are then
  /// meaningless.
  [[nodiscard]] bool clock_ended() const;

  [[nodiscard]] std::size_t operations() const { return operations_; }
  [[nodiscard]] std::int64_t start(std::size_t step) const { return end_[step] - durations_[step]; }
  [[nodiscard]] std::int64_t end(std::size_t step) const { return end_[step]; }
  [[nodiscard]] std::size_t command_step(std::size_t command) const { return operations_ + command; }
  /// The end of the last operation of the iteration.
  [[nodiscard]] std::int64_t iteration_end() const { return end_[operations_ - 1]; }
  [[nodiscard]] std::int64_t iteration_end_before() const { return end_before_[operations_ - 1]; }
  /// The state that later iterations depend on, relative to iteration_end(). Equal states have equal futures.
  void carried(std::vector<std::int64_t>& times) const;

 private:
  struct Waits {
    std::uint32_t step;
    std::uint32_t first;  // in edges_: first `here` steps of this iteration, then `back` steps of the one before
    std::uint32_t here;
    std::uint32_t back;
  };

  void add_waits(const Plan& plan);
  void put_in_order();

  std::size_t operations_;
  std::int64_t begin_ = 0;               // the start of the iteration, and of steps that wait for nothing
  std::vector<std::int64_t> durations_;  // operations, then commands
  std::vector<std::int64_t> end_;
  std::vector<std::int64_t> end_before_;
  std::vector<Waits> order_;            // the steps, each after those that it waits for in the same iteration
  std::vector<std::uint32_t> edges_;    // steps that others wait for
  std::vector<std::uint32_t> carried_;  // steps that a later iteration waits for
};

}  // namespace swapmm::simulation
