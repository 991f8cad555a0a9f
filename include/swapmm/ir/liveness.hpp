// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm {

/// One access of a tensor.
struct Use {
  OperationId operation{};       ///< the operation
  Access access = Access::read;  ///< how it accesses the tensor
};

/// When values are live in an iteration, which is a circle of operations 0 .. n-1.
struct Liveness {
  /// For each tensor its uses, in ascending order of operation. Empty for an unused tensor.
  std::vector<std::vector<Use>> uses;
  /// For each operation the live bytes while it runs: the sum of the sizes of its bundle and of every tensor whose
  /// value is needed by a later operation, by a host read, or (persistent) by the next iteration, or lingers. An input
  /// counts from its first use on; before that, only the host has its value. A value that the next access overwrites is
  /// dead, also across the iteration's end, unless it lingers. A tensor that nothing uses or reads never counts.
  std::vector<Bytes> live;
  /// The largest value of `live`: the memory that is needed without swapping if no value is kept longer than necessary.
  Bytes peak;
  /// Size of the largest bundle. No smaller budget can work.
  Bytes largest_bundle;
  OperationId largest_bundle_operation{};  ///< the first operation with a bundle of that size
};

/// Computes the liveness of a trace. Sizes are rounded up to `alignment`, which must be one that check_machine()
/// accepts. Linear in the size of the trace, except for sorting the host reads of each tensor.
[[nodiscard]] SWAPMM_EXPORT Liveness analyze_liveness(const Trace& trace, Bytes alignment);

/// The tensors that are live while the operation runs, ascending. Their sizes add up to Liveness::live of that
/// operation. Linear in the size of the trace.
[[nodiscard]] SWAPMM_EXPORT std::vector<TensorId> tensors_live_at(const Trace& trace, const Liveness& liveness,
                                                                  OperationId operation);

}  // namespace swapmm
