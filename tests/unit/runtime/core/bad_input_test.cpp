// SPDX-License-Identifier: Apache-2.0
// What a hostile or broken file can hold, for each of the formats: one error that names the place and the reason.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

Trace two_weights() {
  Trace trace;
  trace.tensors = {tensor("a", 100, TensorKind::persistent), tensor("b", 100, TensorKind::persistent)};
  trace.operations = {operation("use a", 10, {0}), operation("use b", 10, {1})};
  return trace;
}

template <class Write, class Thing>
std::string written(Write write, const Thing& thing) {
  std::ostringstream out;
  write(out, thing);
  return out.str();
}

const std::string trace_text = written(write_trace, two_weights());
const std::string machine_text = written(write_machine, machine(100));
const std::string plan_text = written(write_plan, *make_plan("on-demand", two_weights(), machine(100)));

const auto any_trace = [](std::string_view text) { return read_trace(text); };
const auto any_machine = [](std::string_view text) { return read_machine(text); };
const auto any_plan = [](std::string_view text) { return read_plan(text); };

std::string changed(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t position = text.find(from);
  REQUIRE_MESSAGE(position != std::string::npos, from);
  return text.substr(0, position) + to + text.substr(position + from.size());
}

template <class Read>
std::string problem(Read read, const std::string& text) {
  const auto outcome = read(text);
  return outcome ? "none" : outcome.problem().message;
}

struct Change {
  std::string from;
  std::string to;
  std::string message;
};

template <class Read>
void expect_told(const std::string& good, const std::vector<Change>& changes, Read read) {
  REQUIRE(problem(read, good) == "none");
  for (const Change& change : changes) CHECK(problem(read, changed(good, change.from, change.to)) == change.message);
}

/// No beginning of a good text is one, and every error is that of a text that ends too early.
template <class Read>
void expect_every_beginning_told(const std::string& good, Read read) {
  for (std::size_t length = 0; length < good.rfind('}'); ++length) {
    CAPTURE(length);
    const std::string message = problem(read, good.substr(0, length));
    CHECK(message.find("not JSON: incomplete JSON at byte " + std::to_string(length)) == 0);
  }
}

std::string nested(const std::string& good) {
  return changed(good, "{", "{\"deep\": " + std::string(1000, '[') + std::string(1000, ']') + ", ");
}

std::string told(const Trace& trace, const std::string& text) {
  std::string messages;
  for (const Violation& violation : validate(trace, read_plan(std::string_view(text)).value())) {
    messages += std::to_string(violation.rule) + ": " + violation.message + '\n';
  }
  return messages;
}

}  // namespace

TEST_CASE("sizes of a trace that are no sizes") {
  expect_told(
      trace_text,
      {
          {R"("bytes": 100)", R"("bytes": -1)", "tensors[0].bytes: -1 is below 0"},
          {R"("bytes": 100)", R"("bytes": 9223372036854775808)",
           "tensors[0].bytes: 9223372036854775808 is above 4611686018427387903"},
          {R"("bytes": 100)", R"("bytes": 18446744073709551616)",
           "tensors[0].bytes: 18446744073709551616 is above 4611686018427387903"},
          {R"("bytes": 100)", R"("bytes": 1e400)", "tensors[0].bytes: 1e400 is not written as an integer"},
          {R"("bytes": 100)", R"("bytes": NaN)", "not JSON: syntax error at byte 92, in or after tensors[0].bytes"},
          {R"("bytes": 100)", R"("bytes": -Infinity)",
           "not JSON: syntax error at byte 93, in or after tensors[0].bytes"},
          {R"("bytes": 100)", R"("bytes": "100")", "tensors[0].bytes: a string stands where an integer must"},
          {R"("bytes": 100)", R"("bytes": [100])", "tensors[0].bytes: an array stands where an integer must"},
          {R"("bytes": 100)", R"("bytes": null)", "tensors[0].bytes: null stands where an integer must"},
          {R"("bytes": 100)", R"("bytes": true)", "tensors[0].bytes: true stands where an integer must"},
          {R"("bytes": 100, )", "", "tensors[0].bytes: missing"},
      },
      any_trace);
}

TEST_CASE("tensors of a trace that are not there, or twice") {
  expect_told(
      trace_text,
      {
          {R"("reads": [1])", R"("reads": [2])", "operations[1].reads[0]: 2 is not the id of one of the 2 tensors"},
          {R"("reads": [1])", R"("reads": [-1])", "operations[1].reads[0]: -1 is below 0"},
          {R"("reads": [1])", R"("reads": [1, 1])", "operations[1].reads[1]: tensor 1 stands in the bundle twice"},
          {R"("reads": [1], "writes": [])", R"("reads": [1], "writes": [1])",
           "operations[1].writes[0]: tensor 1 stands in the bundle twice"},
          {R"("reads": [1])", R"("reads": [1], "reads": [])", "operations[1].reads: stands twice in one object"},
          {R"("operations": [)", R"("tensors": [], "operations": [)", "tensors: stands twice in one object"},
      },
      any_trace);
}

