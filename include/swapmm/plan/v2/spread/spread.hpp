// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>

namespace swapmm::v2::planning {

/// Plans for each engine alone, as if all other memories were one host, with a planner of version 1. Then it spreads
/// the tensors that leave over the memories that store, so that all links are busy for about as long, nearest memories
/// with room first, and gives each command only the waits that it needs. Several speeds of the host are tried in a
/// short search; the one with the fastest plan gets a search as long as `options` allow. Fills in all but `planner` and
/// the bound.
///
/// A Problem if engines share tensors or memories, if stores are full, or if `planner` finds no plan.
[[nodiscard]] Result<Plan> spread(std::string_view planner, const Trace& trace, const Machine& machine,
                                  const PlanningOptions& options);

/// The same with one speed of the host: the part of all links that each device is planned for as if it had that alone.
[[nodiscard]] Result<Plan> spread_at(std::string_view planner, const SpreadCase& all, double speed,
                                     const PlanningOptions& options);

}  // namespace swapmm::v2::planning
