// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::planning {

/// Changes to a choice of ways, at random, the same ones in each run. One change is about one absence: a value that is
/// not needed from one of its uses to the next. Its ways are left out; or its operation runs again, alone or with a
/// chain of those before it; or it is encoded.
class WayChanges {
 public:
  /// Refers to all arguments. The case is that of without_ways(trace).
  WayChanges(const Trace& trace, const ValueHistory& history, const PlanningCase& planning);

  /// Whether no value can be made again or encoded.
  [[nodiscard]] bool empty() const { return absences_.empty(); }
  /// One change, or two or three at once. Replays are in the order in which they run. `empty()` is false.
  [[nodiscard]] WaysBack change(WaysBack ways);

 private:
  struct Absence {
    TensorId tensor{};
    std::uint32_t after = 0;             ///< the last operation that uses the value before
    std::uint32_t before = 0;            ///< the next one
    std::vector<std::uint32_t> group{};  ///< what makes it again (ValueHistory::group())
    bool may_be_coded = false;
  };

  [[nodiscard]] std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_() % end); }
  void change_one(WaysBack& ways);
  /// Returns whether there were any.
  [[nodiscard]] static bool leave_out(WaysBack& ways, const Absence& absence);
  void run_again(WaysBack& ways, const std::vector<std::uint32_t>& group, std::uint32_t before, int depth) const;
  /// Whether an operation uses the tensor at or right before this one.
  [[nodiscard]] bool is_used_near(TensorId tensor, std::uint32_t operation) const;

  const Trace& trace_;
  const ValueHistory& history_;
  const PlanningCase& planning_;
  std::vector<Absence> absences_;
  std::mt19937 random_;
};

}  // namespace swapmm::planning
