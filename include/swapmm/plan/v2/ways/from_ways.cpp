// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/ways.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/ways/written_plan.hpp>

namespace swapmm::v2 {
namespace {

using Kind = WrittenStep::Kind;

/// Turns the steps of a written-out program that are no operations of the original into commands, and tensors for
/// encoded values into forms.
class WayCommands {
 public:
  WayCommands(const Trace& trace, const WrittenTrace& written, Plan& plan)
      : written_(written), plan_(plan), engines_(written.trace, plan.machine), place_(written.steps.size()) {
    std::size_t operations = 0;
    std::size_t commands = plan.commands.size();
    for (std::size_t i = 0; i < written.steps.size(); ++i) {
      place_[i] = static_cast<std::int32_t>(is_operation(i) ? operations++ : commands++);
    }
    operations_ = operations;
    for (const EncodedTensor& encoded : written.encoded) {
      const std::string& name = forms_of(trace, encoded.tensor)[encoded.form].name;
      auto known = std::ranges::find(plan.forms, name);
      if (known == plan.forms.end()) known = plan.forms.insert(known, name);
      forms_.push_back(static_cast<FormId>(known - plan.forms.begin() + 1));
    }
  }

  void run() {
    for (Place& place : plan_.initial) name_part(place);
    for (Command& command : plan_.commands) name_part(command);
    const std::size_t moves = plan_.commands.size();
    append_steps();
    for (std::size_t c = 0; c < moves; ++c) {
      Command& command = plan_.commands[c];
      for (Wait& wait : command.after) wait = translated(wait);
      std::vector<std::uint32_t> before;
      for (const std::uint32_t operation : std::exchange(command.before_operations, {})) {
        let_wait(operation, static_cast<std::int32_t>(c), before);
      }
      plan_.commands[c].before_operations = std::move(before);
      if (command.position) command.position = position_of(*command.position);
    }
    if (!written_.trace.engines.empty()) keep_conflicts_apart();
  }

 private:
  [[nodiscard]] bool is_operation(std::size_t step) const { return written_.steps[step].kind == Kind::operation; }

  /// Whoever means a tensor of the written-out program means a tensor of the original, a piece of one, or a form.
  template <class T>
  void name_part(T& place_or_command) const {
    const std::size_t tensor = index(place_or_command.tensor);
    if (tensor < written_.parts.size()) {
      place_or_command.tensor = written_.parts[tensor].tensor;
      place_or_command.piece = written_.parts[tensor].piece;
      return;
    }
    const std::size_t number = tensor - written_.parts.size();
    place_or_command.tensor = written_.encoded[number].tensor;
    place_or_command.form = forms_[number];
  }

  void append_steps() {
    for (std::size_t i = 0; i < written_.steps.size(); ++i) {
      if (is_operation(i)) continue;
      const WrittenStep& step = written_.steps[i];
      Command command;
      if (step.kind == Kind::replay) {
        command.kind = CommandKind::run;
        command.operation = static_cast<OperationId>(step.which);
      } else {
        command.kind = step.kind == Kind::encode ? CommandKind::encode : CommandKind::decode;
        command.tensor = written_.encoded[step.which].tensor;
        command.form = forms_[step.which];
        command.engine = engines_.engine(id_at<OperationId>(i));
      }
      command.position = position_of(static_cast<std::uint32_t>(i));
      plan_.commands.push_back(std::move(command));
    }
  }

  /// The next operation of the original at or behind a step; the number of operations if there is none.
  [[nodiscard]] std::uint32_t position_of(std::uint32_t step) const {
    std::size_t next = step;
    while (next < written_.steps.size() && !is_operation(next)) ++next;
    return static_cast<std::uint32_t>(next < written_.steps.size() ? static_cast<std::size_t>(place_[next])
                                                                   : operations_);
  }

