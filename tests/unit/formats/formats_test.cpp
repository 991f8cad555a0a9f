// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/limits.hpp>

#include "support/changed_text.hpp"
#include "test_data.hpp"

using namespace swapmm;
using test::BadText;
using test::changed;
using test::expect_refused;
using test::written;

namespace {

const std::string trace_text = R"({"format": "swapmm-trace", "version": 1, "name": "vit",
 "tensors": [
  {"name": "t0", "bytes": 4096, "kind": "persistent"},
  {"name": "t1", "bytes": 100, "kind": "input", "available_from": 1},
  {"name": "t2", "bytes": 12, "kind": "transient"}],
 "operations": [
  {"name": "make", "duration_ns": 10, "reads": [0], "writes": [2], "updates": []},
  {"name": "use", "duration_ns": 0, "reads": [1, 2], "writes": [], "updates": [0]}],
 "host_reads": [
  {"tensor": 2, "after_operation": 0}]}
)";

const std::string machine_text =
    R"({"format": "swapmm-machine", "version": 1, "name": "a100", "device_budget_bytes": 40000000000, )"
    R"("alignment_bytes": 256, "max_allocation_bytes": null, )"
    R"("h2d": {"bytes_per_second": 15754000000, "latency_ns": 5}, )"
    R"("d2h": {"bytes_per_second": 12000000000, "latency_ns": 0}, "duplex": "full"}
)";

const std::string plan_text = R"({"format": "swapmm-plan", "version": 1, "trace": ")" + std::string(64, 'a') +
                              R"(", "planner": "excess-overlap",
 "machine": )" + machine_text.substr(0, machine_text.size() - 1) +
                              R"(,
 "initial": [
  {"tensor": 1, "offset": 0, "host_valid": true},
  {"tensor": 3, "offset": 512, "host_valid": false}],
 "commands": [
  {"kind": "allocate", "tensor": 0, "offset": 4096, "after": [{"command": 3}], "before_operation": 5},
  {"kind": "swap_in", "tensor": 7, "offset": 8192, "after": [{"operation": 3}, {"operation": -2}], "before_operation": 9},
  {"kind": "swap_out", "tensor": 7, "after": [{"operation": 9}]},
  {"kind": "release", "tensor": 7, "after": [{"command": 2}, {"command": 0, "iteration": -1}]}],
 "predicted": {"iteration_ns": 1, "compute_ns": 2, "lower_bound_ns": 3, "h2d_bytes": 4, "d2h_bytes": 5, "peak_bytes": 6}}
)";

const auto any_trace = [](auto&& source) { return read_trace(source); };
const auto any_machine = [](auto&& source) { return read_machine(source); };
const auto any_plan = [](auto&& source) { return read_plan(source); };

}  // namespace

TEST_CASE("a trace is read field by field, and written as it was read") {
  const auto trace = read_trace(trace_text);
  REQUIRE_MESSAGE(trace.has_value(), trace.problem().message);
  CHECK(trace->name == "vit");
  REQUIRE(trace->tensors.size() == 3);
  CHECK(trace->tensors[0] == TraceTensor{"t0", Bytes{4096}, TensorKind::persistent, 0});
  CHECK(trace->tensors[1] == TraceTensor{"t1", Bytes{100}, TensorKind::input, 1});
  CHECK(trace->tensors[2] == TraceTensor{"t2", Bytes{12}, TensorKind::transient, 0});
  REQUIRE(trace->operations.size() == 2);
  CHECK(trace->operations[0] == TraceOperation{"make", std::chrono::nanoseconds{10}, {TensorId{0}}, {TensorId{2}}, {}});
  CHECK(trace->operations[1] ==
        TraceOperation{"use", std::chrono::nanoseconds{0}, {TensorId{1}, TensorId{2}}, {}, {TensorId{0}}});
  CHECK(trace->host_reads == std::vector{HostRead{TensorId{2}, OperationId{0}}});
  CHECK(written(write_trace, *trace) == trace_text);
}

