// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::planning::ilp {

/// Pairs of tensors that differ in name only, as two weights of one layer often do: the first absences of both. Any
/// plan with their parts exchanged is as good. Each tensor is the second one of at most one pair. Tensors that the host
/// reads are in none.
[[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> alike_absences(const OverlapLedger& ledger);

}  // namespace swapmm::planning::ilp
