// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/ir/trace.hpp>

#include "support/plan_text.hpp"

namespace swapmm::fuzz {

/// A training step with a tensor of each kind, one that must come and go, and a value that the host reads: what the
/// plans of corpus/plan are for.
inline Trace small_trace() {
  Trace trace;
  trace.tensors = {test::tensor("weights", 100, TensorKind::persistent), test::tensor("images", 50, TensorKind::input),
                   test::tensor("hidden", 80, TensorKind::transient), test::tensor("state", 50, TensorKind::persistent),
                   test::tensor("loss", 10, TensorKind::transient)};
  trace.operations = {test::operation("forward", 10, {0, 1}, {2}), test::operation("middle", 10, {}, {}, {3}),
                      test::operation("backward", 10, {2}, {4}, {0})};
  trace.host_reads = {{TensorId{4}, OperationId{2}}};
  return trace;
}

}  // namespace swapmm::fuzz
