// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

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
