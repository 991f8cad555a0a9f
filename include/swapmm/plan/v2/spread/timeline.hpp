// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// How long a value takes from one memory to another: on a link, or through the host. None if there is no way.
[[nodiscard]] std::optional<std::chrono::nanoseconds> hand_over_time(const Machine& machine, MemoryId from, MemoryId to,
                                                                     Bytes bytes);

/// When operations run if all memories have room, and only what one memory hands to another is copied.
struct Timeline {
  std::vector<Span> spans;         ///< of each operation
  std::vector<OperationId> order;  ///< by their beginnings
  std::chrono::nanoseconds end{0};
};

/// What accesses the same tensor stays in the order of the trace, so the trace with its operations in `order` is the
/// same program. A Problem if a value cannot come to the memory of an operation. Takes accesses times links.
/// `earliest`: no operation begins before it does there; empty: as early as it can.
[[nodiscard]] Result<Timeline> make_timeline(const Trace& trace, const Machine& machine,
                                             const std::vector<Span>& earliest = {});

/// A program in the order of its time line.
struct OrderedProgram {
  Trace trace;
  Timeline line;  ///< its spans are in this order; its `order` has the operations of the program as it was
};
[[nodiscard]] OrderedProgram in_order(const Trace& trace, Timeline line);

}  // namespace swapmm::v2::planning
