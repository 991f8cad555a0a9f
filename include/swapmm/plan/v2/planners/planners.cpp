// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/planners.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/problem/part_of_time.hpp>
#include <swapmm/plan/v2/baselines/on_demand.hpp>
#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/joint/joint_search.hpp>
#include <swapmm/plan/v2/relaxation/lower_bound.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/schedule/waits.hpp>
#include <swapmm/plan/v2/spread/spare_memory.hpp>
#include <swapmm/plan/v2/spread/spread.hpp>
#include <swapmm/plan/v2/stores/only_device.hpp>
#include <swapmm/plan/v2/stores/spread_far.hpp>
#include <swapmm/plan/v2/stores/store_search.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/v2/ways.hpp>
#include <swapmm/plan/v2/ways/search_ways.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::v2 {
namespace {

/// The one link between the memories. A Problem if there is not exactly one.
Result<LinkId> only_link(const Machine& machine, MemoryId from, MemoryId to) {
  std::optional<LinkId> found;
  const std::string between = " from " + machine.memories[index(from)].name + " to " + machine.memories[index(to)].name;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    if (machine.links[i].from != from || machine.links[i].to != to) continue;
    if (found) return Problem{"it has two links" + between};
    found = id_at<LinkId>(i);
  }
  if (!found) return Problem{"it has no link" + between};
  return *found;
}

}  // namespace

Result<swapmm::Machine> to_version_1(const Machine& machine) {
  if (machine.memories.size() != 2) {
    return Problem{"it has " + std::to_string(machine.memories.size()) + " memories, not two"};
  }
  const MemoryId host = machine.host;
  const MemoryId device{index(host) == 0 ? 1U : 0U};
  if (machine.memories[index(host)].bytes) return Problem{"its host has a limit"};
  if (!machine.memories[index(device)].bytes) return Problem{"its device has no limit"};
  EngineId compute{};
  std::size_t computing = 0;
  for (std::size_t i = 0; i < machine.engines.size(); ++i) {
    if (!machine.engines[i].memory) continue;
    if (*machine.engines[i].memory != device)
      return Problem{"engine " + machine.engines[i].name + " computes in the host"};
    compute = id_at<EngineId>(i);
    ++computing;
  }
  if (computing != 1) return Problem{"it has " + std::to_string(computing) + " engines that compute, not one"};
  const Result<LinkId> in = only_link(machine, host, device);
  if (!in) return in.problem();
  const Result<LinkId> out = only_link(machine, device, host);
  if (!out) return out.problem();
  for (const LinkId id : {*in, *out}) {
    const Link& link = machine.links[index(id)];
    if (engine_of(machine, id) == compute) return Problem{"link " + link.name + " occupies the engine that computes"};
    for (const CapacityId capacity : link.capacities) {
      const auto uses = [&](LinkId other) {
        return std::ranges::count(machine.links[index(other)].capacities, capacity) != 0;
      };
      std::uint64_t together = link.bytes_per_second;
      if (uses(*in) && uses(*out)) {
        together = machine.links[index(*in)].bytes_per_second + machine.links[index(*out)].bytes_per_second;
      }
      if (machine.capacities[index(capacity)].bytes_per_second < together) {
        return Problem{"capacity " + machine.capacities[index(capacity)].name + " limits its links"};
      }
    }
  }
  const Memory& memory = machine.memories[index(device)];
  const Link& h2d = machine.links[index(*in)];
  const Link& d2h = machine.links[index(*out)];
  return swapmm::Machine{machine.name,
                         *memory.bytes,
                         memory.alignment,
                         memory.max_allocation,
                         {h2d.bytes_per_second, h2d.latency},
                         {d2h.bytes_per_second, d2h.latency},
                         engine_of(machine, *in) == engine_of(machine, *out) ? Duplex::half : Duplex::full};
}