TEST_CASE("lists that are missing from an operation, and host reads that are missing, are empty") {
  const auto trace = read_trace(
      R"({"operations": [{"duration_ns": 3, "name": ""}], "tensors": [], "name": "", "version": 1, "format": "swapmm-trace"})");
  REQUIRE_MESSAGE(trace.has_value(), trace.problem().message);
  CHECK(trace->operations == std::vector{TraceOperation{"", std::chrono::nanoseconds{3}, {}, {}, {}}});
  CHECK(trace->host_reads.empty());
}

TEST_CASE("the traces of ViT and BERT are read, are the programs they were, and come back from a round trip") {
  struct Expected {
    std::string file;
    std::string digest;  // by another program
    std::size_t tensors;
    std::size_t operations;
    std::uint64_t bytes;
    std::int64_t duration_ns;
  };
  const std::vector<Expected> table = {
      {"VIT_b512", "88c2106c831b8dea8e099fea8c84698417ea98badc8e424af16508bf76efb29d", 1563, 1489, 79364464640,
       2538983107},
      {"BERT_Base_b256", "3b960b1ebe1d2d647af772dc6718eaacb7c5998a3c0f443afa471bf3cff7b294", 1463, 1369, 158958346240,
       7285465834},
  };
  for (const Expected& expected : table) {
    CAPTURE(expected.file);
    std::ifstream file(SWAPMM_TEST_DATA "/traces/g10/" + expected.file + ".json");
    REQUIRE(file.is_open());
    const auto trace = read_trace(file);
    REQUIRE_MESSAGE(trace.has_value(), trace.problem().message);
    CHECK(trace->name == expected.file);
    CHECK(trace->tensors.size() == expected.tensors);
    CHECK(trace->operations.size() == expected.operations);
    CHECK(digest(*trace) == expected.digest);
    std::uint64_t bytes = 0;
    for (const TraceTensor& tensor : trace->tensors) bytes += tensor.bytes.value;
    CHECK(bytes == expected.bytes);
    std::int64_t duration = 0;
    for (const TraceOperation& operation : trace->operations) duration += operation.duration.count();
    CHECK(duration == expected.duration_ns);
    const auto again = read_trace(written(write_trace, *trace));
    REQUIRE_MESSAGE(again.has_value(), again.problem().message);
    CHECK(*again == *trace);
  }
}

