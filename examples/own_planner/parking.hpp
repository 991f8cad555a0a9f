// SPDX-License-Identifier: Apache-2.0
// A planner of our own. The tensors that are used most are parked: they stay on the device for good. All others come in
// right before each operation that needs them and leave right after it. docs/formats.md has the rules of a plan.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/planner.hpp>

inline swapmm::Result<swapmm::Plan> park(const swapmm::Trace& trace, const swapmm::Machine& machine) {
  using namespace swapmm;
  if (!trace.host_reads.empty()) return Problem{"parking cannot plan what the host reads within an iteration"};
  const Liveness liveness = analyze_liveness(trace, machine.alignment);
  const auto size = [&](TensorId id) { return round_up(trace.tensors[index(id)].bytes, machine.alignment); };
  Plan plan;
  plan.trace_digest = digest(trace);

  std::vector<TensorId> most_used_first;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) most_used_first.push_back(id_at<TensorId>(t));
  std::stable_sort(most_used_first.begin(), most_used_first.end(), [&](TensorId a, TensorId b) {
    return liveness.uses[index(a)].size() > liveness.uses[index(b)].size();
  });
  std::vector<bool> is_parked(trace.tensors.size());
  Bytes parked;  // one tensor behind the other, and room for any bundle behind them
  for (const TensorId id : most_used_first) {
    const bool has_room = parked + size(id) + liveness.largest_bundle <= machine.device_budget;
    if (!has_room || trace.tensors[index(id)].kind != TensorKind::persistent) continue;
    is_parked[index(id)] = true;
    plan.initial.push_back({id, parked, false});
    parked += size(id);
  }

  const auto add = [&](CommandKind kind, TensorId id, std::vector<Wait> after) -> Command& {
    Command& command = plan.commands.emplace_back();
    command.kind = kind;
    command.tensor = id;
    command.after = std::move(after);
    return command;
  };
  const auto last_command = [&] { return id_at<CommandId>(plan.commands.size() - 1); };
  std::vector<CommandId> freed;            // the releases behind the last operation that had any
  std::vector<std::size_t> first_to_come;  // arrivals before there are any: they wait for those of the iteration before
  const std::size_t n = trace.operations.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<std::pair<TensorId, Access>> bundle;
    for_each_access(trace.operations[i], [&](TensorId id, Access access) {
      if (!is_parked[index(id)]) bundle.emplace_back(id, access);
    });
    const Wait before =
        i > 0 ? after_operation(id_at<OperationId>(i - 1)) : after_previous_operation(id_at<OperationId>(n - 1), n);
    Bytes offset = parked;
    for (const auto& [id, access] : bundle) {
      Command& arrival = add(access == Access::write ? CommandKind::allocate : CommandKind::swap_in, id, {before});
      arrival.offset = std::exchange(offset, offset + size(id));
      arrival.before_operation = static_cast<std::uint32_t>(i);
      for (const CommandId release : freed) arrival.after.push_back(after_command(release));
      if (freed.empty()) first_to_come.push_back(plan.commands.size() - 1);
    }
    std::vector<CommandId> leaving;
    for (const auto& [id, access] : bundle) {
      Wait until = after_operation(id_at<OperationId>(i));
      if (access != Access::read) {
        add(CommandKind::swap_out, id, {until});
        until = after_command(last_command());
      }
      add(CommandKind::release, id, {until});
      leaving.push_back(last_command());
    }
    if (!leaving.empty()) freed = std::move(leaving);
  }
  for (const std::size_t arrival : first_to_come) {
    for (const CommandId release : freed) plan.commands[arrival].after.push_back(after_previous_command(release));
  }
  return plan;
}
