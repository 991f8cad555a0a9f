// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>

namespace swapmm::v2 {
namespace {

/// Whether values can come back in another way than by copies of their own size.
bool has_other_ways_back(const Trace& trace) {
  return !trace.forms.empty() || std::ranges::any_of(trace.operations, &TraceOperation::replayable);
}

}  // namespace

Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine, const BoundEffort& effort) {
  if (const std::string* name = detail::missing_engine(trace, machine)) {
    return Problem{"the machine has no engine " + *name + " with a memory, which operations name"};
  }
  const detail::Engines engines(trace, machine);
  std::set<EngineId> used;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) used.insert(engines.engine(id_at<OperationId>(i)));
  std::chrono::nanoseconds bound{0};
  for (const EngineId engine : used) {
    const Trace part = planning::part_on_engine(trace, machine, engine);
    std::chrono::nanoseconds compute{0};
    for (const TraceOperation& operation : part.operations) compute += operation.duration;
    bound = std::max(bound, compute);
    // What the host gives to an engine in its own memory needs no copy.
    const MemoryId memory = *machine.engines[index(engine)].memory;
    if (has_other_ways_back(trace) || memory == machine.host) continue;
    const auto merged = planning::merged_host(machine, memory);
    if (!merged || !swapmm::check_machine(*merged) || !check_trace(part)) continue;
    const Result<std::chrono::nanoseconds> copies = swapmm::lower_bound(part, *merged, effort);
    if (!copies) return copies.problem();
    bound = std::max(bound, *copies);
  }
  return bound;
}

}  // namespace swapmm::v2
