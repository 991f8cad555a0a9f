// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <span>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/profile.hpp>

namespace swapmm {

/// Writes profiles in the trace event format (JSON), which chrome://tracing and ui.perfetto.dev open. Each profile is a
/// process, with a thread for each lane, counters of the bytes taken and of the budget, and an instant event at the end
/// of each iteration. Times are in microseconds with three decimals. Viewers do not show negative times; if something
/// began before a profile's time 0, all profiles are shifted.
SWAPMM_EXPORT void write_trace_events(std::ostream& out, std::span<const Profile> profiles);

}  // namespace swapmm