  /// Operations of different engines that access the same tensor in the same memory wait for each other, if one of them
  /// changes it. Commands do not by themselves.
  void keep_conflicts_apart() {
    struct Seen {
      std::optional<std::uint32_t> writer{};
      std::vector<std::uint32_t> readers{};  // since then
    };
    std::map<std::pair<MemoryId, TensorId>, Seen> seen;
    for (std::uint32_t i = 0; i < written_.steps.size(); ++i) {
      for_each_access(written_.trace.operations[i], [&](TensorId tensor, Access access) {
        Seen& before = seen[{engines_.memory(OperationId{i}), tensor}];
        if (before.writer) let_wait_for_step(i, *before.writer);
        if (access == Access::read) {
          before.readers.push_back(i);
          return;
        }
        for (const std::uint32_t reader : before.readers) let_wait_for_step(i, reader);
        before = {i, {}};
      });
    }
  }

  void let_wait_for_step(std::uint32_t step, std::uint32_t earlier) {
    const bool is_same_engine = engines_.engine(OperationId{step}) == engines_.engine(OperationId{earlier});
    if (is_same_engine || (is_operation(step) && is_operation(earlier))) return;
    const auto add = [](auto& list, const auto& entry) {
      if (std::ranges::find(list, entry) == list.end()) list.push_back(entry);
    };
    if (is_operation(step)) {
      add(plan_.commands[static_cast<std::size_t>(place_[earlier])].before_operations,
          static_cast<std::uint32_t>(place_[step]));
      return;
    }
    const Wait::On on = is_operation(earlier) ? Wait::On::operation : Wait::On::command;
    add(plan_.commands[static_cast<std::size_t>(place_[step])].after, Wait{on, false, place_[earlier]});
  }

  [[nodiscard]] Wait translated(const Wait& wait) const {
    if (wait.on == Wait::On::command) return wait;
    const bool previous = wait.index < 0;
    const auto n = static_cast<std::int32_t>(written_.steps.size());
    const auto at = static_cast<std::size_t>(previous ? wait.index + n : wait.index);
    if (!is_operation(at)) return {Wait::On::command, previous, place_[at]};
    return {Wait::On::operation, false, previous ? place_[at] - static_cast<std::int32_t>(operations_) : place_[at]};
  }

  /// `operation` waits for the command: what is an operation still goes to `before`.
  void let_wait(std::uint32_t operation, std::int32_t command, std::vector<std::uint32_t>& before) {
    const auto n = static_cast<std::uint32_t>(written_.steps.size());
    const bool next_iteration = operation >= n;
    const std::size_t at = next_iteration ? operation - n : operation;
    if (!is_operation(at)) {
      plan_.commands[static_cast<std::size_t>(place_[at])].after.push_back(
          {Wait::On::command, next_iteration, command});
      return;
    }
    before.push_back(static_cast<std::uint32_t>(place_[at]) +
                     (next_iteration ? static_cast<std::uint32_t>(operations_) : 0U));
  }

  const WrittenTrace& written_;
  Plan& plan_;
  const detail::Engines engines_;    // of the steps
  std::vector<std::int32_t> place_;  // per step: the operation's or the command's number
  std::size_t operations_ = 0;
  std::vector<FormId> forms_;  // per encoded tensor
};

}  // namespace

Plan planning::with_commands_of_ways(const Trace& trace, const WrittenTrace& written, const WaysBack& ways, Plan plan) {
  plan.trace_digest = digest(trace);
  for (const TensorPieces& pieces : ways.pieces) plan.pieces.push_back({pieces.tensor, pieces.at});
  WayCommands(trace, written, plan).run();
  return plan;
}

Result<Plan> from_ways(const Trace& trace, const PlanWithWays& plan) {
  const Result<WrittenTrace> written = with_ways(trace, plan.ways);
  if (!written) return written.problem();
  if (digest(written->trace) != plan.plan.trace_digest) return Problem{"the plan is for another program"};
  Plan made = planning::with_commands_of_ways(trace, *written, plan.ways, from_version_1(plan.plan));
  made.predicted.compute = swapmm::planning::compute_time(trace);  // without what a plan adds
  return made;
}

}  // namespace swapmm::v2
