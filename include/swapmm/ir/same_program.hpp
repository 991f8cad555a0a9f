// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <swapmm/ir/trace.hpp>

namespace swapmm::detail {

/// Whether two traces differ in no more than the names of the trace, of tensors and of operations: every plan for one
/// of them is as good for the other.
[[nodiscard]] inline bool is_same_program(const Trace& a, const Trace& b) {
  const auto same_tensor = [](const TraceTensor& x, const TraceTensor& y) {
    return x.bytes == y.bytes && x.kind == y.kind && x.available_from == y.available_from && x.copied == y.copied;
  };
  const auto same_operation = [](const TraceOperation& x, const TraceOperation& y) {
    return x.duration == y.duration && x.reads == y.reads && x.writes == y.writes && x.updates == y.updates &&
           x.engine == y.engine && x.replayable == y.replayable && x.in_pieces == y.in_pieces;
  };
  return std::ranges::equal(a.tensors, b.tensors, same_tensor) &&
         std::ranges::equal(a.operations, b.operations, same_operation) && a.host_reads == b.host_reads &&
         a.engines == b.engines && a.ranges == b.ranges && a.forms == b.forms && a.lingering == b.lingering;
}

}  // namespace swapmm::detail
