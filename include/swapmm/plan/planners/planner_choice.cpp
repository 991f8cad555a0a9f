// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/planner_choice.hpp>

#include <exception>
#include <string>

#include <swapmm/plan/planners.hpp>

namespace swapmm {
namespace {

Problem thrown_by(const std::string& name, const std::string& what) {
  return {(name.empty() ? std::string("the program's own planner") : "the planner \"" + name + '"') + " threw " + what};
}

}  // namespace

Result<Plan> PlannerChoice::plan(const Trace& trace, const Machine& machine, const PlanningOptions& options) const {
  return is_own() ? plan_by_own(trace, machine, options) : make_plan(name_, trace, machine, options);
}

Result<Plan> PlannerChoice::plan_by_own(const Trace& trace, const Machine& machine,
                                        const PlanningOptions& options) const {
  try {
    Result<Plan> plan = (*make_)(trace, machine, options);
    if (!plan) return plan;
    if (!name_.empty()) plan->planner = name_;
    if (plan->planner.empty()) plan->planner = "own planner";
    return plan;
  } catch (const std::exception& error) {
    return thrown_by(name_, std::string("an exception: ") + error.what());
  } catch (...) {
    return thrown_by(name_, "something that is no std::exception");
  }
}

}  // namespace swapmm
