// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/call_log/graph_dot.hpp>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>

#include <swapmm/formats/dot_name.hpp>

namespace swapmm::call_log {
namespace {

using calls::Call;
using calls::OrderEdge;

std::string operation_node(std::size_t id) { return "operation" + std::to_string(id); }
std::string data_node(DataId id) { return "data" + std::to_string(index(id)); }

/// "[64, 128) of " if it is a part.
std::string range_of(const calls::RunOperation& operation, const calls::Place& place) {
  for (const calls::StorageAccess& access : operation.accesses) {
    if (place.is_host || access.storage != place.storage || access.whole) continue;
    return " [label=\"[" + std::to_string(access.offset) + ", " + std::to_string(access.offset + access.bytes) + ")\"]";
  }
  return "";
}

void write_data(std::ostream& out, const calls::CallLog& log, const calls::Run& run, const calls::ProgramGraph& graph,
                DataId id) {
  const DataNode& node = graph.flow.data[index(id)];
  const calls::Place& place = graph.places[index(node.tensor)];
  out << "  " << data_node(id) << " [shape=" << (place.is_host ? "note" : "ellipse") << ", label=\"";
  if (place.is_host) {
    out << "host memory " << std::to_string(index(node.tensor));
  } else {
    out << to_string(run.storages[place.storage].kind) << ' ' << std::to_string(run.storages[place.storage].object);
  }
  out << " v" << std::to_string(node.version) << "\\n" << std::to_string(place.bytes) << " bytes";
  if (const auto ended = graph.ended_by[index(id)]) {
    out << "\\nreleased by call " << std::to_string(log.calls[*ended].sequence);
  }
  out << "\"];\n";
}

}  // namespace

void write_dot(std::ostream& out, const calls::CallLog& log, const calls::Run& run, const calls::ProgramGraph& graph,
               std::size_t first, std::size_t count) {
  first = std::min(first, run.operations.size());
  const std::size_t end = first + std::min(count, run.operations.size() - first);
  out << "digraph \"process " << std::to_string(log.process) << "\" {\n";
  std::set<DataId> data;
  for (std::size_t i = first; i < end; ++i) {
    const Call& call = log.calls[run.operations[i].call];
    out << "  " << operation_node(i) << " [shape=box, label=\"" << std::to_string(call.sequence) << ' '
        << dot::escaped(call.name.empty() ? call.function : call.name) << "\\nqueue "
        << std::to_string(graph.queues[i]);
    if (call.duration) out << ", " << std::to_string(call.duration->count()) << " ns";
    out << "\"];\n";
    data.insert(graph.flow.operations[i].takes.begin(), graph.flow.operations[i].takes.end());
    data.insert(graph.flow.operations[i].gives.begin(), graph.flow.operations[i].gives.end());
  }
  for (const DataId id : data) write_data(out, log, run, graph, id);
  for (std::size_t i = first; i < end; ++i) {
    const auto place = [&](DataId id) { return graph.places[index(graph.flow.data[index(id)].tensor)]; };
    for (const DataId id : graph.flow.operations[i].takes) {
      out << "  " << data_node(id) << " -> " << operation_node(i) << range_of(run.operations[i], place(id)) << ";\n";
    }
    for (const DataId id : graph.flow.operations[i].gives) {
      out << "  " << operation_node(i) << " -> " << data_node(id) << range_of(run.operations[i], place(id)) << ";\n";
    }
  }
  for (const OrderEdge& edge : graph.order) {
    if (index(edge.from) < first || index(edge.to) < first || index(edge.from) >= end || index(edge.to) >= end)
      continue;
    out << "  " << operation_node(index(edge.from)) << " -> " << operation_node(index(edge.to))
        << (edge.reason == OrderEdge::Reason::queue ? " [style=dotted, constraint=false];\n"
                                                    : " [style=dashed, constraint=false];\n");
  }
  out << "}\n";
}

}  // namespace swapmm::call_log
