// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// The machine that is left if all memories but one are merged to a host without limit, and all links into the memory
/// to one link that carries as much, and the same for links out of it. No plan is slower on it. None if the memory has
/// no limit.
[[nodiscard]] std::optional<swapmm::Machine> merged_host(const Machine& machine, MemoryId memory);

/// The part of a trace that one engine runs, without tensors that other engines use, too, and without what only version
/// 2 can say. Every plan for the trace contains one for this part.
[[nodiscard]] Trace part_on_engine(const Trace& trace, const Machine& machine, EngineId engine);

}  // namespace swapmm::v2::planning
