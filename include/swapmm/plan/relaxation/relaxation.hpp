// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/relaxation/coarse_program.hpp>
#include <swapmm/plan/relaxation/grid_refinement.hpp>
#include <swapmm/plan/relaxation/solver/interior_point.hpp>
#include <swapmm/plan/relaxation/swap_grid.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>
#include <swapmm/plan/relaxation/swap_prices.hpp>

namespace swapmm::planning::relaxation {

/// Solves the model on grids that become finer where that may improve the bound, and keeps the best one.
class Relaxation {
 public:
  Relaxation(const SwapModel& model, const BoundEffort& effort)
      : model_(model),
        effort_(effort),
        is_exact_(model.operations <= effort.exact_operations),
        units_(find_units(model)),
        pricing_(model, count_classes(model.operations, effort)),
        paying_(first_paying_windows(model)) {}

  void run(const std::function<bool()>& go_on) {
    cuts_ = first_cuts(model_, std::min(effort_.first_groups, effort_.groups), effort_.input_stalls);
    std::size_t without_gain = 0;
    for (std::size_t round = 0; round < effort_.rounds; ++round) {
      if (round > 0 && go_on && !go_on()) return;
      std::optional<SolvedGrid> solved = solve_round(round == 0);
      if (!solved) return;
      const double before = best_.bound;
      Response response = respond(*solved);
      const bool is_same_program = !choose_paying(response) && is_exact_;
      const bool is_last = is_same_program || (!is_exact_ && solved->grid.groups.size() >= effort_.groups);
      GridCuts finer = is_exact_ || is_last ? cuts_ : refine(model_, *solved, effort_);
      if (!(response.bound > before)) {
        ++without_gain;
      } else {
        without_gain = response.bound > before + effort_.least_gain * std::abs(before) ? 0 : without_gain + 1;
        best_ = std::move(response);
        best_grid_ = std::move(solved);
      }
      if (is_last || without_gain > (is_exact_ ? 0 : effort_.rounds / 3)) return;
      cuts_ = std::move(finer);
    }
  }

  [[nodiscard]] const Response& best() const { return best_; }
  [[nodiscard]] const std::optional<SolvedGrid>& best_grid() const { return best_grid_; }
  [[nodiscard]] const ProgramUnits& units() const { return units_; }

 private:
  static std::size_t count_classes(std::uint32_t operations, const BoundEffort& effort) {
    std::size_t classes = effort.classes;
    if (operations <= effort.exact_operations) {
      classes = effort.exact_classes;
    } else if (operations > effort.long_trace) {
      classes = effort.classes_of_long_traces;  // a further class would cost more than it improves
    }
    return std::max<std::size_t>(classes, 1);
  }

  /// Returns nothing if the program is larger than allowed. The first program is made smaller until it is not.
  std::optional<SolvedGrid> solve_round(bool is_first) {
    for (;;) {
      SolvedGrid solved;
      solved.units = units_;
      solved.cuts = cuts_;
      solved.grid = is_exact_ ? make_exact_grid(model_) : make_coarse_grid(model_, cuts_);
      solved.program = make_grid_program(model_, solved.grid, units_, paying_);
      if (solved.program.program.options > effort_.options && !is_exact_) {
        if (!is_first || cuts_.operations.size() < 2) return std::nullopt;
        cuts_ = first_cuts(model_, cuts_.operations.size() / 2, effort_.input_stalls);
        continue;
      }
      InteriorPointLimits limits;
      if (is_exact_) limits.tolerance = 1e-9;
      solved.solution = solve_program(solved.program.program, limits);
      return solved;
    }
  }

  Response respond(const SolvedGrid& solved) {
    SwapPrices prices = prices_of(solved);
    // In a stall the links' prices may add up to 1 without a cost for copies: what is left of it.
    std::vector<double> spare(model_.parts(), 0.0);
    for (std::uint32_t part = 1; part < model_.parts(); part += 2) {
      spare[part] = std::max(0.0, 1 - prices.in[part] - (model_.half_duplex ? 0.0 : prices.out[part]));
    }
    // With all of a stall's price on the links, what is computed again in it would be free: so the bound is computed
    // without what is left of that price, too, and the larger one is kept.
    Response without;
    if (pricing_.has_replays()) without = pricing_.respond(prices);
    for (std::uint32_t part = 1; part < model_.parts(); part += 2) {
      if (model_.half_duplex) {
        prices.in[part] = 1;
        continue;
      }
      prices.in[part] += spare[part] / 2;
      prices.out[part] += spare[part] / 2;
    }
    Response response = pricing_.respond(prices);
    if (pricing_.has_replays() && without.bound > response.bound) return without;
    if (!model_.half_duplex) give_spare_to_busier_link(std::move(prices), spare, solved, response);
    return response;
  }

  /// The prices of groups at full resolution.
  [[nodiscard]] SwapPrices prices_of(const SolvedGrid& solved) const {
    const std::uint32_t parts = model_.parts();
    SwapPrices prices{std::vector<double>(parts, 0.0), std::vector<double>(parts), std::vector<double>(parts)};
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint32_t group = solved.grid.group_of_part[part];
      prices.in[part] = solved.solution.in[group];
      prices.out[part] = solved.solution.out[group];
    }
    for (std::size_t g = 0; g < solved.grid.groups.size(); ++g) {
      prices.room[solved.grid.groups[g].row_boundary] += solved.solution.room[g] * units_.per_byte;
    }
    return prices;
  }

  void give_spare_to_busier_link(SwapPrices prices, const std::vector<double>& spare, const SolvedGrid& solved,
                                 Response& response) {
    constexpr double matters = 1e-9;
    for (int round = 0; round < effort_.stall_rounds; ++round) {
      bool changed = false;
      for (std::uint32_t part = 1; part < model_.parts(); part += 2) {
        if (spare[part] <= matters || response.in[part] == response.out[part]) continue;
        const std::uint32_t group = solved.grid.group_of_part[part];
        const double in = solved.solution.in[group] + (response.in[part] > response.out[part] ? spare[part] : 0.0);
        changed = changed || in != prices.in[part];
        prices.in[part] = in;
        prices.out[part] = std::max(0.0, 1 - in);
      }
      if (!changed) return;
      Response next = pricing_.respond(prices);
      if (!(next.bound > response.bound)) return;
      response = std::move(next);
    }
  }

  /// Chooses the windows that pay. Returns true if this changes the program.
  bool choose_paying(const Response& response) {
    const PayingWindows before = std::exchange(paying_, {});
    paying_.main = response.main_window;
    paying_.others_are_free.assign(model_.values.size(), false);
    for (std::size_t v = 0; v < model_.values.size(); ++v) {
      constexpr double breaks_even = -1e-3;
      paying_.others_are_free[v] = response.main_gain[v] > breaks_even * model_.values[v].copy_out;
    }
    return paying_.main != before.main || paying_.others_are_free != before.others_are_free;
  }

  const SwapModel& model_;
  const BoundEffort& effort_;
  bool is_exact_;
  ProgramUnits units_;
  SwapPricing pricing_;
  PayingWindows paying_;
  GridCuts cuts_;
  Response best_;
  std::optional<SolvedGrid> best_grid_;
};

}  // namespace swapmm::planning::relaxation