TEST_CASE("a bad trace is refused with field and index") {
  expect_refused(
      trace_text,
      {
          {"swapmm-trace", "swapmm-plan", R"(format: "swapmm-plan" is not one of swapmm-trace)"},
          {R"("version": 1)", R"("version": 3)", "version: 3 is unknown, only 1 and 2 are known"},
          {R"("version": 1)", R"("version": 0)", "version: 0 is unknown, only 1 and 2 are known"},
          {R"("version": 1)", R"("version": 2147483648000)",
           "version: 2147483648000 is unknown, only 1 and 2 are known"},
          {R"("version": 1)", R"("version": "1")", "version: a string stands where an integer must"},
          {R"("version": 1, )", "", "version: missing"},
          {R"("format": "swapmm-trace", )", "", "format: missing"},
          {R"("name": "vit",)", "", "name: missing"},
          {R"("name": "t1", )", "", "tensors[1].name: missing"},
          {R"("bytes": 100, )", "", "tensors[1].bytes: missing"},
          {R"(, "kind": "transient")", "", "tensors[2].kind: missing"},
          {R"("bytes": 100)", R"("bytes": -100)", "tensors[1].bytes: -100 is below 0"},
          {R"("bytes": 100)", R"("bytes": 1e2)", "tensors[1].bytes: 1e2 is not written as an integer"},
          {R"("bytes": 100)", R"("bytes": 99.5)", "tensors[1].bytes: 99.5 is not written as an integer"},
          {R"("bytes": 100)", R"("bytes": 4611686018427387904)",
           "tensors[1].bytes: 4611686018427387904 is above 4611686018427387903"},
          {R"("bytes": 100)", R"("bytes": 4611686018427387903)",
           "tensors[1].bytes: with 4611686018427387903 the sizes add up to 2^62 or more"},
          {R"("bytes": 100)", R"("bytes": 100, "bytes": 100)", "tensors[1].bytes: stands twice in one object"},
          {R"("kind": "input")", R"("kind": "inputs")",
           R"(tensors[1].kind: "inputs" is not one of persistent, input, transient)"},
          {R"("available_from": 1)", R"("available_from": 2)",
           "tensors[1].available_from: 2 is not one of the 2 operations"},
          {R"("kind": "persistent")", R"("kind": "persistent", "available_from": 1)",
           "tensors[0].available_from: only an input has it, and this tensor is persistent"},
          {R"("duration_ns": 10)", R"("duration_ns": -1)", "operations[0].duration_ns: -1 is below 0"},
          {R"("duration_ns": 10, )", "", "operations[0].duration_ns: missing"},
          {"[1, 2]", "[1, 4000000000]", "operations[1].reads[1]: 4000000000 is not the id of one of the 3 tensors"},
          {"[1, 2]", "[1, 4294967296]", "operations[1].reads[1]: 4294967296 is above 4294967295"},
          {"[1, 2]", "[1, null]", "operations[1].reads[1]: null stands where an integer must"},
          {"[1, 2]", "[1, 2, 0]", "operations[1].updates[0]: tensor 0 stands in the bundle twice"},
          {"[1, 2]", "1", "operations[1].reads: a number stands where an array must"},
          {R"("writes": [2])", R"("writes": [])",
           "operations[1].reads[1]: transient 2 has no value before it is written"},
          {R"("after_operation": 0)", R"("after_operation": 2)",
           "host_reads[0].after_operation: 2 is not one of the 2 operations"},
          {R"("tensor": 2, )", "", "host_reads[0].tensor: missing"},
          {R"("operations": [)", R"("operations": [], "other": [)", "operations: a trace has at least one"},
          {R"("operations": [)", R"("other": [)", "operations: missing"},
          {R"("tensors": [)", R"("tensors": [[], )", "tensors[0]: an array stands where an object must"},
          {R"("name": "t1")", "\"name\": \"" + std::string(1025, 'n') + "\"",
           "tensors[1].name: longer than 1024 bytes"},
          {"\"name\": \"t1\"", "\"name\": \"\xFF\"", "not JSON: syntax error at byte 137, in or after tensors[1].name"},
          {trace_text.substr(trace_text.size() - 3), "",
           "not JSON: incomplete JSON at byte 487, in or after host_reads[0]"},
      },
      any_trace);
}

TEST_CASE("a trace of more than 2^20 tensors is refused while it is read") {
  std::string text = R"({"format": "swapmm-trace", "version": 1, "name": "", "operations": [], "tensors": [)";
  for (std::size_t i = 0; i <= limits::tensors; ++i) text += R"({"name":"","bytes":0,"kind":"input"},)";
  text += "this is never reached";
  const auto trace = read_trace(text);
  REQUIRE_FALSE(trace.has_value());
  CHECK(trace.problem().message == "tensors: more than 1048576 elements");
}

TEST_CASE("memory reserved for operations that do not come is given back") {
  std::string text =
      R"({"format": "swapmm-trace", "version": 1, "name": "", "operations": [{"name":"","duration_ns":0}],)"
      R"( "tensors": [], "other": ")" +
      std::string(1U << 20U, 'x') + "\"}";
  const auto trace = read_trace(text);
  REQUIRE_MESSAGE(trace.has_value(), trace.problem().message);
  CHECK(trace->operations.size() == 1);
  CHECK(trace->operations.capacity() < 100);
}

TEST_CASE("a machine is read field by field, and written as it was read") {
  const auto machine = read_machine(machine_text);
  REQUIRE_MESSAGE(machine.has_value(), machine.problem().message);
  Machine expected;
  expected.name = "a100";
  expected.device_budget = Bytes{40000000000};
  expected.alignment = Bytes{256};
  expected.h2d = {15754000000, std::chrono::nanoseconds{5}};
  expected.d2h = {12000000000, std::chrono::nanoseconds{0}};
  CHECK(*machine == expected);
  CHECK(written(write_machine, *machine) == machine_text);

  const BadText half{R"("full")", R"("half")", ""};
  const BadText arenas{"null", "4096", ""};
  const auto other = read_machine(changed(changed(machine_text, half), arenas));
  REQUIRE_MESSAGE(other.has_value(), other.problem().message);
  CHECK(other->duplex == Duplex::half);
  CHECK(other->max_allocation == Bytes{4096});
}

