// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::v2 {

/// The way from one plan to another between two iterations.
struct Transition {
  /// Allocations, releases and copies, on the machine of the plan that ends. They run one after another, each when the
  /// one before it has ended; their `after`, `before_operations` and `position` are empty.
  std::vector<Command> commands;
  Bytes moved;                       ///< bytes that are copied
  std::chrono::nanoseconds time{0};  ///< the sum of the times of all copies
};

/// Moves values from where `from` leaves them after some iterations to where `to` begins with them. The machine of `to`
/// may lack memories of `from`, or they may be smaller or larger; memories with the same name are the same. When the
/// last command has ended, nothing is left in what is taken away. Every step keeps within the memories of both plans:
/// what grows has grown before the first step.
///
/// Both plans must be valid for the trace. `iterations` says how many iterations `from` has run; 3 stand for any larger
/// number. All its operations and commands have ended. Returns a Problem if there is no room for a step, if no links
/// lead to where a value must be, if the plans divide tensors differently, if a value is needed in a form that nothing
/// has, or if the host still waits for a value that the next iteration was to bring. If the host is without limit, and
/// every memory has links to it and back, only the last three happen. Takes places squared at most.
[[nodiscard]] SWAPMM_EXPORT Result<Transition> make_transition(const Trace& trace, const Plan& from, const Plan& to,
                                                               std::size_t iterations = 3);

/// Checks a transition step by step, by the rules 3 and 4 of docs/formats.md: every copy reads a value that is there,
/// every place lies in its memory and overlaps no other one. At the end, the places are those with which `to` begins,
/// those that are valid hold the newest values, and no value that is needed later is lost. Returns all violations, up
/// to 100. Values that nothing reads need not be anywhere.
[[nodiscard]] SWAPMM_EXPORT std::vector<Violation> check_transition(const Trace& trace, const Plan& from,
                                                                    const Plan& to, const Transition& transition,
                                                                    std::size_t iterations = 3);

/// The same machine without a memory and its links. No engine may compute there, and it is not the host.
[[nodiscard]] SWAPMM_EXPORT Machine without_memory(const Machine& machine, MemoryId memory);

/// A plan for a machine that has less than before, and the way to it.
struct Replan {
  Plan plan;              ///< for the other machine
  Transition transition;  ///< from the plan that runs
};

/// Makes a plan for `machine`, and the transition to it from `now`. If the places of `now` are all within the memories
/// of `machine`, and nothing moves over links that it lacks, the plan stays as it is, and there is nothing to move.
[[nodiscard]] SWAPMM_EXPORT Result<Replan> plan_for_other_memory(std::string_view planner, const Trace& trace,
                                                                 const Plan& now, const Machine& machine,
                                                                 const PlanningOptions& options = {},
                                                                 std::size_t iterations = 3);

}  // namespace swapmm::v2