TEST_CASE("figures of a machine that are none") {
  expect_told(
      machine_text,
      {
          {R"("device_budget_bytes": 100)", R"("device_budget_bytes": -100)", "device_budget_bytes: -100 is below 0"},
          {R"("device_budget_bytes": 100)", R"("device_budget_bytes": 9223372036854775808)",
           "device_budget_bytes: 9223372036854775808 is above 4611686018427387903"},
          {R"("device_budget_bytes": 100)", R"("device_budget_bytes": NaN)",
           "not JSON: syntax error at byte 82, in or after device_budget_bytes"},
          {R"("device_budget_bytes": 100)", R"("device_budget_bytes": "100 GB")",
           "device_budget_bytes: a string stands where an integer must"},
          {R"("device_budget_bytes": 100)", R"("device_budget_bytes": 1, "device_budget_bytes": 1)",
           "device_budget_bytes: stands twice in one object"},
          {R"("h2d": {)", R"("h2d": 16, "x": {)", "h2d: a number stands where an object must"},
          {R"("h2d": {"bytes_per_second": 1000000000, )", R"("h2d": {)", "h2d.bytes_per_second: missing"},
          {R"("h2d": {"bytes_per_second": 1000000000)", R"("h2d": {"bytes_per_second": -1)",
           "h2d.bytes_per_second: -1 is below 0"},
      },
      any_machine);
}

TEST_CASE("commands of a plan that are none") {
  expect_told(
      plan_text,
      {
          {R"("offset": 0)", R"("offset": -1)", "commands[0].offset: -1 is below 0"},
          {R"("offset": 0)", R"("offset": 9223372036854775808)",
           "commands[0].offset: 9223372036854775808 is above 4611686018427387903"},
          {R"("offset": 0)", R"("offset": NaN)", "not JSON: syntax error at byte 503, in or after commands[0].offset"},
          {R"("offset": 0)", R"("offset": "0")", "commands[0].offset: a string stands where an integer must"},
          {R"("offset": 0)", R"("offset": 0, "offset": 0)", "commands[0].offset: stands twice in one object"},
          {R"("after": [)", R"("after": {}, "x": [)", "commands[0].after: an object stands where an array must"},
          {R"("after": [{)", R"("after": [{"command": 99, "x": {}}, {)",
           "commands[0].after[0].command: 99 is not one of the 4 commands"},
          {R"("peak_bytes": 100)", R"("peak_bytes": -100)", "predicted.peak_bytes: -100 is below 0"},
      },
      any_plan);
}

TEST_CASE("a billion things announced are nothing until they come") {
  CHECK(problem(any_trace, R"({"format": "swapmm-trace", "version": 1, "tensor_count": 1000000000, "name": "",)"
                           R"( "tensors": [], "operations": []})") == "operations: a trace has at least one");
  CHECK(problem(any_trace, R"({"format": "swapmm-trace", "version": 1, "tensors": 1000000000})") ==
        "tensors: a number stands where an array must");
  CHECK(problem(any_plan, R"({"format": "swapmm-plan", "version": 1, "commands": 1000000000})") ==
        "commands: a number stands where an array must");
}

TEST_CASE("deep nesting is refused where it begins to be too deep") {
  for (const std::string& message : {problem(any_trace, nested(trace_text)), problem(any_machine, nested(machine_text)),
                                     problem(any_plan, nested(plan_text))}) {
    CHECK(message.starts_with("nested deeper than 16 at byte "));
  }
  CHECK(problem(any_trace, changed(trace_text, "\"reads\": [0]", "\"reads\": [[[[[[[[[[0]]]]]]]]]]")) ==
        "operations[0].reads[0]: an array stands where an integer must");
}

TEST_CASE("a text that ends too early") {
  expect_every_beginning_told(trace_text, any_trace);
  expect_every_beginning_told(machine_text, any_machine);
  expect_every_beginning_told(plan_text, any_plan);
}

TEST_CASE("a text of another format") {
  CHECK(problem(any_trace, plan_text) == R"(format: "swapmm-plan" is not one of swapmm-trace)");
  CHECK(problem(any_machine, trace_text) == R"(format: "swapmm-trace" is not one of swapmm-machine)");
  CHECK(problem(any_plan, machine_text) == R"(format: "swapmm-machine" is not one of swapmm-plan)");
  CHECK(problem(any_trace, "") == "not JSON: incomplete JSON at byte 0");
  CHECK(problem(any_plan, std::string("\0\0", 2)) == "not JSON: syntax error at byte 0");
}

TEST_CASE("a plan for another trace, or one that does not close, is read and not valid") {
  const Trace trace = two_weights();
  REQUIRE(told(trace, plan_text).empty());
  Trace other = trace;
  other.tensors[0].bytes = Bytes{99};
  CHECK(told(other, plan_text) ==
        "0: trace: the plan is for program \"" + digest(trace) + "\", this one is " + digest(other) + '\n');
  CHECK(told(trace, changed(plan_text, R"("tensor": 0)", R"("tensor": 2)")) ==
        "0: commands[0].tensor: 2 is not the id of one of the 2 tensors\n");
  CHECK(told(trace,
             changed(plan_text, "\"initial\": []", R"("initial": [{"tensor": 1, "offset": 0, "host_valid": true}])")) ==
        "5: command 2 (swap_in of tensor 1 \"b\") takes a place while the tensor is on the device already\n"
        "5: tensor 1 \"b\" is in initial, but not on the device at the end of an iteration\n");
}
