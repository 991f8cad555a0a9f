// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/stall_search.hpp>

#include <algorithm>

#include <swapmm/answers/quantities.hpp>
#include <swapmm/ir/limits.hpp>

namespace swapmm::answers {
namespace {

using std::chrono::nanoseconds;

/// More than all tensors together need: nothing ever has to leave.
Bytes plenty(const Trace& trace, const Machine& machine) {
  Bytes sum{1};
  for (const TraceTensor& tensor : trace.tensors) sum += round_up(tensor.bytes, machine.alignment);
  const Bytes arenas = machine.max_allocation.value_or(Bytes{0});
  return std::min(Bytes{limits::magnitude - 1}, sum + sum + arenas);
}

}  // namespace

StallEnd find_stall_end(const Trace& trace, const Plan& plan, const Liveness& liveness, const PlanOn& plan_on,
                        Watcher& watcher) {
  StallEnd end;
  Machine machine = plan.machine;
  const auto time_with = [&](Bytes budget) -> std::optional<nanoseconds> {
    if (budget == plan.machine.device_budget) return plan.predicted.iteration;
    machine.device_budget = budget;
    if (!check_machine(machine)) return std::nullopt;
    watcher.begin("where stalls end: " + decimal_size(budget));
    ++end.plans;
    const Planned planned = plan_on(machine);
    if (!planned.plan) return std::nullopt;
    return planned.plan->predicted.iteration;
  };
  const std::optional<nanoseconds> least = time_with(std::max(plenty(trace, machine), plan.machine.device_budget));
  if (!least) return end;
  end.always = std::max(nanoseconds{0}, *least - plan.predicted.compute);
  const nanoseconds enough = *least + *least / 1000;
  const auto is_enough = [&](Bytes budget) {
    const std::optional<nanoseconds> time = time_with(budget);
    return time && *time <= enough;
  };

  const Bytes smallest = std::max(Bytes{1}, liveness.largest_bundle);
  Bytes too_little = smallest;
  Bytes high = std::max(smallest, liveness.peak);
  if (plan.machine.device_budget < high)
    (is_enough(plan.machine.device_budget) ? high : too_little) = plan.machine.device_budget;
  // At the peak itself not everything packs.
  while (!is_enough(high)) {
    too_little = high;
    high += Bytes{high.value / 20 + 1};
    if (high >= plenty(trace, machine)) break;
  }
  if (too_little == smallest && is_enough(smallest)) {
    end.budget = smallest;
    end.first_that_fits = true;
    return end;
  }
  const Bytes step{std::max<std::uint64_t>(1, liveness.peak.value / 50)};
  while (high > too_little + step) {
    const Bytes middle = too_little + Bytes{(high - too_little).value / 2};
    (is_enough(middle) ? high : too_little) = middle;
  }
  end.budget = high;
  return end;
}

}  // namespace swapmm::answers
