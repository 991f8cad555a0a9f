// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/engine_part.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::planning {
namespace {

Problem used_by_two(const Trace& trace, std::size_t tensor) {
  return {"tensor " + std::to_string(tensor) + " \"" + trace.tensors[tensor].name + "\" is used by two engines"};
}

}  // namespace

Result<std::vector<EnginePart>> engine_parts(const Trace& trace, const Machine& machine) {
  const detail::Engines engines(trace, machine);
  const Uses uses(trace);
  std::vector<EnginePart> parts;
  std::map<EngineId, std::size_t> part_of;
  std::vector<std::optional<std::size_t>> user(trace.tensors.size());
  std::vector<TensorId> ids(trace.tensors.size());  // in its part
  std::vector<std::uint32_t> before(trace.operations.size() + 1);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const auto id = id_at<OperationId>(i);
    const EngineId engine = engines.engine(id);
    const std::size_t number = part_of.try_emplace(engine, parts.size()).first->second;
    if (number == parts.size()) parts.push_back({engine, engines.memory(id), {}, {}, {}});
    EnginePart& part = parts[number];
    TraceOperation& operation = part.trace.operations.emplace_back();
    part.operations.push_back(id);
    operation.name = trace.operations[i].name;
    operation.duration = trace.operations[i].duration;
    std::optional<Problem> problem;
    for_each_access(trace.operations[i], [&](TensorId tensor, Access access) {
      std::optional<std::size_t>& known = user[index(tensor)];
      if (known && *known != number) problem = used_by_two(trace, index(tensor));
      if (!known) {
        known = number;
        ids[index(tensor)] = id_at<TensorId>(part.tensors.size());
        part.tensors.push_back(tensor);
        part.trace.tensors.push_back(trace.tensors[index(tensor)]);
      }
      const bool whole = access == Access::write && uses.writes_whole(tensor, id);
      auto& list = access == Access::read ? operation.reads : whole ? operation.writes : operation.updates;
      list.push_back(ids[index(tensor)]);
    });
    if (problem) return *problem;
  }
  // What the host gives or reads needs a place even if no operation uses it.
  const auto keep = [&](TensorId tensor) {
    std::optional<std::size_t>& known = user[index(tensor)];
    if (known) return;
    known = 0;
    ids[index(tensor)] = id_at<TensorId>(parts[0].tensors.size());
    parts[0].tensors.push_back(tensor);
    parts[0].trace.tensors.push_back(trace.tensors[index(tensor)]);
  };
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (trace.tensors[t].kind == TensorKind::input) keep(id_at<TensorId>(t));
  }
  for (const HostRead& read : trace.host_reads) keep(read.tensor);
  for (EnginePart& part : parts) {
    if (!machine.memories[index(part.memory)].bytes) {
      return Problem{"memory " + machine.memories[index(part.memory)].name + " has no limit, and operations run there"};
    }
    for (const EnginePart& other : parts) {
      if (&other == &part || other.memory != part.memory) continue;
      return Problem{"two engines run operations in memory " + machine.memories[index(part.memory)].name};
    }
    // Operations of the part before each operation of the trace.
    const auto operations_before = [&](std::size_t operation) {
      const auto found = std::ranges::lower_bound(part.operations, id_at<OperationId>(operation));
      return static_cast<std::uint32_t>(found - part.operations.begin());
    };
    for (TraceTensor& tensor : part.trace.tensors) tensor.available_from = operations_before(tensor.available_from);
    for (const HostRead& read : trace.host_reads) {
      if (!user[index(read.tensor)] || &parts[*user[index(read.tensor)]] != &part) continue;
      const std::uint32_t ended = operations_before(index(read.after_operation) + 1);
      // Before the first operation, the value is the one that the iteration before has left.
      if (ended == 0) return Problem{"the host reads a value of the iteration before"};
      part.trace.host_reads.push_back({ids[index(read.tensor)], OperationId{ended - 1}});
    }
    part.trace.name = trace.name;
  }
  return parts;
}

}  // namespace swapmm::v2::planning
