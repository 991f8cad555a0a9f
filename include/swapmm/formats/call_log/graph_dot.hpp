// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>

#include <swapmm/ir/calls/call.hpp>
#include <swapmm/ir/calls/program_graph.hpp>
#include <swapmm/ir/calls/run.hpp>

// Internal: the program graph as a picture.

namespace swapmm::call_log {

/// Writes the operations [first, first + count) of the graph, and the values that they take and give, as Graphviz DOT
/// text: boxes for operations, ellipses for values of device memory, notes for values of host memory, dotted edges for
/// the orders of queues and dashed ones for those of events.
void write_dot(std::ostream& out, const calls::CallLog& log, const calls::Run& run, const calls::ProgramGraph& graph,
               std::size_t first, std::size_t count);

}  // namespace swapmm::call_log
