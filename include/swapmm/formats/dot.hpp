// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/graph.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm {

/// Writes the graph as Graphviz DOT text (UTF-8). It has a box for each operation, an ellipse for each value with
/// tensor, version and size, a dashed edge for each value that flows into the next iteration, and a note for each host
/// read. `graph` must be make_graph(trace). Names are escaped, so any name appears as text.
SWAPMM_EXPORT void write_dot(std::ostream& out, const Trace& trace, const Graph& graph);

}  // namespace swapmm
