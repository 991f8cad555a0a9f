// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::test::general {

struct ExactPlan {
  v2::Plan plan;                          ///< one of the fastest
  std::chrono::nanoseconds iteration{0};  ///< what it takes
  std::uint64_t simulated = 0;            ///< plans
};

/// The fastest valid plan for a tiny trace on a machine with one engine that runs operations, by trying all plans that
/// can be the fastest, judged by v2::validate() and timed by v2::simulate(). The engine's memory has a limit; the host
/// has none; other memories have links to and from the engine's. Nothing if there is no plan, or if more than `most`
/// plans would have to be tried.
///
/// What is tried, and why that is enough if no links share a capacity:
/// - Between two uses, a value stays, or it leaves and comes back from any memory, in any gap between two operations.
///   A value that the other memory does not have is saved there before, in any gap in which it is on the device. In a
///   memory with a limit, a saved value is kept for one return, for several, or for good if it never changes.
/// - Copies in one gap start in every order. Take any valid plan: the starts of its steps give one such order, and each
///   step waits there for nothing but what every valid plan with this order has to wait for (write_waits()).
/// - A place is given back as soon as it can be, and an operation's own write takes its place at the last moment:
///   neither is ever in the way.
/// - Places lie at all offsets.
/// Values do not go from one memory to another without the device between them, and tensors are whole: the machine has
/// no links between other memories, and nothing runs again.
[[nodiscard]] std::optional<ExactPlan> fastest_plan(const Trace& trace, const v2::Machine& machine, std::uint64_t most);

}  // namespace swapmm::test::general
