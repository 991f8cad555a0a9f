// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// Gives the lower bound, and computes it when it is first asked for. Its argument is the time of the fastest plan so
/// far, for those who watch.
using LazyBound = std::function<std::chrono::nanoseconds(std::chrono::nanoseconds fastest)>;

/// The same as lower_bound(), but when `go_on` returns false, what is left to do is not done: the bound is valid, and
/// may be lower. `go_on` is asked before each step but the first.
[[nodiscard]] Result<std::chrono::nanoseconds> lower_bound_while(const Trace& trace, const Machine& machine,
                                                                 const BoundEffort& effort,
                                                                 const std::function<bool()>& go_on);

}  // namespace swapmm::v2::planning
