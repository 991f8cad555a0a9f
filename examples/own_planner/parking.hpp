// SPDX-License-Identifier: Apache-2.0
// A planner of our own. Persistent tensors are parked as long as there is room: they stay on the device. All others
// come in before each operation that needs them and leave after it. docs/formats.md has the rules of a plan.
#pragma once

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
  Plan plan;
  plan.trace_digest = digest(trace);
  const auto size = [&](std::size_t t) { return round_up(trace.tensors[t].bytes, machine.alignment); };
  const Bytes bundle = analyze_liveness(trace, machine.alignment).largest_bundle;
  Bytes parked;  // the parked tensors lie one behind the other, and each bundle lies behind them
  std::vector<bool> is_parked(trace.tensors.size());
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const bool fits = parked + size(t) + bundle <= machine.device_budget;
    is_parked[t] = fits && trace.tensors[t].kind == TensorKind::persistent;
    if (is_parked[t]) plan.initial.push_back({id_at<TensorId>(t), std::exchange(parked, parked + size(t))});
  }
  const auto add = [&](Command command) {
    plan.commands.push_back(std::move(command));
    return after_command(id_at<CommandId>(plan.commands.size() - 1));
  };
  std::vector<Wait> releases;  // of the last bundle: when they have ended, the next bundle can come in
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    Bytes offset = parked;
    for_each_access(trace.operations[i], [&](TensorId id, Access access) {
      if (is_parked[index(id)]) return;
      const CommandKind kind = access == Access::write ? CommandKind::allocate : CommandKind::swap_in;
      add({kind, Tier::host, id, std::exchange(offset, offset + size(index(id))), releases, i});
    });
    if (offset == parked) continue;  // all of it is parked
    releases.clear();
    for_each_access(trace.operations[i], [&](TensorId id, Access access) {
      if (is_parked[index(id)]) return;
      Wait until = after_operation(id_at<OperationId>(i));
      if (access != Access::read) until = add({CommandKind::swap_out, Tier::host, id, {}, {until}, {}});
      releases.push_back(add({CommandKind::release, Tier::host, id, {}, {until}, {}}));
    });
  }
  for (std::size_t c = 0; c < plan.commands.size() && plan.commands[c].after.empty(); ++c) {  // of the first bundle
    for (const Wait& last : releases) plan.commands[c].after.push_back({Wait::On::command, true, last.index});
  }
  return plan;
}
