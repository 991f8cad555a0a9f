// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// Gaps are the places between operations on the circle: gap g lies before operation g and after operation g-1. In
/// a gap, first everything that leaves goes, then everything that arrives comes. Ends are counted on from the start
/// and may lie at or above the number of operations n: g + n is gap g of the next iteration.

/// One time of a tensor on the device, from a gap to a later one, with at least one use between them. How it arrives
/// (swap_in, or allocate before a whole write) and what it owes the host when it leaves follow from the trace. One
/// whose first use is a whole write starts in the gap before it; one of an input not before its available_from.
struct Stay {
  TensorId tensor{};
  std::uint32_t start = 0;       ///< gap it arrives in, below n; its bytes are taken from here on
  std::uint32_t length = 1;      ///< operations it stays for: it leaves in gap start + length
  std::uint32_t queue_at = 0;    ///< gap that gives its swap_in the place in the queue; from start on, below n
  std::uint32_t write_back = 0;  ///< gap from which its last value goes to the host, if it must; clamped to what can be
  std::uint32_t kept = 0;        ///< operations for which nobody else gets its bytes, where that is more than `length`
  bool always = false;           ///< never leaves: start 0, length n
  /// Of the copies to the host in one gap those with the lowest number go first, then those of the shortest stays.
  std::uint32_t copy_rank = 0;

  friend bool operator==(const Stay&, const Stay&) = default;
};

/// What copies run beside.
enum class Pace : std::uint8_t {
  one_at_a_time,       ///< operation, copies out, copies in, operation: nothing beside anything
  between_operations,  ///< the copies of a gap start when the operation before it has ended, and the next one waits
  overlapped,          ///< copies start as soon as what they need has ended
};

struct Schedule {
  Pace pace = Pace::overlapped;
  std::vector<Stay> stays;  ///< those of one tensor do not overlap
};

/// From gap `start` to gap `end` (above start), or for ever; the value goes to the host as soon as it is final.
[[nodiscard]] Stay make_stay(TensorId tensor, std::uint32_t start, std::uint32_t end);
[[nodiscard]] Stay make_permanent_stay(TensorId tensor, std::uint32_t operations);

/// The schedule of every use on its own: each bundle in right before its operation, and out right after it.
[[nodiscard]] std::vector<Stay> single_use_stays(const PlanningCase& planning);

struct BuiltPlan {
  std::optional<Plan> plan;             ///< none where the stays do not pack into the budget
  Bytes height;                         ///< the room that the lowest packing found takes
  std::vector<Bytes> offsets;           ///< of the stays, in that packing
  std::vector<std::uint32_t> unplaced;  ///< with PackingEffort::keep_most: the stays without a place
};

/// Offsets by pack_towards() (with `preferred`, if not empty, as there: one per stay), then the commands with every
/// wait that the rules of docs/formats.md ask for. Without digest and prediction. A Problem where one bundle alone does
/// not pack.
[[nodiscard]] Result<BuiltPlan> build_plan(const PlanningCase& planning, const Schedule& schedule,
                                           std::string_view planner, PackingEffort effort = {},
                                           std::span<const Bytes> preferred = {});

/// The plan of stays that have places: `offsets` within the budget, one per stay, such that no two share a byte at a
/// time (packed_length() in plan/stay_facts). Without digest and prediction.
[[nodiscard]] Plan build_placed_plan(const PlanningCase& planning, const Schedule& schedule, std::string_view planner,
                                     std::span<const Bytes> offsets);

/// The plan of single_use_stays().
[[nodiscard]] Result<Plan> build_per_operation_plan(const PlanningCase& planning, Pace pace, std::string_view planner);

/// Fills in digest and prediction. The lower bound is worked out (plan/relaxation) as the options say.
void finish_plan(const PlanningCase& planning, Plan& plan, const BoundOptions& bound = {});
/// The same with a lower bound that is known.
void finish_plan(const PlanningCase& planning, Plan& plan, std::chrono::nanoseconds lower_bound);

}  // namespace swapmm::planning
