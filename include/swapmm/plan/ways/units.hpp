// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::planning {

/// A value that is away from its first uses to later ones, and whose operation may run again: a feature map.
struct FeatureMap {
  TensorId tensor{};
  std::uint32_t giver = 0;   ///< the operation that makes it
  std::uint32_t last = 0;    ///< its last use before the absence, or its giver
  std::uint32_t needed = 0;  ///< its first use after the absence
};

/// The feature maps of a trace, by giver. The absence is the longest one of the value within the iteration, where not
/// everything that lives has room.
[[nodiscard]] std::vector<FeatureMap> find_feature_maps(const Trace& trace, const ValueHistory& history,
                                                        const PlanningCase& planning);

/// Adds what gives the operation's values again right before `before`: the operation with its group
/// (ValueHistory::group()), and those from operation `from` on whose values they read. Replays that are there already
/// are not added again.
void add_chain(const Trace& trace, const ValueHistory& history, std::uint32_t operation, std::uint32_t from,
               std::uint32_t before, std::vector<Replay>& replays);

/// Divides feature maps into units, and makes those of some units again.
///
/// A unit is a run of feature maps, by their givers; units have about equal bytes. It begins with a checkpoint, whose
/// value is kept and copied. The units that cost least computation per byte are recomputed: right before the first
/// operation that needs one of a unit's other values, all its operations behind the checkpoint that these need run
/// again.
class UnitChoice {
 public:
  /// Refers to all arguments.
  UnitChoice(const Trace& trace, const ValueHistory& history, const PlanningCase& planning);

  [[nodiscard]] std::size_t feature_maps() const { return maps_.size(); }
  /// The replays of the `recomputed` cheapest ones of so many units.
  [[nodiscard]] std::vector<Replay> choose(std::size_t units, std::size_t recomputed) const;
  /// Calls visit(replays) for each number of units and each share of them, until it returns false.
  void for_each(const CheckpointUnitOptions& options, const std::function<bool(std::vector<Replay>)>& visit) const;

 private:
  /// What a unit takes when it is recomputed.
  struct Unit {
    std::vector<Replay> replays;
    double time = 0;
    double bytes = 0;  ///< of the values that need no copy
  };

  /// The cheapest ones first.
  [[nodiscard]] std::vector<Unit> units_of(std::size_t count) const;
  [[nodiscard]] static std::vector<Replay> replays_of(const std::vector<Unit>& units, std::size_t recomputed);
  [[nodiscard]] Unit unit_of(std::size_t first, std::size_t end) const;

  const Trace& trace_;
  const ValueHistory& history_;
  const PlanningCase& planning_;
  std::vector<FeatureMap> maps_;
};

}  // namespace swapmm::planning
