// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// Time for which an operation keeps the computation waiting, as the plan predicts.
struct StallSummary {
  std::string what;                  ///< operation, and the copy that it waits for
  std::chrono::nanoseconds time{0};  ///< in each cycle
};

/// What became of a plan.
enum class PlanState : std::uint8_t {
  on_trial,  ///< followed, and measured against what was before
  settled,   ///< followed
  left,      ///< on demand is faster: not followed
};

/// What a plan that is known is for, what it predicts, and what was measured.
struct PlanSummary {
  std::string iteration;                 ///< name
  std::string planner;                   ///< who made it
  std::size_t operations = 0;            ///< of one cycle
  std::size_t iterations_per_cycle = 1;  ///< more than 1 where different iterations take turns
  Prediction predicted;                  ///< of one cycle
  PlanState state = PlanState::settled;  ///< whether it is followed
  /// One cycle by the plan, and the same on demand, as last measured on the device: medians of a few. 0: not known.
  std::chrono::nanoseconds measured{0};
  std::chrono::nanoseconds on_demand{0};  ///< see measured
  std::size_t stalled_operations = 0;     ///< that wait for copies
  std::vector<StallSummary> stalls;       ///< the longest of them, at most 5
};

/// Why no plan is followed for an iteration name.
enum class OnDemandReason : std::uint8_t {
  nothing_repeats,      ///< the iterations are no cycle that SchedulerOptions::max_period allows
  no_plan,              ///< the planner made none, or one that cannot be followed
  on_demand_is_faster,  ///< there is a plan, and its trial was lost
  plan_is_awaited,      ///< Planning::deferred: nobody has run the PlanningJob yet
};

/// An iteration name whose iterations run on demand though they have been observed, and why.
struct OnDemandSummary {
  std::string iteration;                                    ///< name
  OnDemandReason reason = OnDemandReason::nothing_repeats;  ///< which case it is
  std::string why;                                          ///< with names and numbers, for a person
};

/// What a manager did since it was made. Counts and bytes are exact; times are the device's own, in nanoseconds.
struct Report {
  std::string device;                      ///< name, as the driver says
  bool host_shares_memory = false;         ///< swapping works and saves nothing
  Bytes device_budget;                     ///< as set now, rounded down to the alignment
  std::uint64_t budget_changes = 0;        ///< times that set_budget() made it another one
  Bytes device_used;                       ///< taken now, as queued so far; sizes rounded up to the alignment
  Bytes device_peak;                       ///< most of it at one time; never above the budget of then
  Bytes host_used;                         ///< host memory taken for values: what is kept for reuse too, slabs whole
  Bytes host_peak;                         ///< most of it at one time
  Bytes pinned_used;                       ///< what of host_used is page-locked
  std::size_t pinned_slabs = 0;            ///< pieces that pinned_used lies in; 0 where each block is taken by itself
  std::size_t tensors = 0;                 ///< that exist now
  std::uint64_t operations = 0;            ///< run so far
  std::uint64_t iterations_on_demand = 0;  ///< ended, and not by a plan from its first operation to its end
  std::uint64_t iterations_followed = 0;   ///< ended, and by a plan from its first operation to its end
  std::uint64_t divergences = 0;           ///< times a plan was left because the program did something else
  std::string last_divergence;             ///< what it did
  std::uint64_t plan_starts = 0;           ///< times a plan was begun
  Bytes start_h2d;                         ///< moved to make the residency what a plan starts from
  Bytes start_d2h;                         ///< the same, to the host
  std::uint64_t swap_ins = 0;              ///< copies to the device
  std::uint64_t swap_outs = 0;             ///< copies to the host, those for downloads included
  Bytes h2d;                               ///< bytes of the copies to the device
  Bytes d2h;                               ///< bytes of the copies to the host
  std::uint64_t queue_waits = 0;           ///< waits of a queue for another one
  std::uint64_t host_waits = 0;            ///< waits of the host for the device
  std::vector<PlanSummary> plans;          ///< that are known now; of each iteration name the last used first
  std::vector<OnDemandSummary> on_demand;  ///< iteration names that have been observed and follow no plan now
  std::uint64_t sampled_rounds = 0;        ///< of plans, in which operations and copies were timed
  std::uint64_t plans_remade = 0;          ///< planners asked again, because a prediction was off
  std::vector<std::string> notes;          ///< plans refused, not made or left, and why; the last 16
};

/// A table for a person.
std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace swapmm
