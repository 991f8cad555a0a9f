// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include <swapmm/version.hpp>

#include "printable.hpp"
#include "program.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

const std::vector<std::string> commands = {"fit", "plan", "compare", "simulate", "check", "explain", "show", "pack"};

}  // namespace

TEST_CASE("--version says the library's version") {
  const Outcome outcome = run_program({"--version"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out == "swapmm " + std::to_string(version_major) + '.' + std::to_string(version_minor) + '.' +
                           std::to_string(version_patch) + '\n');
}

TEST_CASE("--help lists the commands and the exit codes") {
  const Outcome outcome = run_program({"--help"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  for (const std::string& command : commands) CHECK(outcome.out.find("\n  " + command + ' ') != std::string::npos);
  CHECK(outcome.out.find("Exit codes: 0 done; 1 the answer is no") != std::string::npos);
}

TEST_CASE("each command has --help, and its lines fit a terminal") {
  for (const std::string& command : commands) {
    const Outcome outcome = run_program({command, "--help"});
    CAPTURE(command);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out.find("Usage: swapmm " + command) != std::string::npos);
    CHECK(outcome.out.find("--json") != std::string::npos);
    const std::size_t codes = outcome.out.find("Exit codes: 0 done;");
    CHECK(codes != std::string::npos);
    CHECK(outcome.out.find("Exit codes: 0 done;", codes + 1) == std::string::npos);
    for (std::size_t at = 0; at < outcome.out.size();) {
      const std::size_t end = outcome.out.find('\n', at);
      REQUIRE(end != std::string::npos);
      CHECK_MESSAGE(end - at <= 130, outcome.out.substr(at, end - at));
      at = end + 1;
    }
  }
}

TEST_CASE("wrong use ends with 2, and names the word") {
  check_refused({}, 2, {"which command?"});
  check_refused({"teleport"}, 2, {"teleport"});
  check_refused({"--teleport"}, 2, {"--teleport"});
  for (const std::string& command : commands) {
    CAPTURE(command);
    check_refused({command}, 2, {"swapmm " + command + ": ", "is required"});
    check_refused({command, two_weights(), two_weights(), "--teleport"}, 2, {"--teleport"});
  }
  check_refused({"check", two_weights(), two_weights(), "third"}, 2, {"third"});
}

TEST_CASE("values that make no sense end with 2, and are named with their option") {
  const std::vector<std::vector<std::string>> cases = {
      {"--budget", "8XB"},       {"--budget", "-5GB"},        {"--budget", "9e99GB"},   {"--bandwidth", "12GB"},
      {"--bandwidth-in", "0"},   {"--bandwidth-out", "fast"}, {"--latency", "10"},      {"--alignment", "-1"},
      {"--planner", "teleport"}, {"--time-limit", "soon"},    {"--max-allocation", "x"}};
  for (const auto& words : cases) {
    std::vector<std::string> arguments{"plan", two_weights()};
    arguments.insert(arguments.end(), words.begin(), words.end());
    check_refused(arguments, 2, {words[0] + ": ", '"' + words[1] + '"'});
  }
  check_refused({"fit", two_weights(), "--budget", "5000", "--top", "many"}, 2, {"--top: ", "\"many\""});
  check_refused({"compare", two_weights(), "--budgets", "0.5,-1"}, 2, {"--budgets: ", "\"-1\" is negative"});
  check_refused({"compare", two_weights(), "--planners", "best,worst"}, 2, {"--planners: ", "\"worst\"", "belady"});
  check_refused({"plan", two_weights(), "--budget", "5000", "--alignment", "3TB"}, 2, {"3000000000000"});
  check_refused({"plan", two_weights(), "--budget", "5000", "--alignment", "256", "--max-allocation", "1000"}, 2,
                {"1000 is not a multiple of the alignment"});
  check_refused({"plan", two_weights()}, 2, {"--budget or --machine is missing"});
  check_refused({"plan", two_weights(), "--budget", "5000", "-o", ""}, 2, {"--out: it is empty"});
  check_refused({"plan", two_weights(), "--budget", "5000", "--changed", ""}, 2, {"--changed: it is empty"});
  constexpr std::array<std::array<const char*, 2>, 3> figures{
      {{"--budgets", "0.5"}, {"--bandwidths", "12GB/s"}, {"--compute-scale", "1/5"}}};
  for (const auto& words : figures) {
    check_refused({"compare", two_weights(), "--machine", "a100-40g-ssd", words[0], words[1]}, 2,
                  {"--machine", words[0]});
  }
}

TEST_CASE("a file that is not what it should be ends with 3, and is named with the place in it") {
  const std::string broken = scratch_file("broken.json");
  write_contents(broken,
                 "{\"format\": \"swapmm-trace\", \"version\": 1, \"name\": \"x\", \"tensors\": [\n"
                 " {\"name\": \"a\", \"bytes\": -5, \"kind\": \"persistent\"}], \"operations\": []}");
  check_refused({"fit", broken, "--budget", "5000"}, 3, {broken + ": tensors[0].bytes", "-5"});
  write_contents(broken, "not JSON");
  for (const std::string command : {"check", "explain", "simulate"}) {
    CAPTURE(command);
    check_refused({command, broken, broken}, 3, {"swapmm " + command + ": " + broken, "not JSON"});
    check_refused({command, two_weights(), broken}, 3, {broken, "not JSON"});
  }
  check_refused({"compare", broken}, 3, {broken});
  check_refused({"plan", two_weights(), "--machine", broken}, 3, {broken});
  check_refused({"check", two_weights(), two_weights()}, 3, {two_weights(), "format", "swapmm-trace"});
  const std::string machine = scratch_file("machine.json");
  write_contents(machine,
                 "{\"format\": \"swapmm-machine\", \"version\": 1, \"name\": \"m\", \"device_budget_bytes\": 0}");
  check_refused({"plan", two_weights(), "--machine", machine}, 3, {machine});
}

TEST_CASE("what cannot be read or written ends with 4, and is named") {
  check_refused({"fit", "/nonexistent/trace", "--budget", "5000"}, 4, {"/nonexistent/trace", "No such file"});
  check_refused({"check", "/", two_weights()}, 4, {"/: ", "folder"});
  std::vector<std::string> arguments{"plan", two_weights(), "--out", "/nonexistent/plan"};
  for (const std::string& word : room_for_one()) arguments.push_back(word);
  check_refused(arguments, 4, {"/nonexistent/plan"});
  const Outcome answer =
      run_program({"check", two_weights(), plan_for_two_weights("good.json")}, "", Stderr::file, "/dev/full");
  CHECK(answer.code == 4);
  CHECK(answer.err == "swapmm check: stdout: cannot be written\n");
}

TEST_CASE("whatever stdout does not take ends with 4") {
  const std::string plan = plan_for_two_weights("good.json");
  const std::vector<std::string> room = room_for_one();
  const auto with_room = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), room.begin(), room.end());
    return arguments;
  };
  std::vector<std::vector<std::string>> lines = {{"--help"},
                                                 {"--version"},
                                                 {"check", two_weights(), plan},
                                                 {"explain", two_weights(), plan},
                                                 {"simulate", two_weights(), plan},
                                                 {"simulate", two_weights(), plan, "--json"},
                                                 {"show", two_weights(), "--svg", "-"},
                                                 {"show", two_weights(), "--dot", "-"},
                                                 with_room({"fit", two_weights()}),
                                                 with_room({"plan", two_weights()}),
                                                 with_room({"plan", two_weights(), "--out", "-"}),
                                                 {"compare", two_weights(), "--csv", "--time-limit", "1ms"},
                                                 // Their answer is no, and nobody got it.
                                                 {"fit", two_weights(), "--budget", "1000"},
                                                 {"plan", two_weights(), "--budget", "1000", "--json"}};
  for (const std::string& command : commands) lines.push_back({command, "--help"});
  const std::string csv = scratch_file("buffers.csv");
  write_contents(csv, "id,lower,upper,size\na,0,10,100\n");
  lines.push_back({"pack", csv});
  lines.push_back({"pack", csv, "--out", "-"});
  for (const std::vector<std::string>& line : lines) {
    CAPTURE(line);
    CHECK(run_program(line).code <= 1);
    const Outcome outcome = run_program(line, "", Stderr::file, "/dev/full");
    CHECK(outcome.code == 4);
    CHECK(outcome.err.find("stdout: cannot be written\n") != std::string::npos);
  }
}

