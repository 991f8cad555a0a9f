// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/transition.hpp>
#include <swapmm/plan/v2/transition/places.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::v2 {
namespace {

/// The same plan on another machine, whose memories and links have the same names. None if something is missing.
std::optional<Plan> on_machine(const Trace& trace, const Plan& plan, const Machine& machine) {
  Plan moved = plan;
  moved.machine = machine;
  const auto memories = transition::same_memories(plan.machine, machine);
  const auto find = [](const auto& list, const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(list, name, [](const auto& one) { return one.name; }) -
                                    list.begin());
  };
  for (Place& place : moved.initial) {
    if (!memories[index(place.memory)]) return std::nullopt;
    place.memory = *memories[index(place.memory)];
  }
  for (Command& command : moved.commands) {
    switch (command.kind) {
      case CommandKind::allocate:
      case CommandKind::release:
        if (!memories[index(command.memory)]) return std::nullopt;
        command.memory = *memories[index(command.memory)];
        break;
      case CommandKind::copy: {
        const std::size_t link = find(machine.links, plan.machine.links[index(command.link)].name);
        if (link == machine.links.size()) return std::nullopt;
        command.link = id_at<LinkId>(link);
        break;
      }
      case CommandKind::run: break;
      case CommandKind::encode:
      case CommandKind::decode: {
        const std::size_t engine = find(machine.engines, plan.machine.engines[index(command.engine)].name);
        if (engine == machine.engines.size()) return std::nullopt;
        command.engine = id_at<EngineId>(engine);
        break;
      }
    }
  }
  moved.predicted.links.clear();  // of the machine as it was
  moved.predicted.peaks.clear();
  if (!check_plan(moved) || !validate(trace, moved).empty()) return std::nullopt;
  return moved;
}

}  // namespace

Machine without_memory(const Machine& machine, MemoryId memory) {
  Machine less = machine;
  const auto moved = [&](MemoryId id) { return index(id) > index(memory) ? id_at<MemoryId>(index(id) - 1) : id; };
  less.memories.erase(less.memories.begin() + static_cast<std::ptrdiff_t>(index(memory)));
  std::erase_if(less.links, [&](const Link& link) { return link.from == memory || link.to == memory; });
  for (Link& link : less.links) {
    link.from = moved(link.from);
    link.to = moved(link.to);
  }
  for (Engine& engine : less.engines) {
    if (engine.memory) engine.memory = moved(*engine.memory);
  }
  less.host = moved(less.host);
  return less;
}

Result<Replan> plan_for_other_memory(std::string_view planner, const Trace& trace, const Plan& now,
                                     const Machine& machine, const PlanningOptions& options, std::size_t iterations) {
  if (const Check check = check_machine(machine); !check) return Problem{"machine: " + check.problem().message};
  if (std::optional<Plan> same = on_machine(trace, now, machine)) {
    const std::chrono::nanoseconds bound = same->predicted.lower_bound;
    planning::predict(trace, *same);
    same->predicted.lower_bound = bound;
    // Places keep their offsets; but what the plan says of the first iteration may differ from what is there by now.
    Result<Transition> transition = make_transition(trace, now, *same, iterations);
    if (transition) return Replan{*std::move(same), *std::move(transition)};
  }
  Result<Plan> plan = make_plan(planner, trace, machine, options);
  if (!plan) return plan.problem();
  Result<Transition> transition = make_transition(trace, now, *plan, iterations);
  if (!transition) return transition.problem();
  return Replan{*std::move(plan), *std::move(transition)};
}

}  // namespace swapmm::v2
