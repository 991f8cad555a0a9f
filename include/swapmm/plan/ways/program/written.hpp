// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/result.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::planning {

/// swapmm::with_ways() for a trace without ranges, whose history is known. Without pieces; WrittenTrace::parts is
/// empty.
[[nodiscard]] Result<WrittenTrace> with_ways(const Trace& trace, const ValueHistory& history, const WaysBack& ways);

}  // namespace swapmm::planning
