// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/plan/ilp/orders.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::planning::ilp {

/// Writes the decisions into the ledger: which tensors go out, and when each leaves, returns and is written back. With
/// `leaves_early`, a tensor leaves in the gap right after its last use, and whatever takes its bytes waits until they
/// are free. Otherwise it leaves in the gap in which its bytes are free.
void decide(const OrdersModel& model, const std::vector<double>& values, bool leaves_early, OverlapLedger& ledger);

}  // namespace swapmm::planning::ilp
