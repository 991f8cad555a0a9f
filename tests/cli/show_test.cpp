// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "program.hpp"

using namespace swapmm::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a trace as SVG and DOT") {
  const std::string svg = scratch_file("trace.svg");
  const std::string dot = scratch_file("trace.dot");
  const auto answer = run_json({"show", two_weights(), "--svg", svg, "--dot", dot});
  CHECK(text_at(answer, "format") == "swapmm-trace");
  CHECK(text_at(answer, "svg") == svg);
  const std::string picture = contents(svg);
  CHECK(picture.starts_with("<svg"));
  CHECK(picture.ends_with("</svg>\n"));
  CHECK(has(picture, "two weights, live bytes"));
  CHECK(has(picture, "peak 7.81 KiB"));  // both, all the time
  CHECK(has(picture, "read b"));
  const std::string graph = contents(dot);
  CHECK(graph.starts_with("digraph"));
  CHECK(has(graph, "update a"));
}

TEST_CASE("a plan as SVG") {
  const std::string svg = scratch_file("plan.svg");
  const std::string plan = plan_for_two_weights("plan.json");
  const auto answer = run_json({"show", plan, "--trace", two_weights(), "--svg", svg});
  CHECK(text_at(answer, "format") == "swapmm-plan");
  const std::string picture = contents(svg);
  CHECK(picture.ends_with("</svg>\n"));
  CHECK(has(picture, "two weights, best, predicted"));
  CHECK(has(picture, "iteration 121.000"));
}

TEST_CASE("a plan as DOT: its moves are operations") {
  const std::string dot = scratch_file("plan.dot");
  const std::string plan = plan_for_two_weights("plan.json");
  CHECK(run_program({"show", plan, "--trace", two_weights(), "--dot", dot}).code == 0);
  const std::string graph = contents(dot);
  CHECK(graph.starts_with("digraph"));
  CHECK(has(graph, "restore "));
  CHECK(has(graph, "reduce "));
  CHECK(has(graph, ", reduced v"));
}

TEST_CASE("a picture may go to stdout, alone") {
  const Outcome outcome = run_program({"show", two_weights(), "--svg", "-", "--width", "900"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.starts_with("<svg"));
  CHECK(outcome.out.ends_with("</svg>\n"));
  CHECK(has(outcome.out, "width=\"900\""));
  check_refused({"show", two_weights(), "--svg", "-", "--json"}, 2, {"stdout takes one thing"});
  check_refused({"show", two_weights(), "--svg", "-", "--dot", "-"}, 2, {"stdout takes one thing"});
}

TEST_CASE("a plan may come from stdin") {
  const std::string plan = plan_for_two_weights("plan.json");
  const Outcome outcome = run_program({"show", "-", "--trace", two_weights(), "--svg", "-"}, contents(plan));
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, "two weights, best, predicted"));
  check_refused({"show", "-", "--trace", "-", "--svg", "-"}, 3, {"-: "});
  const Outcome twice = run_program({"check", "-", "-"}, contents(two_weights()));
  CHECK(twice.code == 2);
  CHECK(has(twice.err, "only one file can be \"-\""));
}

TEST_CASE("what show refuses") {
  const std::string plan = plan_for_two_weights("plan.json");
  const std::string file = scratch_file("none");
  check_refused({"show", two_weights(), "--trace", two_weights(), "--svg", file}, 2, {"--trace belongs to a plan"});
  check_refused({"show", two_weights()}, 2, {"--svg FILE or --dot FILE"});
  check_refused({"show", plan, "--svg", file}, 2, {plan + " is a plan", "--trace"});
  check_refused({"show", plan, "--dot", file}, 2, {plan + " is a plan", "--trace"});
  check_refused({"show", two_weights(), "--svg", file, "--width", "5"}, 2, {"--width", "\"5\""});
  const std::string other = scratch_file("other.json");
  write_contents(other, "{\"format\": \"other\"}");
  check_refused({"show", other, "--svg", file}, 3, {other + ": format", "other"});
  write_contents(other, "{}");
  check_refused({"show", other, "--svg", file}, 3, {other, "format"});
  CHECK(!std::filesystem::exists(file));
}
