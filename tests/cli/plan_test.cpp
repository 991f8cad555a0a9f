// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/planners.hpp>

#include "planner_options.hpp"
#include "planning.hpp"
#include "program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using boost::json::object;

TEST_CASE("every planner's plan of a recorded program is written and passes check") {
  for (const NamedPlanner& planner : planners()) {
    const std::string name(planner.name);
    CAPTURE(name);
    const std::string file = scratch_file(name + ".json");
    const object answer = run_json({"plan", lstm(), "--budget", "50%", "--bandwidth", "100MB/s", "--planner", name,
                                    "--time-limit", "300ms", "--out", file});
    CHECK(text_at(answer, "planner") == name);
    CHECK(text_at(answer, "plan") == file);
    CHECK(number(answer, "predicted.peak_bytes") <= number(answer, "machine.device_budget_bytes"));
    const object checked = run_json({"check", lstm(), file});
    CHECK(checked.at("valid") == true);
    CHECK(checked.at("violations").as_array().empty());
    // The simulator says what the plan predicts.
    CHECK(number(run_json({"simulate", lstm(), file}), "iteration_ns") == number(answer, "predicted.iteration_ns"));
  }
}

TEST_CASE("a time limit ends a search; without one nothing does but its steps") {
  cli::Progress progress(true);
  CHECK(!cli::options_within(std::nullopt, progress).go_on);
  CHECK(cli::options_within(std::chrono::hours{1}, progress).go_on({}));
  CHECK(!cli::options_within(std::chrono::nanoseconds{0}, progress).go_on({}));
}

TEST_CASE("a time limit is above 0") {
  for (const std::string zero : {"0", "0s", "0ms", "0.4ns"}) {
    CAPTURE(zero);
    check_refused({"plan", two_weights(), "--budget", "5000", "--time-limit", zero}, 2,
                  {"--time-limit: a time limit must be above 0", '"' + zero + '"'});
  }
  check_refused({"compare", two_weights(), "--time-limit", "0s"}, 2, {"--time-limit: ", "above 0"});
  check_refused({"pack", two_weights(), "--time-limit", "0s"}, 2, {"--time-limit: ", "above 0"});
}

TEST_CASE("options behind a planner's name that make no sense are refused and named") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"ilp:speed=3",
       {"ilp has no option \"speed\"; there are gap, program, exact, windows, slots, nodes, best", "--time-limit"}},
      {"ilp:", {"ilp has no option \"\""}},
      {"ilp:time=10s", {"ilp has no option \"time\"", "--time-limit"}},
      {"ilp:gap", {"\"gap\" of ilp has no value", "ilp:gap=VALUE"}},
      {"ilp:gap=", {"\"gap\" of ilp has no value"}},
      {"ilp:gap=1%:slots=7:gap=2%", {"\"gap\" of ilp is there twice"}},
      {"ilp:gap=100%", {"ilp:gap: ", "\"100%\" is too large"}},
      {"ilp:gap=-1%", {"ilp:gap: ", "is negative"}},
      {"ilp:slots=0", {"ilp:slots: \"0\" is no whole number from 1 to 100000"}},
      {"ilp:exact=many", {"ilp:exact: \"many\""}},
      {"ilp:nodes=1.5", {"ilp:nodes: \"1.5\""}},
      {"ilp:best=yes", {"ilp:best: \"yes\" is neither on nor off"}},
      {"ilp:program=all", {"ilp:program: \"all\" is none of orders, slots and both"}},
      {"ilp:program=orders:slots=9", {"ilp:program=orders and ilp:slots contradict each other"}},
      {"ilp:exact=9:program=slots", {"ilp:program=slots and ilp:exact contradict each other"}},
      {"ilp:windows=9:program=slots", {"ilp:program=slots and ilp:windows contradict each other"}},
      {"best:gap=1%", {"the planner best has no options here"}},
      {"teleport:gap=1%", {"no planner is called \"teleport\""}},
  };
  for (const auto& one : cases) {
    const std::string& planner = one.first;
    CAPTURE(planner);
    std::vector<std::string> all{"--planner: "};
    all.insert(all.end(), one.second.begin(), one.second.end());
    check_refused({"plan", two_weights(), "--budget", "5000", "--planner", planner}, 2, all);
    all.front() = "--planners: ";
    check_refused({"compare", two_weights(), "--planners", "best," + planner}, 2, all);
  }
}

