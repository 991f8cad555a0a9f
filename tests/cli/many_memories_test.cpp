// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/machine_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "program.hpp"
#include "support/v2/rich_plan.hpp"

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

std::string plan_file() {
  const std::string file = scratch_file("plan_for_many.json");
  const Outcome outcome =
      run_program({"plan", two_weights(), "--machine", machine_file(), "--planner", "belady", "-o", file});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return file;
}

void check_has(const std::string& text, const std::vector<std::string>& parts) {
  CAPTURE(text);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
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

TEST_CASE("planners that plan for version 1 alone are refused for a machine of version 2, by name") {
#ifdef SWAPMM_CLI_HAS_ILP
  const std::string text = "the planner ilp plans for machines of version 1 alone";
#else
  const std::string text = "built without COIN-OR Cbc";
#endif
  check_refused({"plan", two_weights(), "--machine", machine_file(), "--planner", "ilp:gap=1%"}, 2, {text});
  check_refused({"fit", two_weights(), "--machine", machine_file(), "--planner", "ilp"}, 2, {text});
  check_refused({"compare", two_weights(), "--machine", machine_file(), "--planners", "best,ilp"}, 2, {text});
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

TEST_CASE("explain says what engines, links and memories of a plan of version 2 do, and what waits") {
  const std::string file = plan_file();
  const Result<v2::Plan> plan = v2::read_plan(contents(file));
  REQUIRE(plan.has_value());
  const object answer = run_json({"explain", two_weights(), file});
  CHECK(number(answer, "predicted.iteration_ns") == plan->predicted.iteration.count());
  CHECK(number(answer, "predicted.lower_bound_ns") == plan->predicted.lower_bound.count());
  CHECK(answer.at("engines").as_array().size() == 1);
  CHECK(answer.at("links").as_array().size() == 4);
  CHECK(answer.at("memories").as_array().size() == 3);
  double waits = 0;
  for (const auto& stall : answer.at("stalls").as_array()) waits += number(stall.as_object(), "time_ns");
  CHECK(waits > 0);
  CHECK(number(answer.at("engines").at(0).as_object(), "waits_ns") == waits);
  CHECK(number(answer, "predicted.iteration_ns") == 110'000 + waits);
  // As in version 1: a is away while b comes in and is read, b while a comes in, is updated and goes out.
  REQUIRE(number(answer, "absences_found") == 2);
  CHECK(number(answer.at("absences").at(0).as_object(), "time_ns") == 105'000);
  CHECK(number(answer.at("absences").at(1).as_object(), "time_ns") == 16'000);
  const Outcome outcome = run_program({"explain", two_weights(), file, "--top", "1"});
  CHECK(outcome.code == 0);
  check_has(outcome.out, {"planned by belady for pair", "no schedule beats", "operations", "slowed by sharing",
                          "kept values", "an engine waits", "compute: operation \"",
                          "times a value is away from a memory between two uses", "back over link "});
}

TEST_CASE("explain and show name what runs again, what is encoded, and pieces") {
  const std::string trace = scratch_file("rich_trace.json");
  const std::string plan = scratch_file("rich_plan.json");
  write_contents(trace, general::rich_trace);
  write_contents(plan, general::rich_plan(digest(read_trace(general::rich_trace).value())));
  const Outcome outcome = run_program({"explain", trace, plan});
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  check_has(outcome.out, {"rich, planned by by hand for pair", "1 operation runs again, 10 ns in all",
                          "10 ns  operation 0 \"first\"", "1 encoded form, 5 ns in all",
                          "tensor 3 \"y\" (20 B) as zeros (5 B expected), encoded 1 and decoded 1 times",
                          "1 tensor is in pieces", "tensor 1 \"w1\" (40 B): 2 pieces",
                          "made again by operation 0 \"first\"", "decoded from form zeros", "piece 1 (of 40 B)"});
  const object answer = run_json({"explain", trace, plan});
  CHECK(answer.at("again").at(0).at("time_ns") == 10);
  CHECK(answer.at("forms").at(0).at("form") == "zeros");
  CHECK(answer.at("pieces").at(0).at("pieces") == 2);
  CHECK(answer.at("capacities").at(0).at("full_ns") == 80);
  const std::string svg = scratch_file("rich.svg");
  CHECK(text_at(run_json({"show", plan, "--trace", trace, "--svg", svg}), "svg") == svg);
  check_has(contents(svg), {"first (run again)", "y to zeros (coding)", ">host-gpu1</text>"});
}

TEST_CASE("simulate takes plans of version 2, and writes their trace events") {
  const std::string file = plan_file();
  const std::string events = scratch_file("events_v2.json");
  const object answer = run_json({"simulate", two_weights(), file, "--trace-out", events});
  const Result<v2::Plan> plan = v2::read_plan(contents(file));
  REQUIRE(plan.has_value());
  CHECK(number(answer, "iteration_ns") == plan->predicted.iteration.count());
  CHECK(answer.at("links").as_array().size() == 4);
  CHECK_FALSE(answer.contains("lower_bound_ns"));
  check_has(contents(events), {"\"host-gpu\"", "\"gpu: bytes taken\"", "\"cat\": \"copy\""});
  const Outcome outcome = run_program({"simulate", two_weights(), file});
  CHECK(outcome.code == 0);
  check_has(outcome.out, {"planned by belady for pair", "of ideal", "used of gpu"});
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
        "--changed is for one device and one host");
  fails({"fit", two_weights(), "--machine", machine_file(), "--bandwidth", "1GB/s"}, 2,
        "only --machine and --budget, for its devices, can be given");
  const std::string trace = scratch_file("trace_v2.json");
  write_contents(trace, R"({"format": "swapmm-trace", "version": 2, "name": "two", "tensors": [],
    "operations": [{"name": "a", "duration_ns": 5, "engine": "other"}]})");
  fails({"plan", trace, "--machine", machine_file()}, 1, "the machine has no engine other with a memory");
  fails({"show", trace, "--svg", "-"}, 3, "which only the commands plan, fit, compare, check, explain, simulate");
  const Outcome outcome = run_program({"fit", trace, "--budget", "5KB"});
  CHECK(outcome.code == 1);
  CHECK(outcome.out.find("the machine has no engine other with a memory") != std::string::npos);
  const std::string plan = plan_file();
  fails({"simulate", two_weights(), plan, "--noise", "10%"}, 2, "--noise and --slow-link are for plans of version 1");
  fails({"show", plan, "--trace", two_weights(), "--dot", "-"}, 2, "--dot is for plans of version 1");
  for (const std::string command : {"explain", "simulate"}) {
    CAPTURE(command);
    fails({command, trace, plan}, 1, "not a valid plan for this trace: trace: the plan is for program");
    fails({command, two_weights(), trace}, 3, "format");
    std::string text = contents(plan);
    text.replace(text.find("\"gpu-host\""), 10, "\"gpu-hose\"");
    write_contents(scratch_file("wrong_link.json"), text);
    fails({command, two_weights(), scratch_file("wrong_link.json")}, 3, "gpu-ho");
  }
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

TEST_CASE("fit on several devices speaks of each: its largest bundle, less of it, and no machine without it") {
  constexpr std::string_view two_devices = R"({"format": "swapmm-machine", "version": 2, "name": "two-devices",
    "memories": [{"name": "gpu0", "bytes": 8000}, {"name": "gpu1", "bytes": 6000}, {"name": "spare", "bytes": 9000},
                 {"name": "host", "bytes": null}],
    "engines": [{"name": "first", "memory": "gpu0"}, {"name": "second", "memory": "gpu1"}],
    "links": [{"name": "in0", "from": "host", "to": "gpu0", "bytes_per_second": 1000000000, "latency_ns": 0},
              {"name": "out0", "from": "gpu0", "to": "host", "bytes_per_second": 1000000000, "latency_ns": 0},
              {"name": "in1", "from": "host", "to": "gpu1", "bytes_per_second": 1000000000, "latency_ns": 0},
              {"name": "out1", "from": "gpu1", "to": "host", "bytes_per_second": 1000000000, "latency_ns": 0},
              {"name": "spare0", "from": "spare", "to": "gpu0", "bytes_per_second": 9000000000, "latency_ns": 0},
              {"name": "0spare", "from": "gpu0", "to": "spare", "bytes_per_second": 9000000000, "latency_ns": 0}],
    "host": "host"})";
  constexpr std::string_view trace = R"({"format": "swapmm-trace", "version": 2, "name": "in turn",
    "tensors": [{"name": "a", "bytes": 3000, "kind": "persistent"}, {"name": "b", "bytes": 5000, "kind": "persistent"},
                {"name": "c", "bytes": 2000, "kind": "persistent"}],
    "operations": [
      {"name": "f", "duration_ns": 9000, "engine": "first", "reads": [0], "writes": [], "updates": []},
      {"name": "g", "duration_ns": 9000, "engine": "first", "reads": [1], "writes": [], "updates": []},
      {"name": "h", "duration_ns": 9000, "engine": "second", "reads": [2], "writes": [], "updates": []}]})";
  const std::string file = scratch_file("two_devices.json");
  const std::string program = scratch_file("in_turn.json");
  write_contents(file, two_devices);
  write_contents(program, trace);
  const object answer = run_json({"fit", program, "--machine", file});
  CHECK(answer.at("largest_bundle_bytes") == 5000);
  const auto& devices = answer.at("devices").as_array();
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].at("memory") == "gpu0");
  CHECK(devices[0].at("largest_bundle_bytes") == 5000);
  CHECK(devices[1].at("memory") == "gpu1");
  CHECK(devices[1].at("largest_bundle_bytes") == 2000);
  std::vector<std::string> names;
  for (const auto& variant : answer.at("variants").as_array()) {
    names.emplace_back(variant.at("variant").as_string());
    CHECK(variant.at("fits") == true);
  }
  CHECK(names == std::vector<std::string>{"without spare", "gpu0 with 6.00 KB", "gpu0 with 5.00 KB",
                                          "gpu1 with 4.50 KB", "gpu1 with 3.00 KB", "gpu1 with 2.10 KB",
                                          "gpu1 with 2.00 KB"});
  check_has(run_program({"fit", program, "--machine", file, "--this-budget-only"}).out,
            {"fits                on the devices alone at", "5.00 KB: gpu0 does not work with less",
             "2.00 KB: gpu1 does not work with less"});
  // Each of them gets the budget.
  CHECK(run_program({"fit", program, "--machine", file, "--budget", "5kB"}).code == 0);
  check_has(run_program({"fit", program, "--machine", file, "--budget", "1kB"}).out, {"no: "});
  // Devices that share tensors are planned for by the planners of one device, too, if values can come to both.
  std::string text = contents(program);
  text.replace(text.find("\"reads\": [2]"), 12, "\"reads\": [0]");
  write_contents(program, text);
  const Outcome shared = run_program({"fit", program, "--machine", file, "--planner", "per-operation"});
  CHECK(shared.code == 0);
  check_has(shared.out, {"fits                with 5.00 KB of spare and 3.00 KB of host at"});
  CHECK(run_json({"fit", program, "--machine", machine_file()}, 1).at("variants").as_array().empty());
}

TEST_CASE("compare takes a machine with many memories") {
  const object answer = run_json({"compare", two_weights(), "--machine", machine_file(), "--planners", "belady,best"});
  const auto& rows = answer.at("rows").as_array();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].at("planner") == "belady");
  CHECK(rows[1].at("predicted").at("iteration_ns").as_int64() <= rows[0].at("predicted").at("iteration_ns").as_int64());
  CHECK(run_program({"compare", two_weights(), "--machine", machine_file(), "--csv"}).code == 2);
  double bound = 0;
  for (const auto& row : answer.at("rows").as_array()) {
    bound = std::max(bound, number(row.as_object(), "predicted.lower_bound_ns"));
  }
  for (const auto& each : answer.at("rows").as_array()) {  // gaps are to the best bound of any planner
    const object& row = each.as_object();
    CHECK(number(row, "lower_bound_ns") == bound);
    CHECK(number(row, "gap") == doctest::Approx(number(row, "predicted.iteration_ns") / bound - 1));
  }
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
