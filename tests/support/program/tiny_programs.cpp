// SPDX-License-Identifier: Apache-2.0
#include "support/program/tiny_programs.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "support/program/runner.hpp"

namespace swapmm::test {
namespace {

constexpr std::uint32_t unit = 16;

/// One step on two tensors: nothing, or an access of each.
struct TinyStep {
  std::array<std::optional<Access>, 2> access;
  bool scratch = false;
  std::optional<ActionKind> host;  ///< an upload or a download
  std::uint8_t slot = 0;           ///< of what the host does
};

std::vector<TinyStep> all_steps() {
  constexpr std::array<std::optional<Access>, 4> accesses{std::nullopt, Access::read, Access::write, Access::update};
  std::vector<TinyStep> steps;
  for (const auto& first : accesses) {
    for (const auto& second : accesses) {
      if (!first && !second) continue;
      steps.push_back({{first, second}, false, {}, 0});
      if (!first || !second) steps.push_back({{first, second}, true, {}, 0});
    }
  }
  for (const ActionKind kind : {ActionKind::upload, ActionKind::download}) {
    for (const std::uint8_t slot : {std::uint8_t{0}, std::uint8_t{1}}) steps.push_back({{}, false, kind, slot});
  }
  return steps;
}

/// The same with the other names of the tensors.
std::size_t mirrored(const std::vector<TinyStep>& steps, std::size_t number) {
  const TinyStep& step = steps[number];
  const auto other = std::find_if(steps.begin(), steps.end(), [&](const TinyStep& candidate) {
    if (step.host) return candidate.host == step.host && candidate.slot != step.slot;
    return !candidate.host && candidate.scratch == step.scratch && candidate.access[0] == step.access[1] &&
           candidate.access[1] == step.access[0];
  });
  return static_cast<std::size_t>(other - steps.begin());
}

Action action_of(ActionKind kind, std::uint8_t slot = 0) {
  Action action;
  action.kind = kind;
  action.slot = slot;
  return action;
}

Action action_of(const TinyStep& step) {
  if (step.host) return action_of(*step.host, step.slot);
  Action action = action_of(ActionKind::operation);
  for (std::uint8_t slot = 0; slot < 2; ++slot) {
    if (step.access[slot]) action.parts[action.part_count++] = {slot, *step.access[slot]};
  }
  if (step.scratch) action.bytes = unit;
  return action;
}

TestProgram program_of(const std::vector<Action>& steps, TinyCourse course) {
  TestProgram program = tiny_program(2, 2);
  program.steady = false;
  auto& actions = program.actions;
  if (course == TinyCourse::on_demand) {
    program.scheduler.observe = 0;
    actions.insert(actions.end(), steps.begin(), steps.end());
  } else {
    program.scheduler.planner = "excess-overlap";
    for (int i = 0; i < 4; ++i) {
      actions.push_back(action_of(ActionKind::begin_iteration));
      actions.insert(actions.end(), steps.begin(), steps.end());
      actions.push_back(action_of(ActionKind::end_iteration));
    }
  }
  program.reads_all = true;
  program.ends_plainly = true;
  return program;
}

}  // namespace

TestProgram tiny_program(std::uint8_t tensors, std::uint64_t room) {
  TestProgram program;
  program.device.order = simulated::Order::chosen;
  program.device.steps_in_calls = false;
  program.device.pieces = 1;
  program.device.device_bytes = Bytes{unit * room};
  program.manager.device_budget = Bytes{unit * room};
  program.manager.queue_depth = 8;
  program.scheduler.observe = 1;
  program.scheduler.trial_iterations = 0;  // and nothing but the program's own work in the queues
  program.scheduler.planning_time = std::chrono::milliseconds{0};
  program.scheduler.planning_limit = std::chrono::milliseconds{0};
  program.steady = true;
  for (std::uint8_t slot = 0; slot < tensors; ++slot) {
    Action made = action_of(ActionKind::make, slot);
    made.bytes = unit;
    made.slices = 1;
    program.actions.push_back(made);
    program.actions.push_back(action_of(ActionKind::upload, slot));
  }
  return program;
}

Interleavings run_interleavings(TestProgram program) {
  simulated::Choices choices;
  program.device.choices = &choices;
  Interleavings result;
  do {
    const RunResult run = run_program(program);
    ++result.runs;
    result.followed += run.iterations_followed;
    if (!run.failure.empty()) {
      result.failure = run.failure;
      return result;
    }
  } while (choices.next_path());
  return result;
}

TinyEnumeration run_tiny_programs(std::size_t length, TinyCourse course) {
  const std::vector<TinyStep> steps = all_steps();
  TinyEnumeration result;
  std::vector<std::size_t> word(length, 0);
  std::vector<Action> actions(length);
  for (bool more = true; more;) {
    std::vector<std::size_t> mirror;
    for (const std::size_t number : word) mirror.push_back(mirrored(steps, number));
    if (word <= mirror) {
      std::transform(word.begin(), word.end(), actions.begin(), [&](std::size_t i) { return action_of(steps[i]); });
      const TestProgram program = program_of(actions, course);
      const Interleavings interleavings = run_interleavings(program);
      ++result.programs;
      result.runs += interleavings.runs;
      result.followed += interleavings.followed;
      result.most_runs = std::max(result.most_runs, interleavings.runs);
      if (!interleavings.failure.empty()) {
        std::ostringstream text;
        text << "interleaving " << interleavings.runs << ": " << interleavings.failure << "\n" << program;
        result.failure = text.str();
        return result;
      }
    }
    more = false;  // the next word, as a number of `length` digits
    for (std::size_t digit = length; digit-- > 0 && !more;) {
      more = ++word[digit] != steps.size();
      if (!more) word[digit] = 0;
    }
  }
  return result;
}

}  // namespace swapmm::test
