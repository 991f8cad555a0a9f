// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/replay_bound.hpp>

#include <algorithm>

#include <swapmm/plan/relaxation/relaxation.hpp>

namespace swapmm::planning {

double bound_with_replays(const PlanningCase& planning, const OverlapLedger& ledger, std::span<const double> again,
                          double saved_by_copy, const BoundEffort& effort) {
  relaxation::SwapModel model = relaxation::make_swap_model(planning, ledger);
  const auto shorten = [&](double& copy) { copy = std::max(0.0, copy - saved_by_copy); };
  for (relaxation::Window& window : model.clean) shorten(window.copy_in);
  for (relaxation::WrittenValue& value : model.values) shorten(value.copy_out);
  for (relaxation::Window& window : model.dirty) {
    shorten(window.copy_in);
    window.again = again[window.absence];
  }
  if (!relaxation::needs_copies(model)) return model.compute;
  relaxation::Relaxation search(model, effort);
  search.run({});
  return search.best_grid() ? std::max(model.compute, search.best().bound) : model.compute;
}

}  // namespace swapmm::planning
