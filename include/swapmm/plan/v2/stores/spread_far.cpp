// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/stores/spread_far.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/spread/spread_plans.hpp>
#include <swapmm/plan/v2/stores/only_device.hpp>
#include <swapmm/plan/v2/stores/stored_plan.hpp>

namespace swapmm::v2::planning {
namespace {

/// Where each tensor is by a plan for the machine in which stores are linked to the device. What does not move is in
/// the last one.
std::vector<std::size_t> stores_of(const Plan& plan, const StoreRoutes& routes, std::size_t tensors) {
  std::vector<std::size_t> store_of(tensors, routes.stores.size() - 1);
  for (const Command& command : plan.commands) {
    if (command.kind != CommandKind::copy) continue;
    const auto at = std::ranges::find_if(
        routes.links, [&](const Store& store) { return store.in == command.link || store.out == command.link; });
    store_of[index(command.tensor)] = static_cast<std::size_t>(at - routes.links.begin());
  }
  return store_of;
}

}  // namespace

Result<Plan> spread_far(std::string_view planner, const Trace& trace, const Machine& machine,
                        const PlanningOptions& options) {
  const Result<OnlyDevice> only = find_only_device(trace, machine);
  if (!only) return only.problem();
  const StoreRoutes& routes = only->routes;
  if (std::ranges::none_of(routes.stores, &RoutedStore::is_far)) return Problem{"no store is behind another one"};
  const DeviceCase device = only->device(machine);
  const SpreadCase direct{trace, routes.direct, {only->part}, {routes.links}};
  std::optional<Plan> best;
  std::optional<Problem> problem;
  for (const double speed : {1.0, 0.5, 0.25}) {
    const swapmm::Machine merged = machine_of_part(direct, 0, speed);
    const Result<swapmm::Plan> old = swapmm::make_plan(planner, device.trace, merged, options);
    if (!old) return old.problem();
    const Result<SpreadPlan> spread = spread_plans(direct, {&*old});
    if (!spread) {
      problem = spread.problem();
      continue;
    }
    const std::vector<std::size_t> store_of = stores_of(spread->plan, routes, trace.tensors.size());
    const auto wanted = [&](TensorId tensor, std::optional<std::uint32_t>) {
      return store_of[index(only->part.tensors[index(tensor)])];
    };
    Result<Plan> stored = stored_plan(device, *old, wanted, {});
    if (stored) stored = for_whole_trace(*only, trace, *std::move(stored));
    if (!stored) {
      problem = stored.problem();
    } else if (!best || stored->predicted.iteration < best->predicted.iteration) {
      best = *std::move(stored);
    }
  }
  if (!best) return *problem;
  return *std::move(best);
}

}  // namespace swapmm::v2::planning
