// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/machine_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using boost::json::object;

namespace {

/// A device, a neighbour's spare memory, and a host, for two_weights(): 5,000 bytes each.
constexpr std::string_view machine = R"({"format": "swapmm-machine", "version": 2, "name": "pair",
  "memories": [{"name": "gpu", "bytes": 6000}, {"name": "spare", "bytes": 8000}, {"name": "host", "bytes": null}],
  "engines": [{"name": "compute", "memory": "gpu"}],
  "links": [{"name": "host-gpu", "from": "host", "to": "gpu", "bytes_per_second": 1000000000, "latency_ns": 0},
            {"name": "gpu-host", "from": "gpu", "to": "host", "bytes_per_second": 1000000000, "latency_ns": 0},
            {"name": "spare-gpu", "from": "spare", "to": "gpu", "bytes_per_second": 9000000000, "latency_ns": 0},
            {"name": "gpu-spare", "from": "gpu", "to": "spare", "bytes_per_second": 9000000000, "latency_ns": 0}],
  "host": "host"})";

std::string machine_file() {
  const std::string file = scratch_file("machine_v2.json");
  write_contents(file, machine);
  return file;
}

}  // namespace

TEST_CASE("a plan for a machine with many memories is written in version 2, and passes check") {
  const std::string file = scratch_file("plan_v2.json");
  for (const std::string planner : {"belady", "best"}) {
    CAPTURE(planner);
    const object answer =
        run_json({"plan", two_weights(), "--machine", machine_file(), "--planner", planner, "-o", file});
    const Result<v2::Plan> plan = v2::read_plan(contents(file));
    REQUIRE(plan.has_value());
    CHECK(plan->machine.name == "pair");
    CHECK(plan->planner == planner);
    CHECK(v2::validate(read_trace(contents(two_weights())).value(), *plan).empty());
    CHECK(number(answer, "predicted.iteration_ns") == plan->predicted.iteration.count());
    CHECK(answer.at("predicted").at("memories").as_array().size() == 2);
    CHECK(run_json({"check", two_weights(), file}).at("valid") == true);
  }
  // One tensor fits into the spare memory, whose links are the fast ones.
  const Result<v2::Plan> best = v2::read_plan(contents(file));
  CHECK(best->predicted.links[2] > Bytes{0});
}

TEST_CASE("a machine is read once, so it may come from a pipe") {
  const Outcome outcome =
      run_program({"plan", two_weights(), "--machine", "-", "--planner", "belady"}, std::string(machine));
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("for pair") != std::string::npos);
}

TEST_CASE("check names the rules that a plan of version 2 breaks") {
  const std::string file = scratch_file("broken_v2.json");
  REQUIRE(run_program({"plan", two_weights(), "--machine", machine_file(), "--planner", "belady", "-o", file}).code ==
          0);
  std::string text = contents(file);
  const std::size_t first = text.find("\"after\": [");
  REQUIRE(first != std::string::npos);
  text.replace(first, text.find(']', first) + 1 - first, "\"after\": []");
  write_contents(file, text);
  const Outcome checked = run_program({"check", two_weights(), file});
  CHECK(checked.code == 1);
  CHECK(checked.out.find("rule 6 (order whatever things take)") != std::string::npos);
}

TEST_CASE("what version 2 cannot do is said") {
  const auto fails = [](std::vector<std::string> words, int code, std::string_view message) {
    const Outcome outcome = run_program(std::move(words));
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.err.find(message) != std::string::npos);
  };
  fails({"plan", two_weights(), "--machine", machine_file(), "--budget", "5KB"}, 2, "only --machine can be given");
  fails({"plan", two_weights(), "--machine", machine_file(), "--changed", "-"}, 2,
        "--changed is for machines of version 1");
  fails({"fit", two_weights(), "--machine", machine_file(), "--bandwidth", "1GB/s"}, 2,
        "only --machine and --budget, for its device, can be given");
  const std::string trace = scratch_file("trace_v2.json");
  write_contents(trace, R"({"format": "swapmm-trace", "version": 2, "name": "two", "tensors": [],
    "operations": [{"name": "a", "duration_ns": 5, "engine": "other"}]})");
  fails({"plan", trace, "--machine", machine_file()}, 1, "the machine has no engine other with a memory");
  fails({"explain", trace, trace}, 3, "which only the commands check and plan know");
}

TEST_CASE("fit tells the bytes of each memory, and what changes without one or with a smaller device") {
  const object answer = run_json({"fit", two_weights(), "--machine", machine_file()});
  CHECK(answer.at("fits") == true);
  const auto& memories = answer.at("memories").as_array();
  REQUIRE(memories.size() == 3);
  CHECK(memories[0].at("used_bytes").as_int64() <= 6000);
  CHECK(memories[1].at("used_bytes").as_int64() > 0);  // the spare memory has the fast links
  CHECK(memories[1].at("used_bytes").as_int64() <= 8000);
  bool has_without = false;
  for (const auto& variant : answer.at("variants").as_array()) {
    if (variant.at("variant") != "without spare") continue;
    has_without = true;
    CHECK(variant.at("fits") == true);
    CHECK(variant.at("slowdown").to_number<double>() > answer.at("slowdown").to_number<double>());
    CHECK(variant.at("memories").as_array()[1].at("used_bytes") == 0);
  }
  CHECK(has_without);
  const Outcome in_words = run_program({"fit", two_weights(), "--machine", machine_file(), "--this-budget-only"});
  CHECK(in_words.code == 0);
  CHECK(in_words.out.find(" of spare") != std::string::npos);
  CHECK(in_words.out.find("without spare") == std::string::npos);
  const Outcome too_small = run_program({"fit", two_weights(), "--machine", machine_file(), "--budget", "100"});
  CHECK(too_small.code == 1);
  CHECK(too_small.out.find("no: ") != std::string::npos);
}

TEST_CASE("compare takes a machine with many memories") {
  const object answer = run_json({"compare", two_weights(), "--machine", machine_file(), "--planners", "belady,best"});
  const auto& rows = answer.at("rows").as_array();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].at("planner") == "belady");
  CHECK(rows[1].at("predicted").at("iteration_ns").as_int64() <= rows[0].at("predicted").at("iteration_ns").as_int64());
  CHECK(run_program({"compare", two_weights(), "--machine", machine_file(), "--csv"}).code == 2);
}

TEST_CASE("machines are known by name, and an unknown name is answered with the list") {
  const object answer = run_json({"machines"});
  const auto& list = answer.at("machines").as_array();
  CHECK(list.size() >= 5);
  for (const auto& machine : list) {
    const std::string name(machine.at("name").as_string());
    CAPTURE(name);
    CHECK(!machine.at("sources").as_string().empty());
    const Outcome file = run_program({"machines", name});
    CHECK(file.code == 0);
    const auto read = v2::read_machine(std::string_view(file.out));
    REQUIRE(read.has_value());
    CHECK(read->name == name);
    CHECK(run_program({"plan", two_weights(), "--machine", name, "--planner", "belady"}).code == 0);
  }
  const Outcome unknown = run_program({"plan", two_weights(), "--machine", "gtx9999"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("h200x4-nvlink") != std::string::npos);
}
