// SPDX-License-Identifier: Apache-2.0
#include "planning.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

#include <swapmm/answers/ways/ways.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/ways.hpp>

#include "failure.hpp"
#include "planner_options.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {

std::span<const NamedPlanner> known_planners() {
  static const std::vector<NamedPlanner> known = [] {
    std::vector<NamedPlanner> all(planners().begin(), planners().end());
    // A trace of version 1 has nothing that could run again, so the plan is for the trace itself.
    const auto units = [](const Trace& trace, const Machine& machine, const PlanningOptions& options) -> Result<Plan> {
      Result<PlanWithWays> made = plan_checkpoint_units(trace, machine, options);
      if (!made) return made.problem();
      return std::move(made->plan);
    };
    all.push_back(
        {"checkpoint-units", units, "units that begin with a checkpoint: some are copied, others recomputed"});
#ifdef SWAPMM_CLI_HAS_ILP
    all.push_back(ilp_planner());
#endif
    return all;
  }();
  return known;
}

Result<NamedPlanner> planner_of(std::string_view text) {
  const std::string_view name = name_of_planner(text);
  if (name == "ilp") return ilp_planner_of(text);
  const auto known = std::ranges::find(known_planners(), name, &NamedPlanner::name);
  if (known == known_planners().end()) {
    return Problem{"no planner is called \"" + std::string(name) + "\"; there are " + planner_names()};
  }
  if (name.size() == text.size()) return *known;
  return Problem{"the planner " + std::string(name) + " has no options here, and \"" + std::string(text) +
                 "\" has some"};
}

Planned run_planner(std::string_view planner, const Trace& trace, const Machine& machine, TimeLimit limit,
                    Progress& progress) {
  Result<NamedPlanner> chosen = planner_of(planner);
  if (!chosen) return {chosen.problem()};
  chosen->name = planner;
  return run_planner(*chosen, trace, machine, options_within(limit, progress));
}

void tell_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "note: " << printable(note) << '\n';
}

std::string planner_names() {
  std::string names;
  for (const NamedPlanner& planner : known_planners()) names += (names.empty() ? "" : ", ") + planner.name;
  return names;
}

std::string planner_option_help() {
  return "Options of the planner ilp follow its name: --planner ilp:gap=1%:slots=60\n" + ilp_option_lines();
}

Result<std::string> parse_planner(std::string_view text) {
  const Result<NamedPlanner> planner = planner_of(text);
  if (!planner) return planner.problem();
  return std::string(text);
}

void check_plans_for_many(std::string_view planner) {
  const std::string_view name = name_of_planner(planner);
  const auto known = planners();
  if (name == "checkpoint-units" || std::ranges::find(known, name, &NamedPlanner::name) != known.end()) return;
  throw Failure(ExitCode::usage, "the planner " + std::string(name) + " plans for machines of version 1 alone");
}

Result<std::vector<std::string>> parse_planners(std::string_view text) {
  if (text != "all") return parse_each(text, parse_planner);
  std::vector<std::string> names;
  for (const NamedPlanner& planner : planners()) names.emplace_back(planner.name);
  return names;
}

namespace {

/// Breaks the text at the comma after its middle: lines of --help fit a terminal.
std::string in_two_lines(std::string text) {
  const std::size_t comma = text.find(", ", text.size() / 2);
  if (comma != std::string::npos) text[comma + 1] = '\n';
  return text;
}

}  // namespace

void add_planner_options(CLI::App& command, std::string& planner, TimeLimit& limit) {
  add_parsed(command, "--planner", planner, parse_planner, in_two_lines(planner_names()) + " [" + planner + "]",
             "NAME");
  add_parsed(command, "--time-limit", limit, parse_time_limit,
             "Search so long for each plan: 10s. Without it a set number of steps, always the same plan", "TIME");
}

void add_ways_option(CLI::App& command, Ways& ways) {
  add_parsed(command, "--ways", ways, parse_ways,
             "How values come back, for traces of version 2 and the planner best:\n"
             "swap,recompute,compress,pieces [all that the trace allows]",
             "NAMES");
}

}  // namespace swapmm::cli
