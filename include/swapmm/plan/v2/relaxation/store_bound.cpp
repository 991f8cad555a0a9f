// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/store_bound.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/plan/v2/relaxation/store_prices.hpp>
#include <swapmm/plan/v2/relaxation/store_program.hpp>

namespace swapmm::v2::planning {
namespace {

using Vector = std::vector<double>;

class Relaxation {
 public:
  explicit Relaxation(const StoreModel& model) : model_(model), pricing_(model) {}

  void run(const StoreBoundEffort& effort, const std::function<bool()>& go_on) {
    std::uint32_t count = std::min(model_.swaps.operations, effort.groups);
    std::size_t without_gain = 0;
    for (std::size_t round = 0; round < effort.rounds; ++round) {
      if (round > 0 && go_on && !go_on()) return;
      GroupSolution solution;
      OperationGroups groups;
      for (; count >= 2; count = count * 3 / 4) {
        groups = make_groups(model_, count);
        solution = solve_groups(model_, groups, paying_, effort.unknowns);
        if (solution.is_solved) break;
      }
      if (!solution.is_solved) return;
      const StoreResponse response = respond(groups, solution);
      const bool gains = response.bound > best_ * (1 + 1e-4);
      without_gain = gains ? 0 : without_gain + 1;
      if (response.bound > best_) {
        best_ = response.bound;
        solution_ = std::move(solution);
        groups_ = std::move(groups);
      }
      if (without_gain >= 2 || !choose_paying(response)) return;
    }
  }

  [[nodiscard]] RelaxedStores result(const swapmm::planning::OverlapLedger& ledger) const {
    RelaxedStores relaxed;
    relaxed.lower_bound = best_;
    relaxed.time = model_.swaps.duration;
    relaxed.away.assign(ledger.absences.size(), Vector(model_.stores.size()));
    if (!solution_.is_solved) return relaxed;
    for (std::size_t i = 0; i < solution_.clean.size(); ++i) {
      relaxed.away[model_.swaps.clean[i].absence] = solution_.clean[i];
    }
    for (std::size_t i = 0; i < solution_.dirty.size(); ++i) {
      relaxed.away[model_.swaps.dirty[i].absence] = solution_.dirty[i];
    }
    Vector duration(groups_.size());
    for (std::uint32_t i = 0; i < model_.swaps.operations; ++i) {
      duration[groups_.group_of[i]] += model_.swaps.duration[i];
    }
    for (std::uint32_t i = 0; i < model_.swaps.operations; ++i) {
      const std::uint32_t g = groups_.group_of[i];
      const double share = duration[g] > 0 ? model_.swaps.duration[i] / duration[g] : 1.0 / groups_.members[g];
      relaxed.time[i] += share * std::max(0.0, solution_.stall[g]);
    }
    return relaxed;
  }

 private:
  /// Expands the prices of groups to all parts. In a stall, prices of rates may add up to 1 without a cost.
  [[nodiscard]] StorePrices expand(const OperationGroups& groups, const GroupSolution& solution, bool spread) const {
    const std::uint32_t parts = model_.swaps.parts();
    const std::size_t rates = model_.rates.size();
    StorePrices prices{Vector(parts), std::vector<Vector>(rates, Vector(parts)),
                       std::vector<Vector>(model_.stores.size(), Vector(parts))};
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint32_t operation = part / 2;
      const std::uint32_t g = groups.group_of[operation];
      const double share = spread ? 0.5 / groups.members[g] : solution.crowded[g] == operation ? 0.5 : 0.0;
      prices.room[part] = share * solution.room[g];
      for (std::size_t s = 0; s < model_.stores.size(); ++s) prices.space[s][part] = share * solution.space[s][g];
      double sum = 0;
      for (std::size_t r = 0; r < rates; ++r) sum += prices.rates[r][part] = solution.rates[r][g];
      if (part % 2 == 0) continue;
      for (std::size_t r = 0; r < rates; ++r) {
        prices.rates[r][part] += std::max(0.0, 1 - sum) / static_cast<double>(rates);
      }
    }
    return prices;
  }

  StoreResponse respond(const OperationGroups& groups, const GroupSolution& solution) {
    StoreResponse best;
    for (const bool spread : {false, true}) {
      StorePrices prices = expand(groups, solution, spread);
      StoreResponse response = pricing_.respond(prices);
      if (response.bound > best.bound) best = std::move(response);
    }
    return best;
  }

  /// Chooses the windows that pay. Returns true if this changes the program.
  bool choose_paying(const StoreResponse& response) {
    if (response.main_window.empty()) return false;
    PayingStores next{response.main_window, std::vector<bool>(response.main_window.size())};
    for (std::size_t v = 0; v < next.main.size(); ++v) {
      constexpr double breaks_even = -1e-3;
      next.others_are_free[v] = response.main_gain[v] > breaks_even * response.out_cost[v];
    }
    const bool changes = next.main != paying_.main || next.others_are_free != paying_.others_are_free;
    paying_ = std::move(next);
    return changes;
  }

  const StoreModel& model_;
  StorePricing pricing_;
  PayingStores paying_;
  double best_ = 0;
  GroupSolution solution_;
  OperationGroups groups_;
};

}  // namespace

RelaxedStores relax_stores(const StoreModel& model, const swapmm::planning::OverlapLedger& ledger,
                           const StoreBoundEffort& effort, const std::function<bool()>& go_on) {
  Relaxation relaxation(model);
  relaxation.run(effort, go_on);
  return relaxation.result(ledger);
}

}  // namespace swapmm::v2::planning