TEST_CASE("both latencies are told where they differ") {
  const std::string machine = scratch_file("latencies.json");
  write_contents(machine, R"({"format": "swapmm-machine", "version": 1, "name": "m", "device_budget_bytes": 8000,)"
                          R"( "alignment_bytes": 1, "h2d": {"bytes_per_second": 1000000000, "latency_ns": 7000},)"
                          R"( "d2h": {"bytes_per_second": 1000000000, "latency_ns": 9000}, "duplex": "full"})");
  for (const std::string command : {"fit", "plan"}) {
    CAPTURE(command);
    const auto answer = run_json({command, two_weights(), "--machine", machine});
    CHECK(number(answer, "machine.h2d_latency_ns") == 7000);
    CHECK(number(answer, "machine.d2h_latency_ns") == 9000);
    CHECK(run_program({command, two_weights(), "--machine", machine})
              .out.find("1.00 GB/s each way, latency 7.000 us in, 9.000 us out\n") != std::string::npos);
    CHECK(run_program({command, two_weights(), "--machine", machine, "--latency", "3us"})
              .out.find("1.00 GB/s each way, latency 3.000 us\n") != std::string::npos);
    CHECK(run_program({command, two_weights(), "--machine", machine, "--latency", "0"}).out.find("latency") ==
          std::string::npos);
  }
}

