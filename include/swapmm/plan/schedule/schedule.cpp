// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/schedule/schedule.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/schedule/command_writer.hpp>
#include <swapmm/plan/schedule/stay_facts.hpp>
#include <swapmm/plan/simulate.hpp>

namespace swapmm::planning {
namespace {

PackingProblem packing_problem(const PlanningCase& planning) {
  PackingProblem problem;
  problem.slots = planning.operations;
  problem.capacity = Bytes{planning.budget};
  problem.alignment = planning.machine.alignment;
  problem.max_allocation = planning.machine.max_allocation;
  return problem;
}

Result<Packing> pack_stays(const PlanningCase& planning, const Schedule& schedule, const std::vector<StayFacts>& facts,
                           PackingEffort effort, std::span<const Bytes> preferred) {
  PackingProblem problem = packing_problem(planning);
  problem.items.reserve(facts.size());
  for (std::size_t s = 0; s < facts.size(); ++s) {
    const Stay& stay = schedule.stays[s];
    problem.items.push_back(
        {Bytes{planning.sizes[index(stay.tensor)]}, stay.start, packed_length(planning, stay, facts[s])});
  }
  return pack_towards(problem, effort, preferred);
}

Problem bundle_does_not_pack(const PlanningCase& planning, std::uint32_t operation, Bytes bundle) {
  std::string message = "operation " + std::to_string(operation) + " (" + planning.trace.operations[operation].name +
                        ") needs a bundle of " + std::to_string(bundle.value) +
                        " bytes; it does not pack into the device budget of " + std::to_string(planning.budget);
  if (planning.machine.max_allocation) {
    message += " in allocations of " + std::to_string(planning.machine.max_allocation->value);
  }
  return {message};
}

/// Packs stays of one operation each, sorted by start: bundle by bundle, because they do not overlap in time.
Result<Packing> pack_bundles(const PlanningCase& planning, const std::vector<Stay>& stays) {
  PackingProblem problem = packing_problem(planning);
  problem.slots = 1;
  Packing all;
  all.offsets.reserve(stays.size());
  for (std::size_t s = 0; s < stays.size();) {
    const std::uint32_t operation = stays[s].start;
    problem.items.clear();
    Bytes bundle;
    for (; s < stays.size() && stays[s].start == operation; ++s) {
      const Bytes size{planning.sizes[index(stays[s].tensor)]};
      if (problem.max_allocation) {
        problem.items.push_back({size, 0, 1});
      } else {
        all.offsets.push_back(size.value == 0 ? Bytes{0} : bundle);
      }
      bundle += size;
    }
    all.height = std::max(all.height, bundle);
    if (!problem.max_allocation) continue;
    Result<Packing> packing = pack(problem);
    if (!packing) return bundle_does_not_pack(planning, operation, bundle);
    all.offsets.insert(all.offsets.end(), packing->offsets.begin(), packing->offsets.end());
    all.height = std::max(all.height, packing->height);
  }
  return all;
}

bool are_single_bundles(const std::vector<Stay>& stays) {
  return std::all_of(stays.begin(), stays.end(), [](const Stay& stay) { return stay.length == 1 && !stay.always; }) &&
         std::is_sorted(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) { return a.start < b.start; });
}

/// The facts of all stays that follow from the trace.
struct Facts {
  std::vector<StayFacts> of_stays;
  std::vector<WriteBack> write_backs;
};

Facts facts_of(const PlanningCase& planning, const Schedule& schedule) {
  Facts facts;
  facts.of_stays.reserve(schedule.stays.size());
  for (const Stay& stay : schedule.stays) {
    facts.of_stays.push_back(find_stay_facts(planning, stay, schedule.pace, facts.write_backs));
  }
  return facts;
}

Plan write_plan(const PlanningCase& planning, const Schedule& schedule, const Facts& facts, std::string_view planner,
                const std::vector<Bytes>& offsets) {
  Plan plan;
  plan.planner = planner;
  plan.machine = planning.machine;
  for (std::size_t s = 0; s < facts.of_stays.size(); ++s) {
    if (!facts.of_stays[s].crosses_wrap) continue;
    plan.initial.push_back({schedule.stays[s].tensor, offsets[s], facts.of_stays[s].host_valid});
  }
  std::sort(plan.initial.begin(), plan.initial.end(),
            [](const Resident& a, const Resident& b) { return a.tensor < b.tensor; });
  plan.commands = write_commands({planning, schedule, facts.of_stays, facts.write_backs, offsets});
  return plan;
}

void predict(const PlanningCase& planning, Plan& plan) {
  plan.trace_digest = digest(planning.trace);
  const Simulation simulation = simulate(planning.trace, plan);
  plan.predicted.iteration = simulation.iteration;
  plan.predicted.compute = simulation.compute;
  plan.predicted.h2d = simulation.h2d;
  plan.predicted.d2h = simulation.d2h;
  plan.predicted.peak = simulation.peak;
}

}  // namespace

