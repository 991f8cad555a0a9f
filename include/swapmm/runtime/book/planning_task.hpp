// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner_choice.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/book/given_plan.hpp>
#include <swapmm/runtime/book/known_machine.hpp>
#include <swapmm/runtime/joint/link_group.hpp>

namespace swapmm::runtime {

/// How long a planner may search.
struct PlanningTime {
  std::chrono::milliseconds limit{0};  ///< 0: none
  bool keeps_to_steps = true;          ///< the fixed number of steps ends it earlier
};

/// The task of making one plan. It holds everything it needs by value, so any thread may run it.
struct PlanTask {
  Program program;
  KnownMachine machine;
  PlannerChoice planner = "";
  bool allows_replays = true;                 ///< the plan may run operations again
  PlanningTime time{};                        ///< for the planner's search
  std::optional<GivenPlan> given;             ///< to be used instead of the planner's
  std::shared_ptr<JointQuestion> question{};  ///< the task is to answer this: then it has no result of its own
  std::optional<Result<CompiledPlan>> result;
  std::atomic<bool> taken{false};  ///< a thread is running it, or has run it
  std::atomic<bool> done{false};

  // Where the result goes.
  std::string name;                    ///< iteration name
  std::vector<std::uint64_t> members;  ///< sequence ids of the cycle
  FollowablePtr replaces;              ///< the plan whose prediction was off; null: there is none

  /// Plans, validates and compiles. Throws only if memory runs out; the task can then be run again.
  void run();
  /// Calls run() unless another thread is running the task or has finished it.
  SWAPMM_TEMPLATE_EXPORT void run_once();

 private:
  [[nodiscard]] PlanningOptions within_time() const;
  [[nodiscard]] Result<CompiledPlan> plan_and_adopt() const;
  [[nodiscard]] Result<CompiledPlan> adopt_given() const;
  [[nodiscard]] std::optional<Result<CompiledPlan>> plan_with_replays(const Machine& one,
                                                                      const PlanningOptions& options) const;
};

/// Checks `plan` against the program and the machine it will run on, and compiles it.
[[nodiscard]] Result<CompiledPlan> adopt_plan(Program program, Plan plan, const Machine& machine);
/// The same for a plan that may run operations again. `plan` is for the program with these written out.
[[nodiscard]] Result<CompiledPlan> adopt_plan(const Program& program, Plan plan, std::span<const Replay> replays,
                                              const Machine& machine);

}  // namespace swapmm::runtime
