// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/planner_choice.hpp>

namespace swapmm {

/// How long the value of a tensor lives, as far as the program says so.
enum class Lifetime : std::uint8_t {
  observed,   ///< until the next iteration, unless each observed iteration starts by writing it whole
  transient,  ///< dead at the end of each iteration, from the first one on
  kept,       ///< survives each iteration, though observed ones start by writing it whole
};
inline constexpr Lifetime persistent = Lifetime::observed;  ///< the default: as the program is seen to use it
inline constexpr Lifetime transient = Lifetime::transient;  ///< Lifetime::transient, to say less at each tensor
inline constexpr Lifetime kept = Lifetime::kept;            ///< Lifetime::kept, likewise

/// How data moves while no plan is followed.
enum class DemandMode : std::uint8_t {
  least_recently_used,  ///< what is not needed stays until its room is
  per_operation,        ///< each bundle in before its operation, out after it: the method's own way of observing
};

/// Of one manager. Environment variables do not change them.
struct Options {
  /// Bytes on the device that the manager may use, taken when it is made. 0: what the backend has for a default. CUDA
  /// takes what is free less a reserve; OpenCL, which cannot ask what is free, has none: required there.
  Bytes device_budget;
  /// Bytes of page-locked host memory; beyond it values lie in pageable memory. Default: no limit.
  Bytes pinned_budget{std::numeric_limits<std::uint64_t>::max()};
  /// Bytes of host memory in all. Default: no limit.
  Bytes host_budget{std::numeric_limits<std::uint64_t>::max()};
  /// Points per queue by which the host may run ahead of the device while no plan is followed. At least 8.
  std::size_t queue_depth = 1024;
  /// Iterations by which the host may run ahead of the device while a plan is followed: 1 to 3.
  std::size_t run_ahead = 2;
  /// How data moves while no plan is followed.
  DemandMode demand_mode = DemandMode::least_recently_used;
  /// Checks what operations really access against what they declare, by poison and hashes. Very slow: copies each
  /// resident tensor before and after each operation, and follows no plan. For debugging.
  bool check_access = false;
  /// Overwrites what tensors lay in with zeros before it goes back to the driver and to the host's allocator: at the
  /// manager's end, with set_budget(), and where kept host memory is given up. Costs a copy of the whole budget to the
  /// device each time, and a block of host memory for as long as the manager lives; nothing while operations run.
  bool scrub = false;
};

/// When plans are made.
enum class Planning : std::uint8_t {
  immediate,  ///< at the start of the iteration after the last observed one, by the calling thread
  deferred,   ///< by whoever takes Scheduler::planning_job(); observation goes on until it is done
};

/// Of one scheduler.
struct SchedulerOptions {
  /// Equal iterations to observe before a plan is made. 0: never plan.
  std::size_t observe = 2;
  /// One of planners() by its name, or any function or object of the program's own that makes a Plan of a Trace and a
  /// Machine: see PlannerChoice. What fails (an unknown name, an exception, a plan that is not valid or another
  /// program's) leaves iterations on demand, with the reason in the report.
  PlannerChoice planner = "best";
  /// When, and by which thread, plans are made.
  Planning planning = Planning::immediate;
  /// Longest cycle of different iterations that becomes one plan. At least 1.
  std::size_t max_period = 4;
  /// Sequences remembered per iteration name; the one unused for longest goes.
  std::size_t max_sequences = 16;
  /// Link speeds to plan with. Default: as observed. The budget and the alignment are always the manager's.
  std::optional<Machine> machine{};
  /// How long a planner that searches may take for a plan, by the clock. 0: a set number of steps, so that the same
  /// observed times give the same plan.
  std::chrono::milliseconds planning_time{0};
  /// Of so many rounds that follow a plan, one has its operations and copies timed. 0: none, and no plan is made anew.
  std::size_t sample_every = 64;
  /// A plan is made anew where its round takes so much more or less than predicted, relative to that: 0.1 is 10 %.
  /// 0: never.
  double replan_above = 0.1;
  /// Rounds of a new plan after which the faster of it and what was before stays. The first two do not count: they
  /// carry the move to it. 0: a new plan stays.
  std::size_t trial_iterations = 4;
};

}  // namespace swapmm
