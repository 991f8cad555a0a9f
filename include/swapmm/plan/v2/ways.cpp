// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/recompute.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace swapmm::v2 {
namespace {

/// Turns replays that are operations of a plan into commands.
class ReplayCommands {
 public:
  ReplayCommands(const ReplayedTrace& replayed, Plan& plan)
      : replayed_(replayed), plan_(plan), place_(replayed.runs.size()) {
    std::size_t operations = 0;
    std::size_t commands = plan.commands.size();
    for (std::size_t i = 0; i < replayed.runs.size(); ++i) {
      place_[i] = static_cast<std::int32_t>(replayed.is_replay[i] ? commands++ : operations++);
    }
    operations_ = operations;
  }

  void run() {
    const std::size_t moves = plan_.commands.size();
    append_replays();
    for (std::size_t c = 0; c < moves; ++c) {
      Command& command = plan_.commands[c];
      for (Wait& wait : command.after) wait = translated(wait);
      std::vector<std::uint32_t> before;
      for (const std::uint32_t operation : std::exchange(command.before_operations, {})) {
        let_wait(operation, static_cast<std::int32_t>(c), before);
      }
      plan_.commands[c].before_operations = std::move(before);
    }
  }

 private:
  void append_replays() {
    for (std::size_t i = 0; i < replayed_.runs.size(); ++i) {
      if (!replayed_.is_replay[i]) continue;
      Command command;
      command.kind = CommandKind::run;
      command.operation = static_cast<OperationId>(replayed_.runs[i]);
      std::size_t next = i;
      while (replayed_.is_replay[next]) ++next;  // a replay is never the last operation
      command.position = static_cast<std::uint32_t>(place_[next]);
      plan_.commands.push_back(std::move(command));
    }
  }

  [[nodiscard]] Wait translated(const Wait& wait) const {
    if (wait.on == Wait::On::command) return wait;
    const bool previous = wait.index < 0;
    const auto n = static_cast<std::int32_t>(replayed_.runs.size());
    const auto at = static_cast<std::size_t>(previous ? wait.index + n : wait.index);
    if (replayed_.is_replay[at]) return {Wait::On::command, previous, place_[at]};
    return {Wait::On::operation, false, previous ? place_[at] - static_cast<std::int32_t>(operations_) : place_[at]};
  }

  /// `operation` waits for the command: what is an operation still goes to `before`.
  void let_wait(std::uint32_t operation, std::int32_t command, std::vector<std::uint32_t>& before) {
    const auto n = static_cast<std::uint32_t>(replayed_.runs.size());
    const bool next_iteration = operation >= n;
    const std::size_t at = next_iteration ? operation - n : operation;
    if (replayed_.is_replay[at]) {
      plan_.commands[static_cast<std::size_t>(place_[at])].after.push_back(
          {Wait::On::command, next_iteration, command});
      return;
    }
    before.push_back(static_cast<std::uint32_t>(place_[at]) +
                     (next_iteration ? static_cast<std::uint32_t>(operations_) : 0U));
  }

  const ReplayedTrace& replayed_;
  Plan& plan_;
  std::vector<std::int32_t> place_;  // per operation with replays: the operation's or the command's number
  std::size_t operations_ = 0;
};

}  // namespace

Result<Plan> from_recomputing(const Trace& trace, const RecomputingPlan& plan) {
  const Result<ReplayedTrace> replayed = with_replays(trace, plan.replays);
  if (!replayed) return replayed.problem();
  if (digest(replayed->trace) != plan.plan.trace_digest) return Problem{"the plan is for another program"};
  Plan out = from_version_1(plan.plan);
  out.trace_digest = digest(trace);
  ReplayCommands(*replayed, out).run();
  return out;
}

}  // namespace swapmm::v2
