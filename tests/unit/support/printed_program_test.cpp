// SPDX-License-Identifier: Apache-2.0
// A random program that fails is made small, and printed as C++ that does the same on the same device.
#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

#include "support/golden.hpp"
#include "support/program/cpp.hpp"
#include "support/program/report.hpp"
#include "support/program/runner.hpp"
#include "support/random_program.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

/// What the program prints.
std::string output_of(const std::string& program) {
  const auto close = [](std::FILE* pipe) { pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(program.c_str(), "r"), close);
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t size = 0; (size = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;) {
    text.append(buffer.data(), size);
  }
  return text;
}

std::string text_of(const TestProgram& program) {
  std::ostringstream text;
  text << program;
  return text.str();
}

/// Fails where a plan is left because the program did something else.
Verdict must_not_diverge(const TestProgram& program) {
  Verdict verdict = judge(program, {});
  if (verdict.failure.empty() && verdict.run.divergences != 0) verdict.failure = "a plan is left";
  return verdict;
}

}  // namespace

TEST_CASE("a printed program is the C++ of the run: the same steps, with a plan that was loaded from text") {
  TestProgram program = random_program(1455, 14);
  program.scheduler.planner = "per-operation";
  program.scheduler.drops = DropRule::observed;  // it reads inside iterations: its plans would be forgotten
  const RunResult first = run_program(program, {.save_plans = true});
  const RunSettings settings{.loaded = first.plans};
  const RunResult run = run_program(program, settings);
  REQUIRE(run.failure.empty());
  REQUIRE(run.iterations_followed > 0);
  REQUIRE(run.refused > 0);
  check_golden("simulate/printed_program.cpp", cpp_of(program, settings, run));
  const std::string output = output_of(SWAPMM_PRINTED_PROGRAM);
  CHECK_MESSAGE(output.ends_with("all held, trace hash " + std::to_string(run.trace_hash) + "\n"), output);
}

TEST_CASE("a printed program has the host views of the run") {
  const TestProgram program = random_program(2968, 12);
  REQUIRE(has_host_views(program));
  const RunResult run = run_program(program, {});
  REQUIRE(run.failure.empty());
  REQUIRE(run.view_bytes_in > 0);
  REQUIRE(run.view_bytes_out > 0);
  REQUIRE(run.outlived_looks > 0);
  check_golden("simulate/printed_host_views.cpp", cpp_of(program, {}, run));
  const std::string output = output_of(SWAPMM_PRINTED_HOST_VIEWS);
  CHECK_MESSAGE(output.ends_with("all held, trace hash " + std::to_string(run.trace_hash) + "\n"), output);
}

TEST_CASE("a program that fails is shrunk to what makes it fail, with the usual options and small tensors") {
  std::uint64_t seed = 1;
  while (must_not_diverge(random_program(seed, 60)).failure.empty()) ++seed;
  const TestProgram program = random_program(seed, 60);
  const ProgramFailure failure = report_failure(program, "a plan is left", must_not_diverge);
  CHECK(failure.verdict.failure == "a plan is left");
  CHECK(failure.program.actions.size() < 15);
  CHECK(failure.tries < 1000);  // not for as long as it may
  CHECK(failure.program.device.order == simulated::Order::virtual_time);
  CHECK(failure.program.device.pieces == 1);
  CHECK(failure.program.manager.queue_depth == Options().queue_depth);
  CHECK(failure.program.scheduler.max_period == SchedulerOptions().max_period);
  CHECK(failure.program.ends_plainly);
  for (const Action& action : failure.program.actions) {
    if (action.kind == ActionKind::make) CHECK(action.bytes <= 64);
  }
  CHECK(failure.text.find("fails with: a plan is left") != std::string::npos);
  CHECK(failure.cpp.find("int main()") != std::string::npos);
  REQUIRE(failure.trace);
  CHECK_FALSE(failure.trace->operations.empty());
  INFO(text_of(failure.program));
  // Shrinking what is as small as it can be changes nothing.
  CHECK(text_of(report_failure(failure.program, "a plan is left", must_not_diverge).program) ==
        text_of(failure.program));
}
