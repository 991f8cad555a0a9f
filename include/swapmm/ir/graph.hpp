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

/// One value of one tensor. A whole write or an update ends the tensor's value and begins its next version, as in
/// static single assignment: so a node never changes, and an edge is always a flow of one value.
struct DataNode {
  TensorId tensor{};                    ///< whose value
  std::uint32_t version = 0;            ///< counts the values of the tensor in the iteration, from 0
  std::optional<OperationId> made_by;   ///< none: from the host (input) or the iteration before (persistent)
  std::vector<OperationId> used_by;     ///< operations that read or update it, ascending
  std::vector<OperationId> host_reads;  ///< the host reads it after these, ascending
  /// For the last value of a persistent tensor: the node it is in the next iteration, where something wants it.
  std::optional<DataId> carried_to;

  friend bool operator==(const DataNode&, const DataNode&) = default;
};

/// One unit operation of the trace, with the values that flow in and out.
struct OperationNode {
  std::vector<DataId> takes;  ///< what it reads, then what it updates, in the order of the trace
  std::vector<DataId> gives;  ///< what it writes, then what it updates, in the order of the trace

  friend bool operator==(const OperationNode&, const OperationNode&) = default;
};

/// The flow of values through one iteration: edges lead from data to the operations that take it, from operations
/// to the data they give, and over the wrap from a persistent tensor's last value to its first. Without the wrap it
/// has no circle: both kinds of nodes stand in an order in which every edge leads forward.
struct Graph {
  std::vector<DataNode> data;             ///< by DataId
  std::vector<OperationNode> operations;  ///< by OperationId

  friend bool operator==(const Graph&, const Graph&) = default;
};

/// The graph of a trace that passed check_trace(). A value that nobody takes, neither an operation nor the host, has
/// a node if an operation makes it, and none otherwise. Linear in the size of the trace, but for sorting host reads.
[[nodiscard]] SWAPMM_EXPORT Graph make_graph(const Trace& trace);

}  // namespace swapmm
