// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <span>

#include <swapmm/formats/chart/chart.hpp>

// Internal: profiles as trace events.

namespace swapmm::chart {

/// Writes the whole document. See write_trace_events().
void write_events(std::ostream& out, std::span<const Chart> charts);

}  // namespace swapmm::chart
