// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner_choice.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>

namespace swapmm::runtime {

/// Making one plan: everything it needs by value, so that any thread may run it.
struct PlanTask {
  Program program;
  Machine machine;
  PlannerChoice planner = "";
  std::chrono::milliseconds time{0};  ///< for which the planner may search; 0: a set number of steps
  std::optional<Plan> given;          ///< a loaded plan to use in place of the planner's
  std::optional<Result<CompiledPlan>> result;
  std::atomic<bool> taken{false};  ///< somebody is at it
  std::atomic<bool> done{false};

  // Where the result goes.
  std::string name;                    ///< of the iterations
  std::vector<std::uint64_t> members;  ///< sequences of the cycle
  FollowablePtr replaces;              ///< the plan that was off; null: there was none

  /// Plans, validates, compiles. Throws where memory runs out alone, and can then be run again.
  void run();
  /// The same, where no other thread is at it, or was.
  SWAPMM_TEMPLATE_EXPORT void run_once();

 private:
  [[nodiscard]] Result<CompiledPlan> plan_and_adopt() const;
};

/// Checks `plan` against the program and the machine it is to run on, and makes it flat.
[[nodiscard]] Result<CompiledPlan> adopt_plan(Program program, Plan plan, const Machine& machine);

}  // namespace swapmm::runtime
