// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/store_bound.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/relaxation/store_master.hpp>
#include <swapmm/plan/v2/relaxation/store_prices.hpp>

namespace swapmm::v2::planning {
namespace {

using Vector = std::vector<double>;

void mix(Vector& prices, const Vector& others, double share) {
  for (std::size_t i = 0; i < prices.size(); ++i) prices[i] += share * (others[i] - prices[i]);
}

StorePrices mixed(StorePrices prices, const StorePrices& others, double share) {
  mix(prices.room, others.room, share);
  for (std::size_t r = 0; r < prices.rates.size(); ++r) mix(prices.rates[r], others.rates[r], share);
  for (std::size_t s = 0; s < prices.space.size(); ++s) mix(prices.space[s], others.space[s], share);
  return prices;
}

class Relaxation {
 public:
  Relaxation(const StoreModel& model, const StoreBoundEffort& effort, const std::function<bool()>& go_on)
      : model_(model), effort_(effort), go_on_(go_on), pricing_(model) {}

  void run() {
    if (model_.swaps.operations == 0) return;
    use_groups(effort_.groups, false);
    for (const double room : {0.5, 2.0, 8.0}) respond(master_->uniform(room));
    bool goes_on = run_rounds();
    if (goes_on && effort_.fine_groups > 0) {
      use_groups(effort_.fine_groups, true);
      for (const std::vector<StoreChoice>& choices : known_) master_->add(choices);
      goes_on = run_rounds();
    }
    // The mixture decides about most values when it is solved closely.
    if (goes_on && effort_.closely) solve(1e-5);
  }

  [[nodiscard]] RelaxedStores result(const swapmm::planning::OverlapLedger& ledger) const {
    RelaxedStores relaxed;
    relaxed.lower_bound = best_;
    relaxed.time = model_.swaps.duration;
    relaxed.away.assign(ledger.absences.size(), Vector(model_.stores.size()));
    if (solution_.stall.empty()) return relaxed;
    for (std::size_t i = 0; i < solution_.clean.size(); ++i) {
      relaxed.away[model_.swaps.clean[i].absence] = solution_.clean[i];
    }
    for (std::size_t i = 0; i < solution_.dirty.size(); ++i) {
      relaxed.away[model_.swaps.dirty[i].absence] = solution_.dirty[i];
    }
    const OperationGroups& groups = groups_of_solution_;
    Vector duration(groups.size());
    for (std::uint32_t i = 0; i < model_.swaps.operations; ++i) {
      duration[groups.group_of[i]] += model_.swaps.duration[i];
    }
    for (std::uint32_t i = 0; i < model_.swaps.operations; ++i) {
      const std::uint32_t g = groups.group_of[i];
      const double share = duration[g] > 0 ? model_.swaps.duration[i] / duration[g] : 1.0 / groups.members[g];
      relaxed.time[i] += share * solution_.stall[g];
    }
    for (std::size_t i = 0; is_of_master_ && i < effort_.roundings && (i == 0 || !go_on_ || go_on_()); ++i) {
      const RoundedChoices choices = master_->round(solution_, i);
      std::vector<std::optional<std::size_t>>& rounded = relaxed.rounded.emplace_back(ledger.absences.size());
      for (std::size_t w = 0; w < choices.clean.size(); ++w) rounded[model_.swaps.clean[w].absence] = choices.clean[w];
      for (std::size_t w = 0; w < choices.dirty.size(); ++w) rounded[model_.swaps.dirty[w].absence] = choices.dirty[w];
    }
    for (Vector& away : relaxed.away) {
      for (double& share : away) share = std::clamp(share, 0.0, 1.0);
    }
    return relaxed;
  }

 private:
  void use_groups(std::uint32_t groups, bool stalls_apart) {
    is_of_master_ = false;
    for (std::uint32_t count = std::min(model_.swaps.operations, groups);; count = count * 3 / 4) {
      groups_ = make_groups(model_, count);
      master_.emplace(model_, groups_, stalls_apart);
      if (count < 8 || master_->work() <= effort_.work) return;
    }
  }

  void solve(double tolerance) {
    solution_ = master_->solve(tolerance);
    is_of_master_ = true;
    groups_of_solution_ = groups_;
  }

  /// Returns false if it was ended.
  bool run_rounds() {
    double gap = 1;
    double last = best_;
    std::size_t vain = 0;
    for (std::size_t round = 0; round < effort_.rounds; ++round) {
      if (has_begun_ && go_on_ && !go_on_()) return false;
      has_begun_ = true;
      solve(std::clamp(gap * 0.05, 1e-5, 1e-2));
      // Prices half way to the best ones swing less from round to round.
      std::size_t added = 0;
      if (best_ > 0) added = respond(mixed(solution_.prices, best_prices_, 0.5));
      if (added == 0) added = respond(solution_.prices);
      const double bound = std::max(best_, effort_.known);
      gap = bound > 0 ? solution_.time / bound - 1 : 1.0;
      vain = gap > effort_.near || best_ > last * (1 + effort_.least_gap / 3) ? 0 : vain + 1;
      last = std::max(last, best_);
      if (added == 0 || gap < effort_.least_gap || vain == effort_.vain_rounds) break;
    }
    return true;
  }

  /// Adds what values do best at the prices. Returns how much of it was not known.
  std::size_t respond(StorePrices prices) {
    StoreResponse response = pricing_.respond(prices);
    // In a stall, prices of rates may add up to 1 without a cost.
    StorePrices full = prices;
    const std::size_t rates = model_.rates.size();
    for (std::uint32_t part = 1; part < model_.swaps.parts(); part += 2) {
      double sum = 0;
      for (std::size_t r = 0; r < rates; ++r) sum += full.rates[r][part];
      for (std::size_t r = 0; r < rates; ++r) {
        full.rates[r][part] += std::max(0.0, 1 - sum) / static_cast<double>(rates);
      }
    }
    StoreResponse tight = pricing_.respond(full);
    if (std::max(response.bound, tight.bound) > best_) {
      best_ = std::max(response.bound, tight.bound);
      best_prices_ = std::move(prices);
    }
    const std::size_t added = master_->add(response.choices) + master_->add(tight.choices);
    if (effort_.fine_groups > 0) {
      known_.push_back(std::move(response.choices));
      known_.push_back(std::move(tight.choices));
    }
    return added;
  }

  const StoreModel& model_;
  const StoreBoundEffort& effort_;
  const std::function<bool()>& go_on_;
  StorePricing pricing_;
  OperationGroups groups_;
  std::optional<StoreMaster> master_;
  bool has_begun_ = false;
  double best_ = 0;
  StorePrices best_prices_;
  MasterSolution solution_;
  bool is_of_master_ = false;  // and not of the one before
  OperationGroups groups_of_solution_;
  std::vector<std::vector<StoreChoice>> known_;  // for finer groups
};

}  // namespace

RelaxedStores relax_stores(const StoreModel& model, const swapmm::planning::OverlapLedger& ledger,
                           const StoreBoundEffort& effort, const std::function<bool()>& go_on) {
  Relaxation relaxation(model, effort, go_on);
  relaxation.run();
  return relaxation.result(ledger);
}

}  // namespace swapmm::v2::planning
