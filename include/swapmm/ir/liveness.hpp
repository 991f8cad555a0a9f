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
  OperationId operation{};       ///< by which operation
  Access access = Access::read;  ///< in which way
};

/// When values live, on the circle of operations 0 .. n-1 that an iteration is.
struct Liveness {
  /// For each tensor its uses in ascending order of operation. An unused tensor has none.
  std::vector<std::vector<Use>> uses;
  /// For each operation the sum of the bytes of the tensors that must be somewhere while it runs: its bundle, and
  /// every tensor whose value is needed by a later operation, a host read, or (persistent) the next iteration. An
  /// input counts from its first use on: before that, its value is the host's alone. A value that the next access
  /// overwrites is dead, also across the wrap, and a tensor that nothing uses or reads never counts.
  std::vector<Bytes> live;
  /// The most of `live`; what an unlimited device needs when nothing is kept longer than necessary.
  Bytes peak;
  /// The largest bundle: no budget below it can work.
  Bytes largest_bundle;
  OperationId largest_bundle_operation{};  ///< whose bundle that is; of several, the first
};

/// Sizes are rounded up to `alignment`, which is one that check_machine() accepts. Linear in the size of the trace,
/// but for sorting the host reads of each tensor.
[[nodiscard]] SWAPMM_EXPORT Liveness analyze_liveness(const Trace& trace, Bytes alignment);

/// The tensors that make up Liveness::live of that operation, ascending: what must be somewhere while it runs. Linear
/// in the size of the trace.
[[nodiscard]] SWAPMM_EXPORT std::vector<TensorId> tensors_live_at(const Trace& trace, const Liveness& liveness,
                                                                  OperationId operation);

}  // namespace swapmm
