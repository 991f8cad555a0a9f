// SPDX-License-Identifier: Apache-2.0
#include "planning.hpp"

#include <swapmm/plan/ilp.hpp>

#include "quantities.hpp"

namespace swapmm::cli {
namespace {

NamedPlanner planner_called(std::string_view name) {
  for (const NamedPlanner& planner : known_planners()) {
    if (planner.name == name) return planner;
  }
  const auto make = [name = std::string(name)](const Trace& trace, const Machine& machine,
                                               const PlanningOptions& options) {
    return make_plan(name, trace, machine, options);
  };
  return {std::string(name), make, ""};
}

}  // namespace

std::span<const NamedPlanner> known_planners() {
  static const std::vector<NamedPlanner> known = [] {
    std::vector<NamedPlanner> all(planners().begin(), planners().end());
#ifdef SWAPMM_CLI_HAS_ILP
    all.push_back(ilp_planner());
#endif
    return all;
  }();
  return known;
}

Planned run_planner(std::string_view name, const Trace& trace, const Machine& machine, TimeLimit limit,
                    Progress& progress) {
  return run_planner(planner_called(name), trace, machine, options_within(limit, progress));
}

std::string planner_names() {
  std::string names;
  for (const NamedPlanner& planner : known_planners()) names += (names.empty() ? "" : ", ") + planner.name;
  return names;
}

Result<std::string> parse_planner(std::string_view name) {
  for (const NamedPlanner& planner : known_planners()) {
    if (planner.name == name) return std::string(name);
  }
  if (name == "ilp") return Problem{"this command was built without COIN-OR Cbc, which the planner \"ilp\" needs"};
  return Problem{"no planner is called \"" + std::string(name) + "\"; there are " + planner_names()};
}

Result<std::vector<std::string>> parse_planners(std::string_view text) {
  if (text != "all") return parse_each(text, parse_planner);
  std::vector<std::string> names;
  for (const NamedPlanner& planner : planners()) names.emplace_back(planner.name);
  return names;
}

void add_planner_options(CLI::App& command, std::string& planner, TimeLimit& limit) {
  add_parsed(command, "--planner", planner, parse_planner, planner_names() + " [" + planner + "]", "NAME");
  add_parsed(command, "--time-limit", limit, parse_time,
             "For each plan, of planners that search: 10s. Without it a set number of steps, always the same plan",
             "TIME");
}

}  // namespace swapmm::cli