Stay make_stay(TensorId tensor, std::uint32_t start, std::uint32_t end) {
  return {tensor, start, end - start, start, 0, 0, false, 0};
}

Stay make_permanent_stay(TensorId tensor, std::uint32_t operations) {
  return {tensor, 0, operations, 0, 0, 0, true, 0};
}

std::vector<Stay> single_use_stays(const PlanningCase& planning) {
  std::vector<Stay> stays;
  for (std::uint32_t i = 0; i < planning.operations; ++i) {
    for_each_access(planning.trace.operations[i],
                    [&](TensorId id, Access) { stays.push_back(make_stay(id, i, i + 1)); });
  }
  return stays;
}

Result<BuiltPlan> build_plan(const PlanningCase& planning, const Schedule& schedule, std::string_view planner,
                             PackingEffort effort, std::span<const Bytes> preferred) {
  const Facts facts = facts_of(planning, schedule);
  Result<Packing> packing = are_single_bundles(schedule.stays)
                                ? pack_bundles(planning, schedule.stays)
                                : pack_stays(planning, schedule, facts.of_stays, effort, preferred);
  if (!packing) return packing.problem();
  BuiltPlan built{{}, packing->height, packing->offsets, packing->unplaced};
  if (packing->height.value <= planning.budget)
    built.plan = write_plan(planning, schedule, facts, planner, built.offsets);
  return built;
}

Plan build_placed_plan(const PlanningCase& planning, const Schedule& schedule, std::string_view planner,
                       std::span<const Bytes> offsets) {
  return write_plan(planning, schedule, facts_of(planning, schedule), planner, {offsets.begin(), offsets.end()});
}

Result<Plan> build_per_operation_plan(const PlanningCase& planning, Pace pace, std::string_view planner) {
  Result<BuiltPlan> built = build_plan(planning, {pace, single_use_stays(planning)}, planner);
  if (!built) return built.problem();
  return *std::move(built->plan);  // there is one, because a bundle that does not pack is a Problem
}

void finish_plan(const PlanningCase& planning, Plan& plan, const BoundOptions& bound) {
  predict(planning, plan);
  const Prediction& predicted = plan.predicted;
  const BoundEffort& effort = bound_effort_for(planning, bound);
  // A plan without a stall needs no proof that nothing is faster.
  const bool needs_proof = predicted.iteration != predicted.compute && effort.rounds > 0;
  plan.predicted.lower_bound =
      needs_proof ? relax_swaps(planning, OverlapLedger(planning), effort).lower_bound : predicted.compute;
}

void finish_plan(const PlanningCase& planning, Plan& plan, std::chrono::nanoseconds lower_bound) {
  predict(planning, plan);
  const Prediction& predicted = plan.predicted;
  plan.predicted.lower_bound = predicted.iteration == predicted.compute ? predicted.compute : lower_bound;
}

}  // namespace swapmm::planning
