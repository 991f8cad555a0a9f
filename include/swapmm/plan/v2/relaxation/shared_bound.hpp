// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// A time such that no plan has a shorter iteration in the long run, from what the links of several devices share. 0 if
/// no capacity is less than what its links carry. The trace must not have operations that run again, or forms.
///
/// - *Bytes.* If a device's links had a speed at which computation counts for nothing, the lower bound would say how
///   many bytes it has to copy in an iteration. What all devices have to copy goes over the capacity.
/// - *Phases.* When an operation starts, no more than the budget, less what it writes, of what operations need from
/// then
///   on is in the device; the rest comes later. And of what operations before it have made for it and for later ones,
///   the rest has left before. If each device has passed such a point, what all of them bring from then on goes over
///   the capacity after the first one has passed its own; and what leaves goes before the last one has.
///
/// When `go_on` returns false, the bytes of devices after the first are not found out: the bound is valid, and may be
/// lower.
[[nodiscard]] Result<std::chrono::nanoseconds> shared_bound(const Trace& trace, const Machine& machine,
                                                            const BoundEffort& effort,
                                                            const std::function<bool()>& go_on);

}  // namespace swapmm::v2::planning