TEST_CASE("a trace without computation has no ratios to it") {
  std::string trace = contents(two_weights());
  for (const std::string duration : {"\"duration_ns\": 100000", "\"duration_ns\": 10000"}) {
    trace.replace(trace.find(duration), duration.size(), "\"duration_ns\": 0");
  }
  const std::string idle = scratch_file("idle.json");
  write_contents(idle, trace);
  const std::string plan = scratch_file("idle_plan.json");
  const auto with_room = [&](std::vector<std::string> arguments) {
    const std::vector<std::string> room = room_for_one();
    arguments.insert(arguments.end(), room.begin(), room.end());
    return arguments;
  };
  const std::string explained = "n/a: the operations of the trace take no time";
  for (const std::vector<std::string>& line :
       {with_room({"plan", idle, "--out", plan}), with_room({"fit", idle}), {"explain", idle, plan}}) {
    CAPTURE(line);
    const Outcome outcome = run_program(line);
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find("computation         0 ns\n") != std::string::npos);
    CHECK(outcome.out.find(", n/a x the computation, ") != std::string::npos);
    CHECK(outcome.out.find("(" + explained + ")") != std::string::npos);
  }
  const Outcome simulated = run_program({"simulate", idle, plan, "--noise", "10%"});
  CHECK(simulated.out.find("n/a of ideal (" + explained + ")") != std::string::npos);
  CHECK(simulated.out.find("n/a lost") != std::string::npos);
  const auto draws = run_json({"simulate", idle, plan, "--noise", "10%"});
  CHECK(draws.at("disturbed").at("mean_lost").is_null());
  CHECK(draws.at("disturbed").at("worst_lost").is_null());
  CHECK(number(draws, "disturbed.mean_ns") > 0);

  // With all of the memory the iteration takes no time either, and the bound is 0.
  const std::vector<std::string> compare{"compare", idle,         "--bandwidth", "1GB/s",     "--alignment",
                                         "1",       "--planners", "best",        "--budgets", "5000,8000"};
  const auto answer = run_json(compare);
  for (const boost::json::value& row : answer.at("rows").as_array()) {
    CHECK(row.at("fraction_of_ideal").is_null());
  }
  CHECK(answer.at("rows").at(0).at("gap").is_number());
  CHECK(answer.at("rows").at(1).at("gap").is_null());
  const Outcome table = run_program(compare);
  CHECK(table.out.find("two weights: n/a, the operations of the trace take no time\n") != std::string::npos);
  std::size_t ratios = 0;
  for (std::size_t at = 0; (at = table.out.find("  n/a  ", at)) != std::string::npos; ++at) ++ratios;
  CHECK(ratios == 3);  // of ideal in both rows, the gap in one
  std::vector<std::string> csv = compare;
  csv.emplace_back("--csv");
  const std::string lines = run_program(csv).out;
  CHECK(lines.find(",0,0,,,0,0,") != std::string::npos);  // iteration, ..., bound, fraction, gap, bytes
}

TEST_CASE("a trace may come through a pipe") {
  const Outcome outcome =
      run_program({"fit", "-", "--budget", "8000", "--alignment", "1", "--this-budget-only"}, contents(two_weights()));
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("two weights on 8.00 KB") == 0);
}

TEST_CASE("progress is shown on a terminal alone, and not with --quiet") {
  std::vector<std::string> arguments{"fit", two_weights()};
  for (const std::string& word : room_for_one()) arguments.push_back(word);
  CHECK(run_program(arguments).err.empty());
  const std::string shown = run_program(arguments, "", Stderr::terminal).err;
  CHECK(shown.find("planning with best") != std::string::npos);
  CHECK(shown.ends_with("\r\x1b[K"));  // the line is gone
  arguments.emplace_back("--quiet");
  CHECK(run_program(arguments, "", Stderr::terminal).err.empty());
}

TEST_CASE("names from files cannot command the terminal") {
  CHECK(cli::printable("plain, b\xc3\xa4ume") == "plain, b\xc3\xa4ume");
  CHECK(cli::printable("a\x1b[2Jb\nc\x7f") == "a?[2Jb?c?");
  CHECK(cli::printable("a\xc2\x9b") == "a?");
  CHECK(cli::printable("a\xe2\x80\xae"
                       "b\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8.") == "a?b???.");
  CHECK(cli::printable("a \xe2\x80\xa6 \xe2\x81\xaa\xe2\x82\xac\xe2") ==
        "a \xe2\x80\xa6 \xe2\x81\xaa\xe2\x82\xac\xef\xbf\xbd");
  CHECK(cli::printable("a\xff") == "a\xef\xbf\xbd");

  std::string trace = contents(two_weights());
  for (const std::string name : {"two weights", "update a", "read b"}) {
    trace.replace(trace.find(name), name.size(), "\\u001b[2J\\n" + name);
  }
  write_contents(scratch_file("names.json"), trace);
  for (const std::string budget : {"5000", "4000"}) {
    const Outcome outcome = run_program({"fit", scratch_file("names.json"), "--alignment", "1", "--budget", budget});
    CHECK(outcome.out.find('\x1b') == std::string::npos);
    CHECK(outcome.out.find("?[2J?two weights on") == 0);
    CHECK(outcome.out.find("\"?[2J?read b\"") != std::string::npos);
  }
  check_refused({"plan", scratch_file("names.json"), "--alignment", "1", "--budget", "4000"}, 1, {"(?[2J?read b)"});
}
