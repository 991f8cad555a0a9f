// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::planning {

/// What speaks for a way.
struct WayCriteria {
  /// What it costs to copy a byte away and back, in nanoseconds of computation. Values that come back in another way
  /// for less do so.
  double copy_price = 0;
  /// Copies of values that are made at the beginning of the iteration cost e^tilt times as much, those of values made
  /// at its end e^-tilt times, and others in between.
  double tilt = 0;
  /// A value stays where it is if it is needed again within this many times its copies' duration, or its operation's if
  /// that is shorter.
  double least_away = 1;
  /// The largest number of operations that run again, one after another, for one value.
  std::uint32_t longest_chain = 64;
  /// Per tensor: how many times as much as others its copies cost. Empty: as much.
  std::vector<double> dearer{};
  bool replays = true;  ///< operations may run again
  bool codings = true;  ///< values may be encoded
};

/// Chooses ways by criteria.
///
/// The operations are visited in order. A value that an operation needs, that nothing has used for a while, and that
/// lives where not all values have room, takes the cheapest way. It may be copied. It may be encoded behind its last
/// use and decoded right before the operation; the bytes of its form are copied. It may be made again right before the
/// operation: what a replay needs is there, is made again as well, or is kept (and copied) until then, whatever is
/// cheaper.
class WayChoice {
 public:
  /// Refers to all arguments. The case is that of without_ways(trace).
  WayChoice(const Trace& trace, const ValueHistory& history, const PlanningCase& planning);

  [[nodiscard]] WaysBack choose(const WayCriteria& criteria);

  /// The prices per byte at which single operations would run again and values would be encoded, ascending, each once.
  [[nodiscard]] std::vector<double> prices() const;

 private:
  [[nodiscard]] bool is_far(TensorId tensor, std::uint32_t position) const;
  /// What it costs to copy so many bytes of the tensor's value away and back.
  [[nodiscard]] double price_of(TensorId tensor, std::uint64_t bytes) const;
  [[nodiscard]] double price_of(TensorId tensor) const;
  [[nodiscard]] double chain_cost(std::uint32_t operation, std::uint32_t before, std::uint32_t depth);
  [[nodiscard]] double cost_of_input(TensorId tensor, std::uint32_t before, std::uint32_t depth);
  /// The operation that may make the tensor's value again before `before`, or ValueHistory::nobody.
  [[nodiscard]] std::uint32_t maker(TensorId tensor, std::uint32_t before) const;
  [[nodiscard]] bool is_needed_from(TensorId tensor, std::uint32_t position) const;
  /// The cheapest form in which the value may be away until `before`.
  [[nodiscard]] std::optional<Coding> best_coding(TensorId tensor, std::uint32_t before, double& cost) const;
  /// Calls visit(input) for each tensor that the member of a group (ValueHistory::group()) reads, but for those whose
  /// values the group gives.
  template <class Visit>
  void for_each_input(const std::vector<std::uint32_t>& group, std::uint32_t member, Visit&& visit) const {
    for (const TensorId input : trace_.operations[member].reads) {
      const std::uint32_t gave = history_.giver(input, member);
      if (gave == ValueHistory::nobody || std::ranges::find(group, gave) == group.end()) visit(input);
    }
  }
  void bring_back(TensorId tensor, std::uint32_t before);
  void add(std::uint32_t operation, std::uint32_t before, std::uint32_t depth);

  const Trace& trace_;
  const ValueHistory& history_;
  const PlanningCase& planning_;
  std::vector<double> started_;      // per operation: the sum of the durations before it
  std::vector<std::uint32_t> full_;  // see count_full()

  std::vector<double> made_;            // per tensor: where its first value is made, from 1 (begin) to -1 (end)
  std::vector<std::uint32_t> readers_;  // per tensor: replayable operations that read it

  WayCriteria criteria_;
  std::vector<std::int64_t> here_;                    // per tensor: the last operation behind which its value was there
  std::vector<bool> by_replay_;                       // per tensor: it was there because of a replay
  std::vector<std::optional<Coding>> coded_;          // per tensor: its last coding
  std::unordered_map<std::uint32_t, double> chains_;  // by operation: the cost before the present one
  WaysBack chosen_;
};

}  // namespace swapmm::planning
