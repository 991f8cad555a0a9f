// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>

namespace swapmm::v2::planning {

/// Plans for each engine alone, as if all other memories were one host, with a planner of version 1. Then it spreads
/// the tensors that leave over the memories that store, so that all links are busy for about as long, nearest memories
/// with room first, and gives each command only the waits that it needs. Several speeds of the host are tried in a
/// short search; the one with the fastest plan gets a search as long as `options` allow. If engines share tensors or
/// memories, it is spread_shared(). Fills in all but `planner` and the bound.
///
/// A Problem if stores are full, or if `planner` finds no plan.
[[nodiscard]] Result<Plan> spread(std::string_view planner, const Trace& trace, const Machine& machine,
                                  const PlanningOptions& options);

/// The same with one speed of the host: the part of all links that each device is planned for as if it had that alone.
/// The devices have equal parts of the time. `most_questions`: for_short_search() for each of them.
[[nodiscard]] Result<Plan> spread_at(std::string_view planner, const SpreadCase& all, double speed,
                                     const PlanningOptions& options, std::optional<int> most_questions = {});

/// What plans for all parts become together, with its times.
[[nodiscard]] Result<Plan> spread_parts(const SpreadCase& all, const std::vector<swapmm::Plan>& plans);

/// The least part of its rate that a link has while all that share a capacity with it copy.
[[nodiscard]] double shared_part(const Machine& machine);

/// Speeds to try: from what all links carry together down to what the slowest carries, or one of those that share a
/// capacity. Fewer than all are right if devices share links, or if near memories are small. Descending; 1 is the
/// first.
[[nodiscard]] std::vector<double> speeds_to_spread(const SpreadCase& all);

}  // namespace swapmm::v2::planning