namespace {

/// Whether pieces of tensors could need less room than whole ones, so that bounds for whole ones do not hold.
bool pads_tensors(const Trace& trace, const swapmm::Machine& machine) {
  return std::ranges::any_of(
      trace.tensors, [&](const TraceTensor& tensor) { return tensor.bytes.value % machine.alignment.value != 0; });
}

/// Whether the planner knows other ways back than copies, for one device and one host.
bool knows_ways(std::string_view planner) { return planner == "best" || planner == "checkpoint-units"; }

/// Whether plans of others may use ways of the trace that this one may not.
bool forbids_ways(const Trace& trace, const Ways& allowed) {
  const Ways there = swapmm::planning::ways_in(trace);
  return (there.recompute && !allowed.recompute) || (there.compress && !allowed.compress) ||
         (there.pieces && !allowed.pieces);
}

/// For plans with any ways of the trace.
std::chrono::nanoseconds bound_for_all_ways(const Trace& trace, const swapmm::Machine& old,
                                            std::chrono::nanoseconds compute) {
  const Result<std::chrono::nanoseconds> bound = swapmm::planning::ways_bound(trace, old);
  return bound ? std::max(*bound, compute) : compute;
}

/// A plan of a planner of version 1, as a plan for the trace with its ways.
Result<Plan> plan_with_old_planner(std::string_view planner, const Trace& trace, const swapmm::Machine& old,
                                   const PlanningOptions& options) {
  if (knows_ways(planner)) {
    const Result<PlanWithWays> made =
        planner == "best" ? plan_with_ways(trace, old, options) : plan_checkpoint_units(trace, old, options);
    if (!made) return made.problem();
    Result<Plan> plan = from_ways(trace, *made);
    const Ways of_units{.recompute = options.ways.recompute, .compress = false, .pieces = false};
    if (plan && forbids_ways(trace, planner == "best" ? options.ways : of_units)) {
      std::chrono::nanoseconds& known = plan->predicted.lower_bound;
      known = std::min(known, bound_for_all_ways(trace, old, plan->predicted.compute));
    }
    return plan;
  }
  const Result<swapmm::Plan> made = swapmm::make_plan(planner, swapmm::planning::without_ways(trace), old, options);
  if (!made) return made.problem();
  Plan plan = from_version_1(*made);
  plan.trace_digest = digest(trace);
  // Plans that use ways may be faster than any that this bound is for.
  if (swapmm::planning::has_ways(trace)) {
    plan.predicted.lower_bound =
        std::min(bound_for_all_ways(trace, old, plan.predicted.compute), plan.predicted.iteration);
  }
  return plan;
}

/// The same, for the machine as the caller named it.
Result<Plan> plan_in_version_1(std::string_view planner, const Trace& trace, const Machine& machine,
                               const swapmm::Machine& old, const PlanningOptions& options) {
  Result<Plan> made = plan_with_old_planner(planner, trace, old, options);
  if (!made) return made.problem();
  Plan plan = *std::move(made);
  // from_version_1() has the device as memory 0, and the links in and out as 0 and 1.
  const MemoryId device{index(machine.host) == 0 ? 1U : 0U};
  const LinkId in = *only_link(machine, machine.host, device);
  const LinkId out = *only_link(machine, device, machine.host);
  for (Place& place : plan.initial) place.memory = index(place.memory) == 0 ? device : machine.host;
  for (Command& command : plan.commands) {
    if (command.kind == CommandKind::copy) command.link = index(command.link) == 0 ? in : out;
    if (!has_engine(command.kind)) command.memory = device;
    if (command.kind == CommandKind::encode || command.kind == CommandKind::decode) {
      command.engine = default_engine(machine);
    }
  }
  plan.machine = machine;
  if (planning::changes_input_that_host_reads(trace) && !validate(trace, plan).empty()) {
    return Problem{
        "the host reads an input that operations change after it has given the next value: version 2 has one place in "
        "the host for both"};
  }
  return plan;
}

Result<Plan> plan_on_demand(planning::Victim victim, const Trace& trace, const Machine& machine) {
  Result<Plan> plan = planning::on_demand(trace, machine, victim);
  if (plan) planning::predict(trace, *plan);
  return plan;
}

/// The same plan, in which everything runs at the same time that may.
Result<Plan> overlapped(const Trace& trace, Result<Plan> plan) {
  if (!plan) return plan;
  planning::write_waits(trace, *plan);
  planning::predict(trace, *plan);
  return plan;
}

/// Stores behind others take more copies, so they come second.
Result<Plan> spread_near_or_far(std::string_view planner, const Trace& trace, const Machine& machine,
                                const PlanningOptions& options) {
  Result<Plan> plan = planning::spread(planner, trace, machine, options);
  if (plan) return plan;
  Result<Plan> far = planning::spread_far(planner, trace, machine, options);
  return far ? std::move(far) : std::move(plan);
}

/// The fastest of what all planners find that take such a machine. `bound` is asked for when it is needed: it may take
/// as long as a first good plan.
Result<Plan> plan_best(const Trace& trace, const Machine& machine, const PlanningOptions& options,
                       const planning::LazyBound& bound, planning::SearchFor searched) {
  constexpr auto furthest = planning::Victim::used_furthest_ahead;
  constexpr auto least_recent = planning::Victim::least_recently_used;
  std::vector<Result<Plan>> serial{plan_on_demand(furthest, trace, machine)};
  Result<Plan> best = serial.front();
  const auto offer = [&](Result<Plan> plan) {
    if (plan && (!best || plan->predicted.iteration < best->predicted.iteration)) best = std::move(plan);
  };
  if (best && best->predicted.iteration == best->predicted.compute) return best;
  // It is rarely the better one.
  const auto has_time = [&] { return !options.go_on || options.go_on(PlanningProgress{.part = 0.1}); };
  if (!best || has_time()) {
    serial.push_back(plan_on_demand(least_recent, trace, machine));
    offer(serial.back());
  }
  if (trace.engines.size() > 1) {
    for (const planning::Victim victim : {furthest, least_recent}) {
      serial.push_back(planning::on_demand(trace, machine, victim, planning::Holes::in_turn));
    }
    for (Result<Plan>& plan : serial) offer(overlapped(trace, std::move(plan)));
  }
  const auto is_optimal = [&] { return best && best->predicted.iteration <= bound(best->predicted.iteration); };
  const auto offer_spread = [&](const PlanningOptions& limits) {
    for (const std::string_view planner : {"best", "excess"}) {
      if (best && limits.go_on && !limits.go_on({})) return;
      if (is_optimal()) return;
      Result<Plan> plan = spread_near_or_far(planner, trace, machine, limits);
      const bool is_shared = plan && trace.engines.size() > 1;  // by far the better one there
      offer(std::move(plan));
      if (is_shared) return;
    }
  };
  // What searches takes all the time that it is given. In small traces the others take next to none.
  const bool spreads_first = searched == planning::SearchFor::plan && swapmm::planning::is_by_clock(options) &&
                             trace.engines.size() <= 1 && trace.operations.size() <= planning::few_operations &&
                             has_time();
  if (spreads_first) offer_spread(swapmm::planning::in_part_of_time(options, 0, 0.2));
  const std::optional<planning::SpareMemory> spare = planning::SpareMemory::find(trace, machine);
  const auto offer_with_spare = [&](Result<Plan> plan) {
    if (!plan) return;
    Plan whole = spare->for_whole(trace, *std::move(plan));
    if (validate(trace, whole).empty()) offer(std::move(whole));
  };
  const PlanningOptions rest = spare ? swapmm::planning::in_part_of_time(options, 0.5, 1) : options;
  if (spare) {
    const PlanningOptions half = swapmm::planning::in_part_of_time(options, 0, 0.5);
    Result<Plan> plan = planning::search_jointly(trace, spare->machine(), half, bound);
    offer_with_spare(plan ? std::move(plan) : planning::spread("best", trace, spare->machine(), half));
  }
  Result<Plan> found = planning::search_stores(trace, machine, rest, bound);
  if (!found) found = planning::search_jointly(trace, machine, rest, bound);
  const bool is_found = static_cast<bool>(found);
  offer(std::move(found));
  if (!(is_found && swapmm::planning::is_by_clock(options)) && !spreads_first) offer_spread(rest);
  return best;
}

/// All but the bound.
Result<Plan> plan_for_many(std::string_view planner, const Trace& trace, const Machine& machine,
                           const PlanningOptions& options, const planning::LazyBound& bound) {
  if (planner == "on-demand") return plan_on_demand(planning::Victim::least_recently_used, trace, machine);
  if (planner == "belady") return plan_on_demand(planning::Victim::used_furthest_ahead, trace, machine);
  if (planner == "best") {
    const planning::CopyPlanner copies = [&](const Trace& program, const PlanningOptions& limits,
                                             const planning::LazyBound& at_least, planning::SearchFor searched) {
      return plan_best(program, machine, limits, at_least, searched);
    };
    return planning::search_ways(trace, machine, options, copies, bound);
  }
  Result<Plan> plan = spread_near_or_far(planner, trace, machine, options);
  if (plan) return plan;
  const std::string reason = planning::changes_input_that_host_reads(trace)
                                 ? "the host reads an input that operations change after it has given the next value"
                                 : plan.problem().message;
  return Problem{"planner " + std::string(planner) + ": " + reason +
                 ". The planners on-demand, belady and best plan for more machines"};
}

}  // namespace

