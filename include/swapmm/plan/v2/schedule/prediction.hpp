// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/simulate.hpp>

namespace swapmm::v2::planning {

/// Fills in what simulate() says of a valid plan: all of `predicted` but the bound.
inline void predict(const Trace& trace, Plan& plan) {
  const Simulation simulation = simulate(trace, plan);
  plan.predicted.iteration = simulation.iteration;
  plan.predicted.compute = simulation.compute;
  plan.predicted.links = simulation.links;
  plan.predicted.peaks = simulation.peaks;
}

}  // namespace swapmm::v2::planning
