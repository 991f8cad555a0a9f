// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/ids.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::planning {

/// Which tensors of a trace grow with the number of samples. Per tensor.
using GrowingTensors = std::vector<bool>;

/// Whether the operation has a tensor that grows with the number of samples.
[[nodiscard]] bool works_on_samples(const TraceOperation& operation, const GrowingTensors& growing);

/// Per operation: whether a value that it needs was computed from samples in this iteration.
[[nodiscard]] std::vector<bool> needs_samples(const Trace& trace, const GrowingTensors& growing);

/// Ascending, each once.
void sort_once(std::vector<TensorId>& tensors);

/// The tensors of fixed size whose value is computed from samples in this iteration, and that an operation of
/// `in_piece` (per operation) then reads. Ascending. Tensors that are only updated are sums.
[[nodiscard]] std::vector<TensorId> find_statistics(const Trace& trace, const GrowingTensors& growing,
                                                    const std::vector<bool>& in_piece);

/// What no split step can have: what version 1 of the format cannot say (but for replayable operations), or lingering
/// values.
[[nodiscard]] std::optional<Problem> unsplittable(const Trace& trace);

}  // namespace swapmm::planning
