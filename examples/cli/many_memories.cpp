// SPDX-License-Identifier: Apache-2.0
#include "many_memories.hpp"

#include <chrono>
#include <iostream>
#include <utility>
#include <vector>

#include <swapmm/answers/ways/ways.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "files.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {

v2::Machine machine_for_many(const MachineOptions& options, const Trace& trace, std::string_view text,
                             bool takes_budget) {
  if (!is_version_2(text)) return v2::from_version_1(make_machine(options, trace, text));
  MachineOptions others = options;
  if (takes_budget) others.budget.reset();
  if (has_figures(others)) {
    throw Failure(ExitCode::usage,
                  options.file + ": a machine of version 2 has its own figures; only --machine" +
                      (takes_budget ? " and --budget, for its devices, can be given" : " can be given"));
  }
  return machine_v2_from(options.file, text);
}

Result<v2::Plan> plan_for_many(const std::string& planner, const Trace& trace, const v2::Machine& machine,
                               TimeLimit limit, const Ways& ways, Progress& progress) {
  PlanningOptions options = options_within(limit, progress);
  options.ways = ways;
  return checked(planner, trace, v2::make_plan(planner, trace, machine, options));
}

Result<v2::Plan> checked(const std::string& planner, const Trace& trace, Result<v2::Plan> plan) {
  if (!plan) return plan;
  const std::vector<Violation> violations = v2::validate(trace, *plan);
  if (violations.empty()) return plan;
  return Problem{"planner " + planner +
                 " made a plan that is not valid, which is a mistake of swapmm: " + violations.front().message};
}

std::vector<std::pair<std::string, std::string>> ways_in_words(const Trace& trace, const v2::Plan& plan) {
  std::vector<std::pair<std::string, std::string>> lines;
  const WaysUsed used = ways_used(trace, plan);
  const auto part = [&](std::chrono::nanoseconds time) {
    return percent(ratio(time, plan.predicted.compute)) + " of the computation";
  };
  const auto counted = [](std::size_t count, const char* one, const char* many) {
    return std::to_string(count) + ' ' + (count == 1 ? one : many);
  };
  if (used.again != 0) {
    lines.emplace_back("recomputed", counted(used.again, "operation runs again", "operations run again") + ", " +
                                         part(used.again_time) + ", instead of copies of " +
                                         decimal_size(used.again_bytes));
  }
  if (used.decoded == 0) return lines;
  std::string text = counted(used.decoded, "value comes back", "values come back") + " from an encoded form, " +
                     part(used.coding_time);
  if (used.encoded_copies != 0) {
    text += ", " + counted(used.encoded_copies, "copy", "copies") + " of " + decimal_size(used.encoded_bytes) +
            " instead of " + decimal_size(used.plain_bytes);
  }
  lines.emplace_back("compressed", text);
  return lines;
}

void print_ways(const Trace& trace, const v2::Plan& plan) {
  for (const auto& [name, text] : ways_in_words(trace, plan)) print_line(name, text);
}

Predicted predict_in_version_1(const std::string& planner, const Trace& trace, const Machine& machine, TimeLimit limit,
                               const Ways& ways, Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const Result<v2::Plan> plan = plan_for_many(planner, trace, v2::from_version_1(machine), limit, ways, progress);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
  if (!plan) return {plan.problem(), took};
  const v2::Prediction& predicted = plan->predicted;
  Predicted made{Prediction{}, took};
  made.prediction->iteration = predicted.iteration;
  made.prediction->compute = predicted.compute;
  made.prediction->lower_bound = predicted.lower_bound;
  made.prediction->h2d = predicted.links[0];
  made.prediction->d2h = predicted.links[1];
  made.prediction->peak = predicted.peaks[0];
  for (const auto& [name, text] : ways_in_words(trace, *plan)) made.notes.push_back(name + ": " + text);
  return made;
}

void print_prediction(const v2::Plan& plan) {
  const v2::Prediction& predicted = plan.predicted;
  print_times(predicted.compute, predicted.lower_bound, predicted.iteration);
  print_links_and_memories(plan);
}

void print_links_and_memories(const v2::Plan& plan) {
  const v2::Prediction& predicted = plan.predicted;
  for (std::size_t i = 0; i < predicted.links.size(); ++i) {
    if (predicted.links[i] == Bytes{0}) continue;
    print_line("over " + printable(plan.machine.links[i].name), decimal_size(predicted.links[i]) + " an iteration");
  }
  for (std::size_t i = 0; i < predicted.peaks.size(); ++i) {
    const v2::Memory& memory = plan.machine.memories[i];
    if (!memory.bytes) continue;
    print_line("used of " + printable(memory.name),
               decimal_size(predicted.peaks[i]) + " of " + decimal_size(*memory.bytes));
  }
}

boost::json::object to_json(const v2::Plan& plan) {
  const v2::Prediction& predicted = plan.predicted;
  boost::json::array links;
  for (std::size_t i = 0; i < predicted.links.size(); ++i) {
    links.push_back({{"link", plan.machine.links[i].name}, {"bytes", predicted.links[i].value}});
  }
  boost::json::array memories;
  for (std::size_t i = 0; i < predicted.peaks.size(); ++i) {
    const v2::Memory& memory = plan.machine.memories[i];
    if (memory.bytes) memories.push_back({{"memory", memory.name}, {"peak_bytes", predicted.peaks[i].value}});
  }
  return {{"iteration_ns", predicted.iteration.count()},
          {"compute_ns", predicted.compute.count()},
          {"lower_bound_ns", predicted.lower_bound.count()},
          {"links", std::move(links)},
          {"memories", std::move(memories)}};
}

void print_title(const Trace& trace, const v2::Plan& plan) {
  std::cout << printable(trace.name) << ", planned by " << printable(plan.planner) << " for "
            << printable(plan.machine.name) << "\n\n";
}

}  // namespace swapmm::cli