TEST_CASE("options behind ilp are the fields of its struct") {
  const auto read = [](std::string_view text) { return cli::ilp_options_of(text).value(); };
  const IlpOptions usual = read("ilp");
  CHECK(usual.gap == IlpOptions{}.gap);
  CHECK(usual.tiny == IlpOptions{}.tiny);
  CHECK(usual.slots == IlpOptions{}.slots);
  CHECK(usual.order_nodes == IlpOptions{}.order_nodes);
  CHECK(usual.best_first);
  CHECK(usual.order_program);
  CHECK(usual.slot_program);
  CHECK(read("ilp:gap=1%").gap == 0.01);
  CHECK(read("ilp:gap=0.25").gap == 0.25);
  CHECK(read("ilp:exact=20").tiny == 20);
  CHECK(read("ilp:slots=60").slots == 60);
  CHECK(!read("ilp:best=off").best_first);
  CHECK(read("ilp:windows=12").windows.absences == 12);
  CHECK(read("ilp:windows=12").windows.most == IlpWindowOptions{}.most);
  CHECK(read("ilp:windows=0").windows.most == 0);
  CHECK(read("ilp:best=on").best_first);
  const IlpOptions nodes = read("ilp:nodes=7");
  CHECK(nodes.order_nodes == 7);
  CHECK(nodes.most_nodes == 7);
  CHECK(nodes.least_nodes == 7);
  CHECK(nodes.windows.nodes == 7);
  CHECK(read("ilp:nodes=100").least_nodes == IlpOptions{}.least_nodes);
  const IlpOptions orders = read("ilp:exact=20:program=orders");
  CHECK(orders.order_program);
  CHECK(!orders.slot_program);
  CHECK(orders.tiny == 20);
  const IlpOptions slots = read("ilp:program=slots:slots=9");
  CHECK(!slots.order_program);
  CHECK(slots.slot_program);
  const IlpOptions both = read("ilp:program=both:slots=9:exact=9");
  CHECK(both.order_program);
  CHECK(both.slot_program);
}

