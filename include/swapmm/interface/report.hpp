// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// A stall: an operation waits for a copy, for a time that the plan predicts.
struct StallSummary {
  std::string what;                  ///< the operation, and the copy that it waits for
  std::chrono::nanoseconds time{0};  ///< stall time in each cycle
};

/// The state of a plan.
enum class PlanState : std::uint8_t {
  on_trial,  ///< followed and compared with the previous state, or about to be: OnDemandReason::plan_waits
  settled,   ///< followed
  left,      ///< not followed, because swapping on demand is faster
};

/// Summary of one plan: what it is for, what it predicts, and what was measured.
struct PlanSummary {
  std::string iteration;                    ///< name of the iteration
  std::string planner;                      ///< name of the planner
  std::size_t operations = 0;               ///< number of operations in one cycle
  std::size_t replays = 0;                  ///< operations of one cycle that run again instead of copies
  std::size_t encoded = 0;                  ///< tensors whose values are encoded on their way to the host
  std::chrono::nanoseconds replay_time{0};  ///< what these take, in `predicted.iteration` and `predicted.compute`
  /// Planned together, see Options::shared_links. With more than one, `predicted.iteration` is that of all of them side
  /// by side, and `measured` is the time of this one.
  std::size_t devices = 1;
  std::size_t iterations_per_cycle = 1;  ///< more than 1 if different iterations alternate
  Prediction predicted;                  ///< for one cycle
  PlanState state = PlanState::settled;  ///< whether it is followed
  /// Time of one cycle with the plan, as last measured on the device: the median of a few. 0: not known.
  std::chrono::nanoseconds measured{0};
  std::chrono::nanoseconds on_demand{0};  ///< the same without a plan
  std::size_t stalled_operations = 0;     ///< number of operations that wait for copies
  std::vector<StallSummary> stalls;       ///< the longest stalls, at most 5
  /// True if the plan says which values are in the host and which in the file. Otherwise a value stays where it was put
  /// first.
  bool tells_file = false;
  Bytes file_in;   ///< with tells_file: what comes from the file in one cycle; a part of predicted.h2d
  Bytes file_out;  ///< the same to the file; a part of predicted.d2h
  /// The plan says for each value whether it is on a neighbour: there are Options::neighbours.
  bool tells_neighbours = false;
  Bytes neighbours_in;   ///< with tells_neighbours: what comes from there in one cycle; a part of predicted.h2d
  Bytes neighbours_out;  ///< the same to there; a part of predicted.d2h
};

/// Why no plan is followed for an iteration name.
enum class OnDemandReason : std::uint8_t {
  nothing_repeats,      ///< the iterations are no cycle that SchedulerOptions::max_period allows
  no_plan,              ///< the planner made none, or one that cannot be followed
  on_demand_is_faster,  ///< there is a plan, but its trial showed that it is slower
  plan_is_awaited,      ///< Planning::deferred: no thread has run the PlanningJob yet
  plan_waits,           ///< there is a plan, which is not started: the program branches; `why` says what is missing
};

/// An iteration name whose iterations run on demand although they have been observed, and the reason.
struct OnDemandSummary {
  std::string iteration;                                    ///< name
  OnDemandReason reason = OnDemandReason::nothing_repeats;  ///< which case it is
  std::string why;                                          ///< with names and numbers, for a person
};

