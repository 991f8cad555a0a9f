// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::detail {

/// The size of an operation's bundle: of all tensors that it accesses, each rounded up to the alignment.
[[nodiscard]] inline Bytes bundle_bytes(const Trace& trace, const TraceOperation& operation, Bytes alignment) {
  Bytes bytes;
  for_each_access(operation,
                  [&](TensorId tensor, Access) { bytes += round_up(trace.tensors[index(tensor)].bytes, alignment); });
  return bytes;
}

}  // namespace swapmm::detail
