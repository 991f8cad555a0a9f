// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm {

/// Position of a data node in Graph::data.
enum class DataId : std::uint32_t {};

/// One value of one tensor. As in static single assignment, a whole write or an update begins the next version of the
/// tensor. A node therefore never changes, and an edge is always the flow of one value.
struct DataNode {
  TensorId tensor{};          ///< the tensor
  std::uint32_t version = 0;  ///< counts the values of the tensor in the iteration, from 0
  /// The operation that made it. None if the value comes from the host (input) or the iteration before (persistent).
  std::optional<OperationId> made_by;
  std::vector<OperationId> used_by;     ///< operations that read or update it, ascending
  std::vector<OperationId> host_reads;  ///< operations after which the host reads it, ascending
  /// For the last value of a persistent tensor: its node in the next iteration, if something uses the value there.
  std::optional<DataId> carried_to;

  friend bool operator==(const DataNode&, const DataNode&) = default;
};

/// One unit operation of the trace, with its input and output values.
struct OperationNode {
  std::vector<DataId> takes;  ///< values that it reads, then values that it updates, in the order of the trace
  std::vector<DataId> gives;  ///< values that it writes, then values that it updates, in the order of the trace

  friend bool operator==(const OperationNode&, const OperationNode&) = default;
};

/// The flow of values through one iteration. Edges lead from data to the operations that take it, from operations to
/// the data that they give, and over the iteration's end from a persistent tensor's last value to its first. Without
/// these last edges the graph is acyclic, and both kinds of nodes are in an order in which every edge leads forward.
struct Graph {
  std::vector<DataNode> data;             ///< indexed by DataId
  std::vector<OperationNode> operations;  ///< indexed by OperationId

  friend bool operator==(const Graph&, const Graph&) = default;
};

/// Makes the graph of a trace that passed check_trace(). A value that neither an operation nor the host uses has a node
/// only if an operation makes it. Linear in the size of the trace, except for sorting the host reads.
[[nodiscard]] SWAPMM_EXPORT Graph make_graph(const Trace& trace);

}  // namespace swapmm