/// What a manager has done since it was created. Counts and bytes are exact. Times are measured by the device, in
/// nanoseconds.
struct Report {
  std::string device;                      ///< name of the device, from the driver
  bool host_shares_memory = false;         ///< true: swapping works, but saves no memory
  Bytes device_budget;                     ///< current budget, rounded down to the alignment
  std::uint64_t budget_changes = 0;        ///< how often set_budget() changed the budget
  Bytes device_used;                       ///< bytes taken by the work queued so far; sizes rounded up to the alignment
  Bytes device_peak;                       ///< largest device_used so far; never above the budget at that time
  Bytes host_used;                         ///< host memory for values, including memory kept for reuse and whole slabs
  Bytes host_peak;                         ///< largest host_used so far
  Bytes pinned_used;                       ///< the page-locked part of host_used
  std::size_t pinned_slabs = 0;            ///< number of slabs in pinned_used; 0 if each block is allocated separately
  Bytes file_used;                         ///< bytes of the file that hold values, with Options::file
  Bytes file_peak;                         ///< largest file_used so far
  Bytes file_read;                         ///< bytes read from the file
  Bytes file_written;                      ///< bytes written to the file
  Bytes neighbours_budget;                 ///< memory taken on neighbours, with Options::neighbours
  Bytes neighbours_used;                   ///< the part of it that holds values
  Bytes neighbours_peak;                   ///< largest neighbours_used so far
  Bytes neighbours_read;                   ///< bytes copied from neighbours
  Bytes neighbours_written;                ///< bytes copied to neighbours
  Bytes codec_staging;                     ///< of device_used: values that are encoded pass through it
  Bytes encoded_in;                        ///< of h2d: bytes of values that were decoded on their way
  Bytes encoded_out;                       ///< of d2h: bytes of values that were encoded on their way
  std::size_t tensors = 0;                 ///< number of tensors that exist now
  std::uint64_t operations = 0;            ///< number of operations run so far
  std::uint64_t iterations_on_demand = 0;  ///< ended iterations that did not follow a plan from begin to end
  std::uint64_t iterations_followed = 0;   ///< ended iterations that followed a plan from begin to end
  std::uint64_t operations_followed = 0;   ///< operations that a followed plan expected
  std::uint64_t values_saved = 0;          ///< copies to the host of values that a plan dropped, but that may be needed
  Bytes saved_bytes;                       ///< the same in bytes
  std::uint64_t divergences = 0;           ///< how often a plan was left because the program did something else
  std::string last_divergence;             ///< what the program did the last time
  std::uint64_t plan_starts = 0;           ///< how often a plan was begun
  Bytes start_h2d;                         ///< bytes copied to the device to reach the initial state of plans
  Bytes start_d2h;                         ///< the same, copied to the host
  std::uint64_t predictions = 0;           ///< operations on demand of which it was said beforehand which they would be
  std::uint64_t predictions_right = 0;     ///< those that came then
  std::uint64_t brought_ahead = 0;         ///< tensors copied to the device before the operation that reads them came
  std::uint64_t swap_ins = 0;              ///< number of copies to the device
  std::uint64_t swap_outs = 0;             ///< number of copies to the host, including those for downloads
  Bytes h2d;                               ///< bytes copied to the device; of encoded values, those that they stand for
  Bytes d2h;                               ///< bytes copied to the host, likewise
  std::uint64_t queue_waits = 0;           ///< number of waits of one queue for another
  std::uint64_t host_waits = 0;            ///< number of waits of the host for the device
  std::chrono::nanoseconds host_wait_time{0};  ///< time of these waits, by the host's clock
  std::uint64_t turns_taken = 0;               ///< with Options::shared_links: copies that waited for another device's
  std::uint64_t turns_missed = 0;              ///< those that did not, because the other one was not queued yet
  std::vector<PlanSummary> plans;              ///< current plans; for each iteration name, the last used or seen first
  std::vector<OnDemandSummary> on_demand;      ///< iteration names that were observed and follow no plan now
  std::uint64_t sampled_rounds = 0;            ///< rounds of plans in which operations and copies were timed
  std::uint64_t plans_remade = 0;              ///< how often a plan was remade because a prediction was wrong
  std::uint64_t plans_found = 0;               ///< plans that SchedulerOptions::plan_store had
  std::vector<std::string> notes;              ///< reasons why plans were refused, not made or left; the last 16
};

/// Writes the report as a table for people.
SWAPMM_EXPORT std::ostream& operator<<(std::ostream& out, const Report& report);

}  // namespace swapmm
