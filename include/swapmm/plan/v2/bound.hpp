// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2 {

/// Returns a time such that no valid plan for this trace and machine has a shorter iteration in the long run. Each
/// engine is considered alone: its operations, the size of its memory, and the most that all links into and out of this
/// memory can carry, as if everything else were one host without limit. The same is done for its memory together with
/// other memories that have a limit as if these were one: at most three such sets, so that the bound knows that near
/// memories are small. For such a set, copies of what the host reads are left out, and with the host in it what the
/// host gives, too. Tensors that several engines use, that are accessed in part, or that the host gives when an
/// operation of another engine ends are left out. If operations run on more than 64 engines, only durations count. If
/// an operation may run again, or if a tensor has encoded forms, only durations count, and on a machine that version 1
/// can describe the ways in which values come back. Otherwise, what all devices must copy over a capacity that they
/// share counts, too. Returns a Problem if a bundle is larger than its memory, or if the machine lacks an engine.
[[nodiscard]] SWAPMM_EXPORT Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine,
                                                                         const BoundEffort& effort = {});

}  // namespace swapmm::v2
