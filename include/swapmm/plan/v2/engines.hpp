// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2 {

/// The engines and memories of a trace's operations on a machine that has them; see missing_engine().
class Engines {
 public:
  Engines(const Trace& trace, const Machine& machine) : computes_(machine.memories.size(), false) {
    std::vector<EngineId> named;
    for (const std::string& name : trace.engines) {
      const auto found = std::ranges::find(machine.engines, name, &Engine::name);
      named.push_back(id_at<EngineId>(static_cast<std::size_t>(found - machine.engines.begin())));
    }
    const EngineId first = default_engine(machine);
    for (const TraceOperation& operation : trace.operations) {
      const bool has_name = operation.engine != TraceOperation::default_engine;
      engines_.push_back(has_name ? named[operation.engine] : first);
      memories_.push_back(*machine.engines[index(engines_.back())].memory);
      computes_[index(memories_.back())] = true;
    }
  }

  [[nodiscard]] EngineId engine(OperationId operation) const { return engines_[index(operation)]; }
  [[nodiscard]] MemoryId memory(OperationId operation) const { return memories_[index(operation)]; }
  /// Whether an operation has its tensors in this memory.
  [[nodiscard]] bool computes(MemoryId memory) const { return computes_[index(memory)]; }

 private:
  std::vector<EngineId> engines_;   // of each operation
  std::vector<MemoryId> memories_;  // of each operation
  std::vector<bool> computes_;      // of each memory
};

/// The engine that operations of the trace name and that the machine does not have, or that has no memory there.
[[nodiscard]] inline const std::string* missing_engine(const Trace& trace, const Machine& machine) {
  for (const TraceOperation& operation : trace.operations) {
    if (operation.engine == TraceOperation::default_engine) continue;
    const std::string& name = trace.engines[operation.engine];
    const auto found = std::ranges::find(machine.engines, name, &Engine::name);
    if (found == machine.engines.end() || !found->memory) return &name;
  }
  return nullptr;
}

}  // namespace swapmm::v2
