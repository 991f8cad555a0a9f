// SPDX-License-Identifier: Apache-2.0
#include "compare_many.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <utility>

#include <swapmm/base/text/figures.hpp>

#include "files.hpp"
#include "many_memories.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

struct Compared {
  std::string trace;
  std::string planner;
  Result<v2::Plan> plan;
  std::chrono::nanoseconds took{0};
  std::chrono::nanoseconds bound{0};  // the best one of any planner for this trace
};

std::optional<double> gap_of(const Compared& row) {
  const std::optional<double> above = ratio(row.plan->predicted.iteration, row.bound);
  return above ? std::optional(*above - 1) : std::nullopt;
}

}  // namespace

ExitCode compare_many(const CompareMany& asked, std::string_view machine_text) {
  const v2::Machine machine = machine_v2_from(asked.machine, machine_text);
  std::vector<Trace> traces;
  for (const std::string& path : asked.traces) traces.push_back(load_any_trace(path));
  std::vector<Compared> rows;
  ExitCode code = ExitCode::ok;
  Progress progress(asked.quiet);
  for (const Trace& trace : traces) {
    bool any = false;
    const std::size_t first = rows.size();
    std::chrono::nanoseconds bound{0};
    for (const std::string& planner : asked.planners) {
      progress.begin(printable(trace.name) + ", " + planner);
      const auto start = std::chrono::steady_clock::now();
      Result<v2::Plan> plan = plan_for_many(planner, trace, machine, asked.limit, asked.ways, progress);
      const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
      any = any || plan;
      if (plan) bound = std::max(bound, plan->predicted.lower_bound);
      rows.push_back({trace.name, planner, std::move(plan), took});
    }
    for (std::size_t i = first; i < rows.size(); ++i) rows[i].bound = bound;
    if (!any) code = ExitCode::no;
  }
  progress.end();
  if (asked.json) {
    json::array list;
    for (const Compared& row : rows) {
      json::object one{{"trace", json_name(row.trace)}, {"planner", row.planner}, {"planning_ns", row.took.count()}};
      if (row.plan) {
        one["predicted"] = to_json(*row.plan);
        one["lower_bound_ns"] = row.bound.count();
        one["gap"] = json_number(gap_of(row));
      } else {
        one["problem"] = json_name(row.plan.problem().message);
      }
      list.push_back(std::move(one));
    }
    print_json({{"machine", json_name(machine.name)}, {"rows", std::move(list)}});
    return code;
  }
  std::vector<std::vector<std::string>> table{{"trace", "planner", "iteration", "of ideal", "gap"}};
  for (const v2::Link& link : machine.links) table[0].push_back(printable(link.name));
  table[0].emplace_back("planned in");
  for (const Compared& row : rows) {
    std::vector<std::string> cells{printable(row.trace), row.planner};
    if (row.plan) {
      const v2::Prediction& predicted = row.plan->predicted;
      cells.push_back(text::time_text(predicted.iteration));
      cells.push_back(ratio_text(fraction_of_ideal(predicted.compute, predicted.iteration)));
      cells.push_back(percent(gap_of(row)));
      for (const Bytes bytes : predicted.links) cells.push_back(decimal_size(bytes));
      cells.push_back(text::time_text(row.took));
    } else {
      cells.emplace_back("no plan");
    }
    table.push_back(std::move(cells));
  }
  print_table(table);
  for (const Compared& row : rows) {
    if (!row.plan) {
      std::cout << row.planner << ", " << printable(row.trace) << ": " << printable(row.plan.problem().message) << '\n';
    }
  }
  return code;
}

}  // namespace swapmm::cli
