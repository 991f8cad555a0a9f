// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/plan/planners.hpp>

#include "csv.hpp"
#include "program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using boost::json::object;

namespace {

std::vector<std::string> compare(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"compare", two_weights(), "--bandwidth", "1GB/s", "--alignment", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("compare runs all planners at three budgets, unless told otherwise") {
  // At half of the peak nothing fits, so the answer is no.
  const object answer = run_json(compare({"--time-limit", "100ms"}), 1);
  const boost::json::array& rows = answer.at("rows").as_array();
  CHECK(rows.size() == 3 * planners().size());
  std::map<std::string, int> seen;
  for (const boost::json::value& row : rows) ++seen[text_at(row.as_object(), "planner")];
  for (const NamedPlanner& planner : planners()) CHECK(seen[std::string(planner.name)] == 3);
  CHECK(number(rows.front().as_object(), "machine.device_budget_bytes") == 7200);
  CHECK(number(rows.back().as_object(), "machine.device_budget_bytes") == 4000);
  CHECK(run_program(compare({"--time-limit", "100ms", "--budgets", "0.9,0.7"})).code == 0);
}

TEST_CASE("compare: time, fraction of ideal, gap to the best bound") {
  const object answer = run_json(compare({"--budgets", "5000,8000", "--planners", "per-operation,excess-overlap"}));
  const boost::json::array& rows = answer.at("rows").as_array();
  REQUIRE(rows.size() == 4);
  const object& row = rows[1].as_object();
  CHECK(text_at(row, "trace") == "two weights");
  CHECK(text_at(row, "planner") == "excess-overlap");
  CHECK(number(row, "predicted.iteration_ns") == 121'000);
  CHECK(number(row, "fraction_of_ideal") == doctest::Approx(110.0 / 121));
  const double bound = number(row, "lower_bound_ns");
  CHECK(number(row, "gap") == doctest::Approx(121'000 / bound - 1));
  CHECK(number(rows[0].as_object(), "lower_bound_ns") == bound);
  CHECK(number(row, "predicted.h2d_bytes") == 8000);
  CHECK(number(rows[3].as_object(), "predicted.iteration_ns") == 110'000);
}

TEST_CASE("compare over traces, bandwidths and speeds of computation") {
  const object answer = run_json({"compare", two_weights(), lstm(), "--planners", "belady", "--budgets", "5000,100%",
                                  "--bandwidths", "1GB/s,2GB/s", "--compute-scale", "1,1/10", "--alignment", "1"},
                                 1);  // 5000 bytes are too few for the larger one
  const boost::json::array& rows = answer.at("rows").as_array();
  REQUIRE(rows.size() == 16);
  CHECK(number(rows[0].as_object(), "predicted.iteration_ns") == 121'000);
  CHECK(number(rows[2].as_object(), "machine.h2d_bytes_per_second") == 2e9);
  CHECK(number(rows[2].as_object(), "predicted.iteration_ns") == 115'500);
  CHECK(number(rows[4].as_object(), "compute_scale") == doctest::Approx(0.1));
  CHECK(number(rows[4].as_object(), "predicted.compute_ns") == 11'000);
  CHECK(number(rows[4].as_object(), "predicted.iteration_ns") == 22'000);
  CHECK(text_at(rows[8].as_object(), "problem").find("needs a bundle") != std::string::npos);
  CHECK(!rows[8].as_object().contains("predicted"));
}

TEST_CASE("compare as CSV: a line of names, then a line for each plan with as many fields") {
  const Outcome outcome = run_program(compare({"--budgets", "5000,4000", "--planners", "belady", "--csv"}));
  CHECK(outcome.code == 1);
  std::istringstream lines(outcome.out);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  REQUIRE(all.size() == 3);
  const auto names = cli::csv_fields(all[0]);
  REQUIRE(names.size() == 16);
  const auto field = [&](const std::string& line, const std::string& name) {
    const auto fields = cli::csv_fields(line);
    REQUIRE(fields.size() == names.size());
    const auto found = std::find(names.begin(), names.end(), name);
    REQUIRE(found != names.end());
    return std::string(fields[static_cast<std::size_t>(found - names.begin())]);
  };
  CHECK(field(all[1], "trace") == "two weights");
  CHECK(field(all[1], "budget_bytes") == "5000");
  CHECK(field(all[1], "peak_bytes") == "8000");
  CHECK(field(all[1], "iteration_ns") == "121000");
  CHECK(field(all[1], "compute_ns") == "110000");
  CHECK(field(all[1], "d2h_bytes") == "3000");
  CHECK(field(all[1], "problem").empty());
  CHECK(field(all[2], "iteration_ns").empty());
  CHECK(field(all[2], "problem").find("needs a bundle of 5000 bytes") != std::string::npos);
  check_refused(compare({"--csv", "--json"}), 2, {"--csv and --json"});
}

TEST_CASE("fields of CSV are quoted where they must be") {
  const std::vector<std::string> fields = {"plain", "with, comma", "with \"quotes\"", "two\nlines", ""};
  CHECK(cli::csv_line(fields) == "plain,\"with, comma\",\"with \"\"quotes\"\"\",\"two\nlines\",\n");
  CHECK(cli::csv_fields(" a ,b,,c\r") == std::vector<std::string_view>{"a", "b", "", "c"});
}

TEST_CASE("compare for persons: a table, and under it why there is no plan") {
  const Outcome outcome = run_program(compare({"--budgets", "5000,4000", "--planners", "belady"}));
  CHECK(outcome.code == 1);
  CHECK(outcome.out.starts_with("trace"));
  for (const std::string text : {"121.000 us", "0.909", "8.00 KB  3.00 KB", "no plan\n",
                                 "belady, two weights, 4.00 KB: operation 1 (read b) needs a bundle of 5000 bytes"}) {
    CAPTURE(text);
    CHECK(outcome.out.find(text) != std::string::npos);
  }
}
