// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <swapmm/plan/v2/relaxation/store_model.hpp>

namespace swapmm::v2::planning {

/// The effort of relax_stores().
struct StoreBoundEffort {
  std::size_t rounds = 4;
  std::uint32_t groups = 40;       ///< of operations, in each round
  std::size_t unknowns = 250'000;  ///< most of a program; if there are more, groups are made larger
};

/// The best that swaps could do if tensors were divisible and no room were lost between places.
struct RelaxedStores {
  double lower_bound = 0;    ///< nanoseconds; proven
  std::vector<double> time;  ///< per operation: nanoseconds until the next one starts
  /// Per absence of the ledger, then store of the model: how much of it is away there, 0 to 1.
  std::vector<std::vector<double>> away;
};

/// Solves the program of docs/planning.md for several stores over groups of operations, for its prices. These give a
/// bound in the Lagrangian over all operations, which is valid for any prices. Then it repeats this with a better
/// choice of which absences pay for copies. `go_on` is called before each round but the first; false ends the search.
[[nodiscard]] RelaxedStores relax_stores(const StoreModel& model, const swapmm::planning::OverlapLedger& ledger,
                                         const StoreBoundEffort& effort = {}, const std::function<bool()>& go_on = {});

}  // namespace swapmm::v2::planning
