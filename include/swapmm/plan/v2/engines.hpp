// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::detail {

/// The engine of each name.
class EngineNames {
 public:
  explicit EngineNames(const Machine& machine) {
    for (std::size_t i = 0; i < machine.engines.size(); ++i) ids_.emplace(machine.engines[i].name, id_at<EngineId>(i));
  }
  [[nodiscard]] std::optional<EngineId> find(std::string_view name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? std::nullopt : std::optional{found->second};
  }

 private:
  std::unordered_map<std::string_view, EngineId> ids_;
};

/// An engine that operations of the trace name, and that the machine does not have, or that has no memory there.
[[nodiscard]] inline const std::string* missing_engine(const Trace& trace, const Machine& machine) {
  const EngineNames names(machine);
  std::vector<bool> used(trace.engines.size(), false);
  for (const TraceOperation& operation : trace.operations) {
    if (operation.engine != TraceOperation::default_engine) used[operation.engine] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto engine = names.find(trace.engines[i]);
    if (used[i] && (!engine || !machine.engines[index(*engine)].memory)) return &trace.engines[i];
  }
  return nullptr;
}

/// The engines and memories of a trace's operations. The machine must have all of them; see missing_engine().
class Engines {
 public:
  Engines(const Trace& trace, const Machine& machine) : computes_(machine.memories.size(), false) {
    const EngineNames names(machine);
    std::vector<EngineId> named;
    for (const std::string& name : trace.engines) named.push_back(names.find(name).value_or(EngineId{}));
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

}  // namespace swapmm::v2::detail
