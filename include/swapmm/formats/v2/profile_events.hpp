// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <span>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/v2/profile.hpp>

namespace swapmm::v2 {

/// Writes profiles in the trace event format (JSON), as swapmm::write_trace_events() does. Each profile is a process,
/// with a thread for each engine and each link, and counters of the bytes taken in each memory, and of its size. Events
/// of operations have no category; those of all other things have: `run again`, `coding` or `copy`.
SWAPMM_EXPORT void write_trace_events(std::ostream& out, std::span<const Profile> profiles);

}  // namespace swapmm::v2
