// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/ir/calls/call.hpp>
#include <swapmm/ir/calls/run.hpp>
#include <swapmm/ir/graph.hpp>

// Internal: the program as a graph. A log is a line of calls; the graph says what depends on what.

namespace swapmm::calls {

/// Where values are: a storage, or memory of the host.
struct Place {
  bool is_host = false;
  std::uint32_t storage = 0;  ///< position in Run::storages, if it is none of the host
  std::uint64_t address = 0;  ///< in the process, of host memory
  std::uint64_t bytes = 0;
};

/// An order that no value explains.
struct OrderEdge {
  enum class Reason : std::uint8_t { queue, event };
  OperationId from{};
  OperationId to{};
  Reason reason = Reason::queue;

  friend bool operator==(const OrderEdge&, const OrderEdge&) = default;
};

/// The flow of values through a run, and beside it the orders that the program asked for. The nodes are those of
/// swapmm::Graph; DataNode::tensor is a position in `places`. An update in place takes the version before and gives the
/// next one of the same place; a partial write is an update, because old bytes flow through it.
struct ProgramGraph {
  Graph flow;                 ///< its operations are Run::operations
  std::vector<Place> places;  ///< the storages, then memory of the host
  /// For each data node: the call that ended it, as a position in CallLog::calls. Only the last version of a released
  /// storage has one.
  std::vector<std::optional<std::size_t>> ended_by;
  std::vector<OrderEdge> order;  ///< ascending by `to`
  std::vector<Object> queues;    ///< of each operation; 0 for creations
  std::vector<Object> contexts;  ///< of each operation: the devices that it may run on
};

/// Host memory has a new version with each read into it, and with each write from it whose bytes are not known to be
/// those of the version before. Linear in the log, but for the search of addresses.
[[nodiscard]] ProgramGraph make_program_graph(const CallLog& log, const Run& run);

}  // namespace swapmm::calls