#ifdef SWAPMM_CLI_HAS_ILP
TEST_CASE("ilp takes options behind its name") {
  std::vector<std::string> arguments{"plan", two_weights(), "--planner", "ilp:gap=1%:program=orders:exact=20:best=off"};
  for (const std::string& word : room_for_one()) arguments.push_back(word);
  const object answer = run_json(arguments);
  CHECK(text_at(answer, "planner") == "ilp:gap=1%:program=orders:exact=20:best=off");
  CHECK(number(answer, "predicted.iteration_ns") == 121'000);
  const std::string file = scratch_file("ilp.json");
  arguments.insert(arguments.end(), {"--out", file});
  REQUIRE(run_program(arguments).code == 0);
  const Result<Plan> plan = read_plan(contents(file));
  REQUIRE(plan.has_value());
  CHECK(plan->planner == "ilp");

  CHECK(answer.at("notes").as_array().empty());
  const std::string note =
      "the program over orders was not solved: it is for up to 1 operations and absences, and here are 2 and 2";
  arguments = {"plan", two_weights(), "--planner", "ilp:program=orders:exact=1:windows=0:best=off"};
  for (const std::string& word : room_for_one()) arguments.push_back(word);
  CHECK(run_json(arguments).at("notes") == boost::json::value(boost::json::array{note}));
  CHECK(run_program(arguments).out.find("note                " + note) != std::string::npos);
  arguments.insert(arguments.end(), {"--out", "-"});
  CHECK(run_program(arguments).err == "note: " + note + "\n");

  const object side_by_side =
      run_json({"compare", two_weights(), "--budgets", "5000", "--bandwidths", "1GB/s", "--alignment", "1",
                "--planners", "ilp:program=slots:slots=2:nodes=7,ilp:gap=50%,belady"});
  CHECK(text_at(side_by_side.at("rows").as_array()[0].as_object(), "planner") == "ilp:program=slots:slots=2:nodes=7");
  CHECK(run_program({"plan", "--help"}).out.find("  slots=N") != std::string::npos);
}
#endif

TEST_CASE("options describe the machine of the plan, and replace what a machine file says") {
  const std::string machine = scratch_file("machine.json");
  write_contents(machine,
                 "{\"format\": \"swapmm-machine\", \"version\": 1, \"name\": \"mine\", \"device_budget_bytes\": "
                 "6000, \"alignment_bytes\": 8, \"h2d\": {\"bytes_per_second\": 1000000000, \"latency_ns\": "
                 "7}, \"d2h\": {\"bytes_per_second\": 2000000000, \"latency_ns\": 7}, \"duplex\": \"half\"}");
  const std::string file = scratch_file("plan.json");
  REQUIRE(run_program({"plan", two_weights(), "--machine", machine, "-o", file}).code == 0);
  Result<Plan> plan = read_plan(contents(file));
  REQUIRE(plan.has_value());
  CHECK(plan->machine.name == "mine");
  CHECK(plan->machine.device_budget == Bytes{6000});
  CHECK(plan->machine.alignment == Bytes{8});
  CHECK(plan->machine.d2h.bytes_per_second == 2'000'000'000);
  CHECK(plan->machine.duplex == Duplex::half);

  REQUIRE(run_program({"plan", two_weights(), "--machine", machine, "--budget", "7KB", "--bandwidth", "3GB/s",
                       "--bandwidth-out", "4GB/s", "--latency", "5ns", "--alignment", "16", "--max-allocation", "6400",
                       "-o", file})
              .code == 0);
  plan = read_plan(contents(file));
  REQUIRE(plan.has_value());
  CHECK(plan->machine.device_budget == Bytes{7000});
  CHECK(plan->machine.h2d == Link{3'000'000'000, std::chrono::nanoseconds{5}});
  CHECK(plan->machine.d2h == Link{4'000'000'000, std::chrono::nanoseconds{5}});
  CHECK(plan->machine.alignment == Bytes{16});
  CHECK(plan->machine.max_allocation == Bytes{6400});
}

TEST_CASE("what is left out: 15.754 GB/s each way, alignment 256, full duplex") {
  const std::string file = scratch_file("plan.json");
  REQUIRE(run_program({"plan", two_weights(), "--budget", "6KB", "-o", file}).code == 0);
  const Result<Plan> plan = read_plan(contents(file));
  REQUIRE(plan.has_value());
  CHECK(plan->machine.h2d.bytes_per_second == 15'754'000'000);
  CHECK(plan->machine.d2h == plan->machine.h2d);
  CHECK(plan->machine.alignment == Bytes{256});
  CHECK(plan->machine.duplex == Duplex::full);
  CHECK(!plan->machine.max_allocation.has_value());
}

TEST_CASE("a plan may go to stdout, alone") {
  std::vector<std::string> arguments{"plan", two_weights(), "--out", "-"};
  for (const std::string& word : room_for_one()) arguments.push_back(word);
  const Outcome outcome = run_program(arguments);
  CHECK(outcome.code == 0);
  const Result<Plan> plan = read_plan(outcome.out);
  REQUIRE(plan.has_value());
  CHECK(plan->predicted.iteration == std::chrono::nanoseconds{121'000});
  arguments.emplace_back("--json");
  check_refused(arguments, 2, {"stdout takes one thing"});
}

TEST_CASE("no output overwrites the trace, or another output") {
  const std::string trace = scratch_file("own.json");
  write_contents(trace, contents(two_weights()));
  const auto with = [&](std::vector<std::string> outputs) {
    std::vector<std::string> arguments{"plan", trace};
    for (const auto& words : {room_for_one(), outputs}) arguments.insert(arguments.end(), words.begin(), words.end());
    return arguments;
  };
  check_refused(with({"--out", trace}), 2, {trace + " is an input"});
  const std::filesystem::path same = std::filesystem::path(trace).parent_path() / "." / "own.json";
  check_refused(with({"--changed", same.string()}), 2, {"is an input, or takes another output"});
  const std::string plan = scratch_file("both.json");
  check_refused(with({"--out", plan, "--changed", plan}), 2, {plan + " is an input, or takes another output"});
  CHECK(!std::filesystem::exists(plan));
  CHECK(contents(trace) == contents(two_weights()));
  CHECK(run_program(with({"--out", "/dev/null", "--changed", "/dev/null"})).code == 0);
}

TEST_CASE("the changed trace has the moves as operations, and fits") {
  const std::string changed = scratch_file("changed.json");
  const object answer = run_json({"plan", lstm(), "--planner", "slack", "--budget", "50%", "--changed", changed});
  const Result<Trace> trace = read_trace(contents(changed));
  REQUIRE(trace.has_value());
  CHECK(analyze_liveness(*trace, Bytes{256}).peak <=
        Bytes{static_cast<std::uint64_t>(number(answer, "machine.device_budget_bytes"))});
  const auto moves = [&](std::string_view kind) {
    return std::count_if(trace->operations.begin(), trace->operations.end(),
                         [&](const TraceOperation& operation) { return operation.name.starts_with(kind); });
  };
  CHECK(moves("reduce ") > 0);
  CHECK(moves("restore ") >= moves("reduce "));
}

TEST_CASE("a link on which an iteration takes ages has no plan, and no false one") {
  check_refused({"plan", two_weights(), "--budget", "6kB", "--latency", "500000h", "--planner", "belady"}, 1,
                {"an iteration takes longer than 2^62 ns"});
}

TEST_CASE("without a plan the exit code is 1, and no file is written") {
  const std::string file = scratch_file("none.json");
  check_refused({"plan", two_weights(), "--budget", "4KB", "--out", file}, 1,
                {"no plan", "operation 1 (read b) needs a bundle of 5120 bytes; the device budget is 4000"});
  CHECK(!std::filesystem::exists(file));
  const object answer = run_json({"plan", two_weights(), "--budget", "4KB"}, 1);
  CHECK(answer.at("plan").is_null());
  CHECK(text_at(answer, "problem").find("5120 bytes") != std::string::npos);
}

TEST_CASE("plan for persons") {
  std::vector<std::string> arguments{"plan", two_weights()};
  for (const std::string& word : room_for_one()) arguments.push_back(word);
  const Outcome outcome = run_program(arguments);
  CHECK(outcome.code == 0);
  for (const std::string text : {"two weights, planned by best for 5.00 KB, 1.00 GB/s each way",
                                 "computation         110.000 us", "this plan           121.000 us, 1.100 x",
                                 "copies              8.00 KB in, 3.00 KB out an iteration", "planned in"}) {
    CAPTURE(text);
    CHECK(outcome.out.find(text) != std::string::npos);
  }
}
