// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp.hpp>

#include <string>
#include <utility>

#include <swapmm/plan/ilp/search.hpp>

namespace swapmm {

Result<IlpResult> plan_by_ilp(const Trace& trace, const Machine& machine, const IlpOptions& options,
                              const PlanningOptions& limits) {
  return planning::ilp::plan_by(planning::ilp::cbc(), trace, machine, options, limits);
}

NamedPlanner ilp_planner(const IlpOptions& options) {
  const auto make = [options](const Trace& trace, const Machine& machine,
                              const PlanningOptions& limits) -> Result<Plan> {
    Result<IlpResult> result = plan_by_ilp(trace, machine, options, limits);
    if (!result) return result.problem();
    if (limits.note) {
      for (const std::string& note : result->notes) limits.note(note);
    }
    return std::move(result->plan);
  };
  return {"ilp", make, "an integer linear program, solved by COIN-OR Cbc"};
}

}  // namespace swapmm