TEST_CASE("a machine without a largest allocation has none") {
  const auto machine = read_machine(changed(machine_text, {R"("max_allocation_bytes": null, )", "", ""}));
  REQUIRE_MESSAGE(machine.has_value(), machine.problem().message);
  CHECK_FALSE(machine->max_allocation.has_value());
}

TEST_CASE("a bad machine is refused with its field") {
  expect_refused(
      machine_text,
      {
          {"swapmm-machine", "machine", R"(format: "machine" is not one of swapmm-machine)"},
          {R"("version": 1)", R"("version": 0)", "version: 0 is unknown, only 1 is known"},
          {R"("device_budget_bytes": 40000000000)", R"("device_budget_bytes": 0)",
           "device_budget_bytes: 0 is not above 0"},
          {R"("device_budget_bytes": 40000000000, )", "", "device_budget_bytes: missing"},
          {R"("alignment_bytes": 256)", R"("alignment_bytes": 0)", "alignment_bytes: 0 is not above 0"},
          {R"("alignment_bytes": 256)", R"("alignment_bytes": 1099511627777)",
           "alignment_bytes: 1099511627777 is above 2^40"},
          {"null", "0", "max_allocation_bytes: 0 is not above 0"},
          {"null", "257", "max_allocation_bytes: 257 is not a multiple of the alignment, 256"},
          {"null", "\"all\"", "max_allocation_bytes: a string stands where an integer must"},
          {"15754000000", "0", "h2d.bytes_per_second: 0 is not above 0"},
          {"15754000000", "15754000000.5", "h2d.bytes_per_second: 15754000000.5 is not written as an integer"},
          {"15754000000", "18446744073709551615",
           "h2d.bytes_per_second: 18446744073709551615 is above 4611686018427387903"},
          {"12000000000", "1", "d2h: a copy of the whole budget of 40000000000 bytes takes 2^62 ns or more"},
          {R"("latency_ns": 5)", R"("latency_ns": -5)", "h2d.latency_ns: -5 is below 0"},
          {R"("latency_ns": 5)", R"("latency_ns": 4611686018427387903)",
           "h2d: a copy of the whole budget of 40000000000 bytes takes 2^62 ns or more"},
          {R"("latency_ns": 0)", R"("latency": 0)", "d2h.latency_ns: missing"},
          {"full", "quarter", R"(duplex: "quarter" is not one of full, half)"},
          {"}\n", "} {}\n", "not JSON: extra data at byte 285"},
      },
      any_machine);
}

TEST_CASE("check_machine refuses what only a program can make") {
  Machine machine = *read_machine(machine_text);
  CHECK(check_machine(machine).has_value());
  machine.d2h.latency = std::chrono::nanoseconds{-1};
  REQUIRE_FALSE(check_machine(machine).has_value());
  CHECK(check_machine(machine).problem().message == "d2h.latency_ns: -1 is below 0");
  machine.d2h.latency = {};
  machine.device_budget = Bytes{limits::magnitude};
  REQUIRE_FALSE(check_machine(machine).has_value());
  CHECK(check_machine(machine).problem().message == "device_budget_bytes: 4611686018427387904 is not below 2^62");
}

