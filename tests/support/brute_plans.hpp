// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm::test {

/// Whether the value of the tensor after the operation (its own host reads included) is wanted by anybody.
[[nodiscard]] inline bool wanted_after(const Trace& trace, TensorId tensor, std::size_t operation) {
  const std::size_t n = trace.operations.size();
  const bool circular = trace.tensors[index(tensor)].kind == TensorKind::persistent;
  for (std::size_t step = 0; step <= n; ++step) {
    const std::size_t at = operation + step;
    if (at >= n && !circular) return false;
    if (step > 0) {
      bool touched = false;
      bool wanted = false;
      for_each_access(trace.operations[at % n], [&](TensorId id, Access access) {
        if (id != tensor) return;
        touched = true;
        wanted = access != Access::write;
      });
      if (touched) return wanted;
    }
    if (step == n) break;
    for (const HostRead& read : trace.host_reads) {
      if (read.tensor == tensor && index(read.after_operation) == at % n) return true;
    }
  }
  return circular;
}

/// Whether the value of the tensor after the operation lingers.
[[nodiscard]] inline bool lingers_after(const Trace& trace, TensorId tensor, std::size_t operation) {
  for (const LingeringValue& value : trace.lingering) {
    if (value.tensor == tensor && index(value.last_use) == operation) return true;
  }
  return false;
}

/// The plainest valid plan, straight from the rules: each bundle in before its operation, stacked from offset 0, all
/// of it out after it, one thing after another. Nothing where a bundle does not fit so.
[[nodiscard]] inline std::optional<Plan> brute_plan(const Trace& trace, const Machine& machine) {
  Plan plan;
  plan.trace_digest = digest(trace);
  plan.planner = "brute";
  plan.machine = machine;
  std::vector<Wait> last;  // what the next command comes after
  const auto add = [&](CommandKind kind, TensorId tensor, Bytes offset) -> Command& {
    Command command;
    command.kind = kind;
    command.tensor = tensor;
    command.offset = offset;
    command.after = last;
    plan.commands.push_back(command);
    last = {after_command(id_at<CommandId>(plan.commands.size() - 1))};
    return plan.commands.back();
  };

  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    Bytes offset;
    bool fits = true;
    last.push_back(
        i == 0 ? after_previous_operation(id_at<OperationId>(trace.operations.size() - 1), trace.operations.size())
               : after_operation(id_at<OperationId>(i - 1)));
    for_each_access(trace.operations[i], [&](TensorId tensor, Access access) {
      const Bytes size = trace.tensors[index(tensor)].bytes;
      if (machine.max_allocation) {
        const Bytes arena = *machine.max_allocation;
        if (offset.value % arena.value + size.value > arena.value) offset = round_up(offset, arena);
        fits = fits && size <= arena;
      }
      fits = fits && offset + size <= machine.device_budget;
      add(access == Access::write ? CommandKind::allocate : CommandKind::swap_in, tensor, offset).before_operation =
          static_cast<std::uint32_t>(i);
      offset = round_up(offset + size, machine.alignment);
    });
    if (!fits) return std::nullopt;
    last.push_back(after_operation(id_at<OperationId>(i)));
    for_each_access(trace.operations[i], [&](TensorId tensor, Access access) {
      if (access != Access::read && (wanted_after(trace, tensor, i) || lingers_after(trace, tensor, i)))
        add(CommandKind::swap_out, tensor, Bytes{0});
      add(CommandKind::release, tensor, Bytes{0});
    });
  }
  if (!plan.commands.empty()) {
    plan.commands.front().after.push_back(after_previous_command(id_at<CommandId>(plan.commands.size() - 1)));
  }
  return plan;
}

}  // namespace swapmm::test
