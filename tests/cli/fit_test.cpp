// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "program.hpp"

using namespace swapmm::test;
using boost::json::object;

namespace {

std::vector<std::string> fit(const std::string& trace, const std::string& budget, const std::string& bandwidth) {
  return {"fit", trace, "--budget", budget, "--bandwidth", bandwidth, "--alignment", "1"};
}

}  // namespace

TEST_CASE("fit says what is needed, what it costs and where stalls end") {
  const object answer = run_json(fit(two_weights(), "5000", "1GB/s"));
  CHECK(answer.at("fits") == true);
  CHECK(text_at(answer, "trace") == "two weights");
  CHECK(number(answer, "machine.device_budget_bytes") == 5000);
  CHECK(number(answer, "machine.h2d_bytes_per_second") == 1e9);
  CHECK(number(answer, "needs.peak_bytes") == 8000);
  CHECK(number(answer, "needs.peak_operation") == 0);
  CHECK(number(answer, "needs.largest_bundle.bytes") == 5000);
  CHECK(text_at(answer, "needs.largest_bundle.operation_name") == "read b");
  CHECK(number(answer, "predicted.compute_ns") == 110'000);
  CHECK(number(answer, "predicted.iteration_ns") == 121'000);
  CHECK(number(answer, "predicted.lower_bound_ns") >= 110'000);
  CHECK(number(answer, "predicted.lower_bound_ns") <= 121'000);
  CHECK(number(answer, "predicted.h2d_bytes") == 8000);
  CHECK(number(answer, "predicted.d2h_bytes") == 3000);
  CHECK(number(answer, "host_bytes") == 8000);
  // Below 8000 bytes one of the two must go; the search stops within 2 % of the peak.
  CHECK(number(answer, "stalls_end.budget_bytes") == 8000);
  CHECK(number(answer, "stalls_end.always_ns") == 0);
  CHECK(number(answer, "stalls_end.plans_made") <= 10);
  REQUIRE(number(answer, "stalls_found") == 2);
  const object& longest = answer.at("stalls").at(0).as_object();
  CHECK(text_at(longest, "operation_name") == "read b");
  CHECK(number(longest, "time_ns") == 8000);
  CHECK(text_at(longest, "waits_for") == "swap_in");
  CHECK(text_at(longest, "tensor_name") == "b");
  CHECK(number(answer.at("stalls").at(1).as_object(), "time_ns") == 3000);
}

TEST_CASE("fit with all the memory has no stalls") {
  const object answer = run_json(fit(two_weights(), "100%", "1GB/s"));
  CHECK(number(answer, "machine.device_budget_bytes") == 8000);
  CHECK(number(answer, "predicted.iteration_ns") == 110'000);
  CHECK(number(answer, "stalls_found") == 0);
  CHECK(number(answer, "stalls_end.budget_bytes") == 8000);
}

TEST_CASE("fit says no, with operation, bundle, shortfall and the largest tensors") {
  const object answer = run_json(fit(two_weights(), "4000", "1GB/s"), 1);
  CHECK(answer.at("fits") == false);
  CHECK(number(answer, "shortfall_bytes") == 1000);
  CHECK(number(answer, "needs.largest_bundle.operation") == 1);
  const boost::json::array& tensors = answer.at("needs").at("largest_bundle").at("largest_tensors").as_array();
  REQUIRE(tensors.size() == 1);
  CHECK(text_at(tensors[0].as_object(), "name") == "b");
  CHECK(number(tensors[0].as_object(), "bytes") == 5000);
  CHECK(text_at(answer, "problem").find("bundle of 5000 bytes; the device budget is 4000") != std::string::npos);

  const Outcome outcome = run_program(fit(two_weights(), "4000", "1GB/s"));
  CHECK(outcome.code == 1);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("short of            1.00 KB") != std::string::npos);
  CHECK(outcome.out.find("5.00 KB  tensor 1 \"b\", persistent") != std::string::npos);
}

TEST_CASE("fit names the tensors that no allocation can hold") {
  std::vector<std::string> arguments = fit(two_weights(), "8000", "1GB/s");
  // "read b" has the largest bundle; "a" alone, the smaller tensor, fits.
  arguments.insert(arguments.end(), {"--max-allocation", "4000"});
  const object answer = run_json(arguments, 1);
  CHECK(answer.at("fits") == false);
  CHECK(number(answer, "shortfall_bytes") == 0);
  CHECK(text_at(answer, "problem").find("tensor 1 (b) of 5000 bytes; the largest allocation is 4000") !=
        std::string::npos);
  const boost::json::array& tensors = answer.at("above_max_allocation").as_array();
  REQUIRE(tensors.size() == 1);
  CHECK(text_at(tensors[0].as_object(), "name") == "b");

  // The bundle of "both" is the largest, and each of its tensors fits; what does not is used by another operation.
  const std::string trace = scratch_file("allocation.json");
  write_contents(
      trace, R"({"format": "swapmm-trace", "version": 1, "name": "allocation", "tensors": [)"
             R"({"name": "a", "bytes": 3000, "kind": "persistent"}, {"name": "b", "bytes": 3000, "kind":)"
             R"( "persistent"}, {"name": "large", "bytes": 5000, "kind": "persistent"}, {"name": "larger", "bytes":)"
             R"( 5500, "kind": "persistent"}], "operations": [)"
             R"({"name": "both", "duration_ns": 10, "reads": [0, 1], "writes": [], "updates": []},)"
             R"({"name": "one", "duration_ns": 10, "reads": [2], "writes": [], "updates": []},)"
             R"({"name": "another", "duration_ns": 10, "reads": [3], "writes": [], "updates": []}]})");
  arguments = fit(trace, "8000", "1GB/s");
  arguments.insert(arguments.end(), {"--max-allocation", "4000"});
  const Outcome outcome = run_program(arguments);
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("tensors above the largest allocation of 4.00 KB:\n"
                         "  5.50 KB  tensor 3 \"larger\", persistent\n  5.00 KB  tensor 2 \"large\"") !=
        std::string::npos);
  CHECK(outcome.out.find("tensor 0 \"a\"") == std::string::npos);
  CHECK(outcome.out.find("the largest tensors of that bundle") == std::string::npos);

  // Both in the way: both told.
  arguments = fit(trace, "5200", "1GB/s");
  arguments.insert(arguments.end(), {"--max-allocation", "4000"});
  const std::string both = run_program(arguments).out;
  CHECK(both.find("the largest tensors of that bundle:\n  3.00 KB  tensor 0 \"a\"") != std::string::npos);
  CHECK(both.find("tensors above the largest allocation of 4.00 KB:\n  5.50 KB") != std::string::npos);
}

TEST_CASE("fit of a recorded program: where stalls end lies between budget and peak, and inputs are told apart") {
  std::vector<std::string> arguments = fit(lstm(), "90%", "10MB/s");
  arguments.insert(arguments.end(), {"--planner", "belady", "--top", "3"});
  const object answer = run_json(arguments);
  const double peak = number(answer, "needs.peak_bytes");
  CHECK(number(answer, "machine.device_budget_bytes") == static_cast<double>(static_cast<long>(peak * 0.9)));
  CHECK(answer.at("stalls").as_array().size() == 3);
  const double end = number(answer, "stalls_end.budget_bytes");
  CHECK(end > peak * 0.9);
  CHECK(end < peak * 1.2);
  // 128 bytes of input at 10 MB/s.
  CHECK(number(answer, "stalls_end.always_ns") > 0);
  CHECK(number(answer, "stalls_end.always_ns") <= 2 * 12'800);
  CHECK(text_at(answer, "planner") == "belady");
  // The budget that was found is one where only that is waited for.
  const object there = run_json({"plan", lstm(), "--planner", "belady", "--alignment", "1", "--bandwidth", "10MB/s",
                                 "--budget", std::to_string(static_cast<long>(end))});
  CHECK(number(there, "predicted.iteration_ns") <=
        1.001 * (number(answer, "predicted.compute_ns") + number(answer, "stalls_end.always_ns")) + 1);
}

TEST_CASE("fit for persons") {
  std::vector<std::string> arguments = fit(two_weights(), "5000", "1GB/s");
  const Outcome outcome = run_program(arguments);
  CHECK(outcome.code == 0);
  for (const std::string text :
       {"two weights on 5.00 KB, 1.00 GB/s each way", "fits                yes, with planner best",
        "needs               8.00 KB live at the peak, operation 0 \"update a\"; 1.600 x the budget",
        "this plan           121.000 us, 1.100 x the computation", "host memory         8.00 KB",
        "stalls end at       8.00 KB", "2 operations wait, 11.000 us in all",
        "8.000 us  operation 1 \"read b\" waits for tensor 1 \"b\" (5.00 KB) to come in"}) {
    CAPTURE(text);
    CHECK(outcome.out.find(text) != std::string::npos);
  }
  arguments.emplace_back("--this-budget-only");
  CHECK(run_program(arguments).out.find("stalls end at") == std::string::npos);
  CHECK(run_json(arguments).at("stalls_end").is_null());
}