TEST_CASE("a plan is read field by field, and written as it was read") {
  const auto plan = read_plan(plan_text);
  REQUIRE_MESSAGE(plan.has_value(), plan.problem().message);
  CHECK(plan->trace_digest == std::string(64, 'a'));
  CHECK(plan->planner == "excess-overlap");
  CHECK(plan->machine == *read_machine(machine_text));
  CHECK(plan->initial == std::vector{Resident{TensorId{1}, Bytes{0}, true}, Resident{TensorId{3}, Bytes{512}, false}});
  REQUIRE(plan->commands.size() == 4);
  CHECK(plan->commands[0] ==
        Command{CommandKind::allocate, Tier::host, TensorId{0}, Bytes{4096}, {after_command(CommandId{3})}, 5});
  CHECK(plan->commands[1] == Command{CommandKind::swap_in,
                                     Tier::host,
                                     TensorId{7},
                                     Bytes{8192},
                                     {after_operation(OperationId{3}), {Wait::On::operation, false, -2}},
                                     9});
  CHECK(plan->commands[2] ==
        Command{
            CommandKind::swap_out, Tier::host, TensorId{7}, Bytes{0}, {after_operation(OperationId{9})}, std::nullopt});
  CHECK(plan->commands[3] == Command{CommandKind::release,
                                     Tier::host,
                                     TensorId{7},
                                     Bytes{0},
                                     {after_command(CommandId{2}), after_previous_command(CommandId{0})},
                                     std::nullopt});
  CHECK(plan->predicted == Prediction{std::chrono::nanoseconds{1}, std::chrono::nanoseconds{2},
                                      std::chrono::nanoseconds{3}, Bytes{4}, Bytes{5}, Bytes{6}});
  CHECK(written(write_plan, *plan) == plan_text);
}

TEST_CASE("defaults of a command may be spelled out or left out") {
  const Plan plan = *read_plan(plan_text);
  const std::vector<BadText> changes = {
      {R"("kind": "swap_out")", R"("tier": "host", "kind": "swap_out")", ""},
      {R"("after": [{"operation": 9}])", R"("after": [{"operation": 9}], "before_operation": null)", ""},
      {R"("kind": "swap_out")", R"("offset": 256, "kind": "swap_out")", ""},  // has no place: ignored
      {R"("format": "swapmm-machine", "version": 1, )", "", ""},
  };
  for (const BadText& change : changes) {
    CAPTURE(change.to);
    const auto same = read_plan(changed(plan_text, change));
    REQUIRE_MESSAGE(same.has_value(), same.problem().message);
    CHECK(*same == plan);
  }
  const auto without_waits = read_plan(changed(plan_text, {R"(, "after": [{"operation": 9}])", "", ""}));
  REQUIRE_MESSAGE(without_waits.has_value(), without_waits.problem().message);
  CHECK(without_waits->commands[2].after.empty());
}

