// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/lower_bound.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <swapmm/plan/relaxation/coarse_program.hpp>
#include <swapmm/plan/relaxation/grid_refinement.hpp>
#include <swapmm/plan/relaxation/solver/interior_point.hpp>
#include <swapmm/plan/relaxation/swap_grid.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>
#include <swapmm/plan/relaxation/swap_prices.hpp>

namespace swapmm::planning {
namespace relaxation {
namespace {

std::size_t count_classes(std::uint32_t operations, const BoundEffort& effort) {
  std::size_t classes = effort.classes;
  if (operations <= effort.exact_operations) {
    classes = effort.exact_classes;
  } else if (operations > effort.long_trace) {
    classes = effort.classes_of_long_traces;  // a further class would cost more than it improves
  }
  return std::max<std::size_t>(classes, 1);
}

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

  /// Expands the prices of groups to full resolution. In a stall, the links' prices may add up to 1 without a cost.
  Response respond(const SolvedGrid& solved) {
    const std::uint32_t parts = model_.parts();
    SwapPrices prices{std::vector<double>(parts, 0.0), std::vector<double>(parts), std::vector<double>(parts)};
    std::vector<double> spare(parts, 0.0);
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint32_t group = solved.grid.group_of_part[part];
      prices.in[part] = solved.solution.in[group];
      prices.out[part] = solved.solution.out[group];
      if (part % 2 == 0) continue;
      if (model_.half_duplex) {
        prices.in[part] = 1;
        continue;
      }
      spare[part] = std::max(0.0, 1 - prices.in[part] - prices.out[part]);
      prices.in[part] += spare[part] / 2;
      prices.out[part] += spare[part] / 2;
    }
    for (std::size_t g = 0; g < solved.grid.groups.size(); ++g) {
      prices.room[solved.grid.groups[g].row_boundary] += solved.solution.room[g] * units_.per_byte;
    }
    Response response = pricing_.respond(prices);
    if (!model_.half_duplex) give_spare_to_busier_link(std::move(prices), spare, solved, response);
    return response;
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

/// Distributes the stalls of groups among their operations by duration.
void add_stalls(const SwapModel& model, const SolvedGrid& solved, const ProgramUnits& units,
                std::vector<double>& time) {
  for (std::size_t g = 0; g < solved.grid.groups.size(); ++g) {
    const PartGroup& group = solved.grid.groups[g];
    const double stall = std::max(0.0, solved.solution.stall[g] * units.time);
    if (group.operations == 0) {
      time[group.first_operation] += stall;
      continue;
    }
    for (std::uint32_t i = group.first_operation; i < group.first_operation + group.operations; ++i) {
      time[i] += stall * (group.duration > 0 ? model.duration[i] / group.duration : 1.0 / group.operations);
    }
  }
}

/// Rounding down compensates the error of the computation if it is below a nanosecond. If it is larger (iterations of
/// days), the error is subtracted first.
std::chrono::nanoseconds whole_nanoseconds_below(double bound) {
  const double error = bound * 0x1p-46;
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::floor(error < 1 ? bound : bound - error))};
}

/// The result without a computed bound: nothing away, no stalls, and copies that gain nothing.
RelaxedSwaps without_copies(const Trace& trace, const SwapModel& model, std::size_t absences) {
  RelaxedSwaps relaxed;
  // model.compute cannot be used: as a double it may be larger than a sum of more than 53 bits.
  relaxed.lower_bound = compute_time(trace);
  relaxed.away.assign(absences, 0.0);
  relaxed.time = model.duration;
  relaxed.gain.assign(absences, 0.0);
  for (const Window& window : model.clean) relaxed.gain[window.absence] = -window.copy_in;
  for (const WrittenValue& value : model.values) {
    for (std::uint32_t i = value.first_window; i < value.first_window + value.windows; ++i) {
      relaxed.gain[model.dirty[i].absence] = -model.dirty[i].copy_in - value.copy_out;
    }
  }
  return relaxed;
}

}  // namespace
}  // namespace relaxation

const BoundEffort& bound_effort_for(const PlanningCase& planning, const BoundOptions& options) {
  return planning.operations <= options.long_trace ? options.usual : options.long_traces;
}

RelaxedSwaps relax_swaps(const PlanningCase& planning, const OverlapLedger& ledger, const BoundEffort& effort,
                         const std::function<bool()>& go_on) {
  const relaxation::SwapModel model = relaxation::make_swap_model(planning, ledger);
  RelaxedSwaps relaxed = relaxation::without_copies(planning.trace, model, ledger.absences.size());
  if (!relaxation::needs_copies(model)) return relaxed;
  relaxation::Relaxation search(model, effort);
  search.run(go_on);
  if (!search.best_grid()) return relaxed;

  const relaxation::SolvedGrid& solved = *search.best_grid();
  const relaxation::Response& best = search.best();
  constexpr double largest_time = 0x1p62;
  if (best.bound > model.compute && best.bound < largest_time) {
    relaxed.lower_bound = std::max(relaxed.lower_bound, relaxation::whole_nanoseconds_below(best.bound));
  }
  const relaxation::PartsAway parts = relaxation::parts_away(model, solved);
  for (std::size_t i = 0; i < model.clean.size(); ++i) {
    relaxed.away[model.clean[i].absence] = parts.clean[i];
    relaxed.gain[model.clean[i].absence] = best.clean_gain[i];
  }
  for (std::size_t i = 0; i < model.dirty.size(); ++i) {
    relaxed.away[model.dirty[i].absence] = parts.dirty[i];
    relaxed.gain[model.dirty[i].absence] = best.dirty_gain[i];
  }
  relaxation::add_stalls(model, solved, search.units(), relaxed.time);
  return relaxed;
}

}  // namespace swapmm::planning

namespace swapmm {

Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine, const BoundEffort& effort) {
  const Result<planning::PlanningCase> problem = planning::make_planning_case(trace, machine);
  if (!problem) return problem.problem();
  return planning::relax_swaps(*problem, planning::OverlapLedger(*problem), effort).lower_bound;
}

}  // namespace swapmm
