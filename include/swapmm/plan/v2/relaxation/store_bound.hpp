// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <swapmm/plan/v2/relaxation/store_model.hpp>

namespace swapmm::v2::planning {

/// The effort of relax_stores().
struct StoreBoundEffort {
  std::size_t rounds = 24;        ///< at most so many programs are solved, of each kind
  std::uint32_t groups = 40;      ///< of operations
  bool closely = false;           ///< the last mixture is solved closely, which the bound does not need
  std::uint32_t fine_groups = 0;  ///< then so many, in which copies in stalls count apart; 0: none
  double least_gap = 3e-4;        ///< ends when no prices of these groups give a bound larger by this fraction
  std::size_t vain_rounds = 4;    ///< ends when so many, one after another, gain less than a third of that ...
  double work = 2e7;              ///< groups are made larger until a step takes no more products
  double near = 0.02;             ///< ... and no prices give more than this fraction
  std::size_t roundings = 0;      ///< so many sets of decisions for whole values
  double known = 0;               ///< nanoseconds: a bound that is known; no prices are looked for to show it
};

/// The best that swaps could do if tensors were divisible and no room were lost between places.
struct RelaxedStores {
  double lower_bound = 0;    ///< nanoseconds; proven
  std::vector<double> time;  ///< per operation: nanoseconds until the next one starts
  /// Per absence of the ledger, then store of the model: how much of it is away there, 0 to 1.
  std::vector<std::vector<double>> away;
  /// If wanted: decisions for whole values that are about as good. Per absence of the ledger: the store where it is
  /// away; none: it stays.
  std::vector<std::vector<std::optional<std::size_t>>> rounded;
};

/// Solves the program of docs/planning.md for several stores by column generation: the prices of the best mixture of
/// what values are known to do say what each value does best, which is added. The prices also give a bound, in the
/// Lagrangian over all operations, which is valid for any prices. `go_on` is called before each round but the first;
/// false ends the search.
[[nodiscard]] RelaxedStores relax_stores(const StoreModel& model, const swapmm::planning::OverlapLedger& ledger,
                                         const StoreBoundEffort& effort = {}, const std::function<bool()>& go_on = {});

}  // namespace swapmm::v2::planning