TEST_CASE("a bad plan is refused with field and index") {
  expect_refused(
      plan_text,
      {
          {"swapmm-plan", "swapmm-trace", R"(format: "swapmm-trace" is not one of swapmm-plan)"},
          {R"("version": 1)", R"("version": 2)", "version: 2 is unknown, only 1 is known"},
          {R"("version": 1)", R"("version": 1.0)", "version: 1.0 is not written as an integer"},
          {"aaaa", "AAAA", "trace: not a digest, which is 64 lower-case hexadecimal digits"},
          {"aaaa", "aaa", "trace: not a digest, which is 64 lower-case hexadecimal digits"},
          {R"("planner": "excess-overlap",)", "", "planner: missing"},
          {"swapmm-machine", "swapmm-plan", R"(machine.format: "swapmm-plan" is not one of swapmm-machine)"},
          {R"("alignment_bytes": 256)", R"("alignment_bytes": 0)", "machine: alignment_bytes: 0 is not above 0"},
          {R"("latency_ns": 5)", R"("latency_ns": -5)", "machine.h2d.latency_ns: -5 is below 0"},
          {R"("offset": 512)", R"("offset": 511)", "initial[1].offset: 511 is not a multiple of the alignment, 256"},
          {R"("offset": 512)", R"("offset": 40000000256)",
           "initial[1].offset: 40000000256 is beyond the budget of 40000000000 bytes"},
          {R"("offset": 512, )", "", "initial[1].offset: missing"},
          {R"(, "host_valid": false)", "", "initial[1].host_valid: missing"},
          {R"("host_valid": false)", R"("host_valid": 0)",
           "initial[1].host_valid: a number stands where true or false must"},
          {R"("tensor": 3)", R"("tensor": 1)", "initial[1].tensor: tensor 1 stands twice"},
          {R"("tensor": 3)", R"("tensor": 1048576)", "initial[1].tensor: 1048576 is above 1048575"},
          {R"("kind": "release")", R"("kind": "free")",
           R"(commands[3].kind: "free" is not one of allocate, swap_in, swap_out, release)"},
          {R"("kind": "release", )", "", "commands[3].kind: missing"},
          {R"("tensor": 0)", R"("tensor": -1)", "commands[0].tensor: -1 is below 0"},
          {R"("offset": 8192, )", "", "commands[1]: no offset, and a command of kind swap_in needs one"},
          {R"("offset": 8192)", R"("offset": 8193)",
           "commands[1].offset: 8193 is not a multiple of the alignment, 256"},
          {R"("offset": 8192)", R"("offset": null)", "commands[1].offset: null stands where an integer must"},
          {R"({"command": 3})", R"({"command": 4})", "commands[0].after[0].command: 4 is not one of the 4 commands"},
          {R"({"command": 3})", R"({"command": -1})", "commands[0].after[0].command: -1 is below 0"},
          {R"({"command": 3})", "{}", "commands[0].after[0]: a wait is for one operation or one command"},
          {R"({"command": 3})", R"({"command": 3, "operation": 3})",
           "commands[0].after[0]: a wait is for one operation or one command"},
          {R"({"operation": 9})", R"({"operation": 9, "iteration": -1})",
           "commands[2].after[0]: iteration is for commands, an operation of the iteration before has a negative "
           "number"},
          {R"("iteration": -1)", R"("iteration": -2)",
           "commands[3].after[1].iteration: -2 is unknown, only -1 is known"},
          {R"({"operation": -2})", R"({"operation": -16777217})",
           "commands[1].after[1].operation: -16777217 is below -16777216"},
          {R"({"operation": -2})", "7", "commands[1].after[1]: a number stands where an object must"},
          {R"("before_operation": 5)", R"("before_operation": -5)", "commands[0].before_operation: -5 is below 0"},
          {R"("before_operation": 5)", R"("before_operation": 33554432)",
           "commands[0].before_operation: 33554432 is above 33554431"},
          {R"("kind": "swap_out")", R"("tier": "disk", "kind": "swap_out")",
           R"(commands[2].tier: "disk" is not one of host)"},
          {R"("kind": "swap_out")", R"("range": [0, 16], "kind": "swap_out")",
           "commands[2].range: version 1 moves whole tensors only"},
          {R"("kind": "swap_out")", R"("range": null, "kind": "swap_out")",
           "commands[2].range: version 1 moves whole tensors only"},
          {R"("peak_bytes": 6)", R"("peak_bytes": 6e0)", "predicted.peak_bytes: 6e0 is not written as an integer"},
          {R"("lower_bound_ns": 3, )", "", "predicted.lower_bound_ns: missing"},
          {R"("iteration_ns": 1)", R"("iteration_ns": 9223372036854775808)",
           "predicted.iteration_ns: 9223372036854775808 is above 9223372036854775807"},
      },
      any_plan);
}

TEST_CASE("names that no file may hold are written so that they can be read") {
  Trace trace;
  trace.name = std::string("nul\0\x1F\x7F\"\\/\b\f\n\r\t", 14);
  trace.operations.push_back({"\xFF\xED\xA0\x80\xC3", std::chrono::nanoseconds{0}, {}, {}, {}});
  trace.operations.push_back({std::string(1023, 'x') + "\xC3\xA4", std::chrono::nanoseconds{0}, {}, {}, {}});
  const auto again = read_trace(written(write_trace, trace));
  REQUIRE_MESSAGE(again.has_value(), again.problem().message);
  CHECK(again->name == trace.name);
  const std::string replacement = "\xEF\xBF\xBD";
  CHECK(again->operations[0].name == replacement + replacement + replacement + replacement + replacement);
  CHECK(again->operations[1].name == std::string(1023, 'x'));
}

TEST_CASE("numbers are written by no locale") {
  /// Groups digits as many languages do.
  struct Grouping : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::ostringstream out;
  out.imbue(std::locale(std::locale::classic(), new Grouping));
  write_machine(out, *read_machine(machine_text));
  CHECK(out.str() == machine_text);
  out.str("");
  write_trace(out, *read_trace(trace_text));
  CHECK(out.str() == trace_text);
  out.str("");
  write_plan(out, *read_plan(plan_text));
  CHECK(out.str() == plan_text);
}
