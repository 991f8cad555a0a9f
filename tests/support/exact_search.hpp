// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm::test {

struct ExactResult {
  std::chrono::nanoseconds iteration{0};  ///< the least, as a long-run mean, rounded to the nearest nanosecond
  std::uint64_t simulated = 0;            ///< orders
};

/// The least steady-state iteration time of any plan, offsets aside: a room is free where enough bytes are, wherever
/// they lie. No valid plan is faster, and one that is as fast may not pack. For tiny traces: it grows without mercy.
/// Nothing where it does not apply (host reads, half duplex, a bundle above the budget) or where more than
/// `most_simulated` orders would have to be tried.
///
/// What is enumerated, and why that is enough:
/// - Which values go out between which uses: all sets. What is dead is released at once: staying gains nothing.
/// - In which order operations and swap-ins start: each swap-in in each gap between its tensor's uses, in each order
///   within a gap. Take any valid plan. With its waits as they are, starting everything at fixed times that repeat
///   with its mean iteration time breaks none of them. That gives one order of starts. In that order, each start as
///   early as the order, the link, the releases and the bytes allow is never later than in the plan.
/// - In which order values are written back: those of one write each, queued in the order of their writes, or behind
///   writes that follow before the value is needed again.
/// - Whether a value that lingers goes out: then it never returns, and its copy stands in the queue as any other. If it
///   stays, it is released when it may be lost, or its tensor is there when it is overwritten.
/// - A release comes as early as it can, and so does a write-back in its order: neither is ever in the way. Bytes of an
///   operation's own writes are taken when it starts, the latest there is.
[[nodiscard]] std::optional<ExactResult> least_iteration(const Trace& trace, const Machine& machine,
                                                         std::uint64_t most_simulated = 2'000'000);

}  // namespace swapmm::test
