// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/dot.hpp>

#include <ostream>
#include <string>

#include <swapmm/formats/dot_name.hpp>

namespace swapmm {
namespace {

using dot::escaped;

// Streams may print numbers by their locale ("1,000"); std::to_string does not for integers.
std::string operation_node(OperationId id) { return "operation" + std::to_string(index(id)); }
std::string data_node(DataId id) { return "data" + std::to_string(index(id)); }

void write_operation(std::ostream& out, const Trace& trace, OperationId id) {
  const TraceOperation& operation = trace.operations[index(id)];
  out << "  " << operation_node(id) << " [shape=box, label=\"" << std::to_string(index(id)) << ' '
      << escaped(operation.name) << "\\n"
      << std::to_string(operation.duration.count()) << " ns\"];\n";
}

void write_data(std::ostream& out, const Trace& trace, const Graph& graph, DataId id) {
  const DataNode& node = graph.data[index(id)];
  const TraceTensor& tensor = trace.tensors[index(node.tensor)];
  out << "  " << data_node(id) << " [shape=ellipse, label=\"" << escaped(tensor.name) << " v"
      << std::to_string(node.version) << "\\n"
      << std::to_string(tensor.bytes.value) << " bytes, " << to_string(tensor.kind);
  for (const OperationId read : node.host_reads) out << "\\nread by the host after " << std::to_string(index(read));
  out << "\"];\n";
}

void write_edges(std::ostream& out, const Graph& graph, OperationId id) {
  const OperationNode& node = graph.operations[index(id)];
  for (const DataId data : node.takes) out << "  " << data_node(data) << " -> " << operation_node(id) << ";\n";
  for (const DataId data : node.gives) out << "  " << operation_node(id) << " -> " << data_node(data) << ";\n";
}

}  // namespace

void write_dot(std::ostream& out, const Trace& trace, const Graph& graph) {
  out << "digraph \"" << escaped(trace.name) << "\" {\n";
  for (std::size_t i = 0; i < graph.operations.size(); ++i) write_operation(out, trace, id_at<OperationId>(i));
  for (std::size_t i = 0; i < graph.data.size(); ++i) write_data(out, trace, graph, id_at<DataId>(i));
  for (std::size_t i = 0; i < graph.operations.size(); ++i) write_edges(out, graph, id_at<OperationId>(i));
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    // Edges over the end of the iteration do not count for the ranks; otherwise the layout would become a circle.
    if (const auto next = graph.data[i].carried_to) {
      out << "  " << data_node(id_at<DataId>(i)) << " -> " << data_node(*next)
          << " [style=dashed, constraint=false];\n";
    }
  }
  out << "}\n";
}

}  // namespace swapmm
