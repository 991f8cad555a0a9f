// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/lower_bound.hpp>

#include <algorithm>
#include <cmath>

#include <swapmm/plan/relaxation/relaxation.hpp>

namespace swapmm::planning {
namespace relaxation {
namespace {

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
