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

/// Gaps are the places between operations on the circle: gap g is before operation g and after operation g-1. In a gap,
/// all departures come before all arrivals. Ends are counted on from the start and may be at or above the number of
/// operations n: g + n is gap g of the next iteration.

/// One time of a tensor on the device, from a gap to a later one, with at least one use between them. The trace
/// determines how it arrives (swap_in, or allocate before a whole write) and what must be copied to the host before it
/// leaves. If its first use is a whole write, the stay starts in the gap before that use. If the tensor is an input,
/// the stay does not start before available_from.
struct Stay {
  TensorId tensor{};
  std::uint32_t start = 0;     ///< gap in which it arrives, below n; its bytes are taken from here on
  std::uint32_t length = 1;    ///< number of operations for which it stays: it leaves in gap start + length
  std::uint32_t queue_at = 0;  ///< gap that determines the place of its swap_in in the queue; from start on, below n
  /// Gap from which its last value is copied to the host, if it must be; clamped to the gaps that are possible.
  std::uint32_t write_back = 0;
  std::uint32_t kept = 0;  ///< operations for which no other stay gets its bytes, if more than `length`
  bool always = false;     ///< never leaves: start 0, length n
  /// Among the copies to the host in one gap, those with the lowest number come first, then those of the shortest
  /// stays.
  std::uint32_t copy_rank = 0;

  friend bool operator==(const Stay&, const Stay&) = default;
};

/// Says what may run at the same time as copies.
enum class Pace : std::uint8_t {
  one_at_a_time,       ///< operation, copies out, copies in, operation: nothing overlaps
  between_operations,  ///< the copies of a gap start when the operation before it has ended, and the next one waits
  overlapped,          ///< copies start as soon as what they need has ended
  from_their_gap,      ///< the same, but copies to the device start with the operation behind their gap, not before
};
/// Whether a copy to the host starts as soon as the value is final.
[[nodiscard]] constexpr bool copies_out_early(Pace pace) {
  return pace == Pace::overlapped || pace == Pace::from_their_gap;
}

struct Schedule {
  Pace pace = Pace::overlapped;
  std::vector<Stay> stays;  ///< those of one tensor do not overlap
};

/// Makes a stay from gap `start` to gap `end` (above start), or one that never ends. The value goes to the host as soon
/// as it is final.
[[nodiscard]] Stay make_stay(TensorId tensor, std::uint32_t start, std::uint32_t end);
[[nodiscard]] Stay make_permanent_stay(TensorId tensor, std::uint32_t operations);

/// The schedule in which every use has its own stay: each bundle comes in right before its operation, and goes out
/// right after it.
[[nodiscard]] std::vector<Stay> single_use_stays(const PlanningCase& planning);

struct BuiltPlan {
  std::optional<Plan> plan;             ///< none if the stays do not pack into the budget
  Bytes height;                         ///< the room that the lowest packing found takes
  std::vector<Bytes> offsets;           ///< of the stays, in that packing
  std::vector<std::uint32_t> unplaced;  ///< with PackingEffort::keep_most: the stays without a place
};

/// Finds offsets by pack_towards() (with `preferred`, if not empty, as there: one per stay), then writes the commands
/// with every wait that docs/formats.md requires. The plan has no digest and no prediction. Returns a Problem if a
/// single bundle does not pack.
[[nodiscard]] Result<BuiltPlan> build_plan(const PlanningCase& planning, const Schedule& schedule,
                                           std::string_view planner, PackingEffort effort = {},
                                           std::span<const Bytes> preferred = {});

/// Makes the plan of stays that have places: `offsets` within the budget, one per stay, such that no two stays share a
/// byte at the same time (packed_length() in plan/schedule/stay_facts.hpp). The plan has no digest and no prediction.
[[nodiscard]] Plan build_placed_plan(const PlanningCase& planning, const Schedule& schedule, std::string_view planner,
                                     std::span<const Bytes> offsets);

/// Makes the plan of single_use_stays().
[[nodiscard]] Result<Plan> build_per_operation_plan(const PlanningCase& planning, Pace pace, std::string_view planner);

/// Fills in digest and prediction. Computes the lower bound (plan/relaxation) as the options say.
void finish_plan(const PlanningCase& planning, Plan& plan, const BoundOptions& bound = {});
/// The same with a known lower bound.
void finish_plan(const PlanningCase& planning, Plan& plan, std::chrono::nanoseconds lower_bound);

}  // namespace swapmm::planning