Result<Plan> make_plan(std::string_view planner, const Trace& trace, const Machine& machine,
                       const PlanningOptions& options) {
  if (const Check check = check_machine(machine); !check) return Problem{"machine: " + check.problem().message};
  if (const std::string* name = detail::missing_engine(trace, machine)) {
    return Problem{"the machine has no engine " + *name + " with a memory, which operations name"};
  }
  const Result<swapmm::Machine> old = to_version_1(machine);
  const bool is_plain = swapmm::planning::is_version_1_but_for_ways(trace);
  if (old && (is_plain || (knows_ways(planner) && trace.engines.empty()))) {
    Result<Plan> plan = plan_in_version_1(planner, trace, machine, *old, options);
    if (plan) {
      std::chrono::nanoseconds bound = plan->predicted.lower_bound;
      if (pads_tensors(trace, *old)) {
        const Result<std::chrono::nanoseconds> of_pieces = lower_bound(trace, machine);
        bound = std::min(bound, of_pieces ? *of_pieces : plan->predicted.compute);
      }
      planning::predict(trace, *plan);
      plan->predicted.lower_bound = bound;
    }
    // The planners for many memories know one place in the host for an input.
    const bool is_for_many = planner == "best" || planner == "belady" || planner == "on-demand";
    if (plan || !is_for_many || !planning::changes_input_that_host_reads(trace)) return plan;
  }
  if (!trace.lingering.empty())
    return Problem{"values linger in the trace, and plans for this machine do not keep them"};
  if (planner == "checkpoint-units") {
    return Problem{
        "the planner checkpoint-units plans for one device and one host, and for operations without engines"};
  }
  if (std::ranges::count(swapmm::planners(), planner, &NamedPlanner::name) == 0) {
    return swapmm::make_plan(planner, trace, {}, options).problem();  // it tells the names
  }
  std::optional<Result<std::chrono::nanoseconds>> known;
  const planning::LazyBound bound = [&](std::chrono::nanoseconds fastest) {
    // When planning is to end, a dozen steps are worth their time; for several devices each takes longer.
    const auto go_on = [&, steps = trace.engines.size() > 1 ? 0 : 12]() mutable {
      const PlanningProgress progress{fastest, std::chrono::nanoseconds{0}, 0.8};
      return !options.go_on || options.go_on(progress) || steps-- > 0;
    };
    if (!known) known = planning::lower_bound_while(trace, machine, {}, go_on);
    return *known ? **known : std::chrono::nanoseconds{0};
  };
  Result<Plan> plan = plan_for_many(planner, trace, machine, options, bound);
  if (!plan) return plan;
  plan->planner = planner;
  plan->predicted.lower_bound = bound(plan->predicted.iteration);
  if (!*known) return known->problem();
  return plan;
}

}  // namespace swapmm::v2
