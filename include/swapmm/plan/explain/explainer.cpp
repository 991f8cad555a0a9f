// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/explain.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/ir/graph.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validation/happens_before.hpp>
#include <swapmm/plan/validation/tensor_events.hpp>

namespace swapmm {
namespace {

using std::chrono::nanoseconds;

/// The uses of a tensor before and after one of its releases.
struct Surroundings {
  std::optional<OperationId> last_use;
  std::optional<OperationId> next_use;
  bool next_is_later_iteration = false;
};

/// `ended` is the number of operations, counted from the start of the iteration, that have ended when the release
/// starts. In a valid plan a release comes after the uses of its stay and before the uses of the next stay.
Surroundings uses_around(std::span<const OperationId> uses, std::int64_t ended, std::int64_t operations) {
  if (uses.empty() || ended < -operations) return {};
  // Earlier iterations have the same uses, so count in the iteration in which the last of these operations ended.
  const std::int64_t within = ended < 0 ? ended + operations : ended;
  const auto next =
      std::find_if(uses.begin(), uses.end(), [&](OperationId use) { return static_cast<std::int64_t>(use) >= within; });
  const OperationId last_use = next == uses.begin() ? uses.back() : *(next - 1);
  const bool ends = next == uses.begin() || next == uses.end();
  return {last_use, next == uses.end() ? uses.front() : *next, ends};
}

/// The operations that use a tensor, in their order.
std::vector<OperationId> uses_in(std::span<const validation::TensorEvent> events) {
  using validation::Event;
  std::vector<OperationId> uses;
  for (const validation::TensorEvent& event : events) {
    if (!is_access(event.event)) continue;
    uses.push_back(id_at<OperationId>(event.operation));
  }
  return uses;
}

}  // namespace

std::vector<PlannedAbsence> find_absences(const Trace& trace, const Plan& plan) {
  const validation::HappensBefore order(trace, plan);
  const validation::TensorEvents events(trace, make_graph(trace), plan, order);
  const Simulation simulation = simulate(trace, plan);
  const auto operations = static_cast<std::int64_t>(trace.operations.size());

  std::vector<PlannedAbsence> absences;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const std::span<const std::uint32_t> commands = events.commands(t);
    const auto arrives = [&](std::uint32_t command) { return has_place(plan.commands[command].kind); };
    const std::vector<OperationId> uses = uses_in(events.events(t));
    for (auto release = commands.begin(); release != commands.end(); ++release) {
      if (plan.commands[*release].kind != CommandKind::release) continue;
      auto arrival = std::find_if(release, commands.end(), arrives);
      const bool crosses_wrap = arrival == commands.end();
      if (crosses_wrap) arrival = std::find_if(commands.begin(), release, arrives);
      if (arrival == release || plan.commands[*arrival].kind != CommandKind::swap_in) continue;
      const Surroundings around = uses_around(uses, order.operations_ended_before(*release), operations);
      if (around.next_is_later_iteration && trace.tensors[t].kind != TensorKind::persistent) continue;
      const nanoseconds time = simulation.commands[*arrival].start - simulation.commands[*release].end +
                               (crosses_wrap ? simulation.iteration : nanoseconds{0});
      absences.push_back({id_at<TensorId>(t), CommandId{*release}, CommandId{*arrival}, crosses_wrap,
                          std::max(time, nanoseconds{0}), around.last_use, around.next_use});
    }
  }
  std::stable_sort(absences.begin(), absences.end(),
                   [](const PlannedAbsence& a, const PlannedAbsence& b) { return a.time > b.time; });
  return absences;
}

Bytes host_bytes(const Trace& trace, const Plan& plan) {
  std::vector<bool> is_copied(trace.tensors.size(), false);
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::swap_in || command.kind == CommandKind::swap_out) {
      is_copied[index(command.tensor)] = true;
    }
  }
  Bytes bytes;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const TraceTensor& tensor = trace.tensors[t];
    if (!is_copied[t]) continue;
    bytes += tensor.bytes;
    if (tensor.kind == TensorKind::input) bytes += tensor.bytes;
  }
  return bytes;
}

}  // namespace swapmm
