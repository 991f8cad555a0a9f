// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/ir/limits.hpp>

#include "support/changed_text.hpp"

using namespace swapmm;

namespace {

const std::string plan_2_machine = R"({"format": "swapmm-machine", "version": 2, "name": "two-devices",
 "memories": [
  {"name": "gpu0", "bytes": 40000, "alignment_bytes": 256},
  {"name": "gpu1", "bytes": 8000},
  {"name": "host", "bytes": null}],
 "engines": [
  {"name": "gpu0.in"},
  {"name": "gpu0", "memory": "gpu0"}],
 "links": [
  {"name": "host-gpu0", "from": "host", "to": "gpu0", "bytes_per_second": 157, "latency_ns": 5, "engine": "gpu0.in"},
  {"name": "gpu0-host", "from": "gpu0", "to": "host", "bytes_per_second": 15, "latency_ns": 0}],
 "host": "host"})";

/// Has every field.
const std::string plan_2_text =
    R"({"format": "swapmm-plan", "version": 2, "trace": ")" + std::string(64, 'a') +
    R"(", "planner": "by \"hand\"",
 "machine": )" +
    plan_2_machine +
    R"(,
 "pieces": [
  {"tensor": 5, "at": [4194304, 8388608]},
  {"tensor": 3, "at": [1]}],
 "initial": [
  {"tensor": 1, "memory": "gpu0", "offset": 0},
  {"tensor": 5, "piece": 2, "memory": "gpu1", "offset": 17},
  {"tensor": 6, "form": "top.1", "memory": "gpu0", "offset": 256},
  {"tensor": 3, "piece": 0, "memory": "host", "valid": false}],
 "commands": [
  {"kind": "allocate", "tensor": 0, "memory": "gpu0", "offset": 4096, "after": [{"command": 8}], )"
    R"("before_operation": 5},
  {"kind": "allocate", "tensor": 6, "form": "zeros", "memory": "gpu0", "offset": 1024},
  {"kind": "copy", "tensor": 7, "link": "host-gpu0", "offset": 8192, "position": 2, )"
    R"("after": [{"operation": 3}, {"operation": -2}], "before_operation": 9},
  {"kind": "copy", "tensor": 5, "piece": 1, "link": "gpu0-host", "after": [{"operation": 9}]},
  {"kind": "release", "tensor": 6, "form": "top.1", "memory": "gpu0", "after": [{"command": 2}, )"
    R"({"command": 0, "iteration": -1}]},
  {"kind": "run", "operation": 3, "position": 9, "before_operation": [9, 10, 33554431]},
  {"kind": "run", "operation": 4},
  {"kind": "encode", "tensor": 6, "form": "zeros", "engine": "gpu0", "offset": 0, "position": 4},
  {"kind": "decode", "tensor": 6, "form": "top.1", "engine": "gpu0"}],
 "predicted": {"iteration_ns": 1, "compute_ns": 2, "lower_bound_ns": 3, "links": [{"link": "host-gpu0", )"
    R"("bytes": 4}, {"link": "gpu0-host", "bytes": 0}], "memories": [{"memory": "gpu0", "peak_bytes": 5}, )"
    R"({"memory": "gpu1", "peak_bytes": 6}]}}
)";

const auto read_any_plan_2 = [](auto&& source) { return v2::read_plan(source); };

v2::Plan good_plan_2(std::string_view text) {
  const auto plan = v2::read_plan(text);
  REQUIRE_MESSAGE(plan.has_value(), plan.problem().message);
  return *plan;
}

v2::Plan changed_plan_2(const std::string& from, const std::string& to) {
  return good_plan_2(test::changed(plan_2_text, {from, to, ""}));
}

v2::Command command_2(v2::CommandKind kind, std::uint32_t tensor) {
  v2::Command command;
  command.kind = kind;
  command.tensor = TensorId{tensor};
  return command;
}

}  // namespace

TEST_CASE("a plan of version 2 is read field by field, and written as it was read") {
  const v2::Plan plan = good_plan_2(plan_2_text);
  const auto zeros = v2::FormId{2};
  const auto top = v2::FormId{1};
  CHECK(plan.trace_digest == std::string(64, 'a'));
  CHECK(plan.planner == "by \"hand\"");
  CHECK(plan.machine.links.size() == 2);
  CHECK(plan.forms == std::vector<std::string>{"top.1", "zeros"});
  CHECK(plan.pieces ==
        std::vector<v2::Division>{{TensorId{5}, {Bytes{4194304}, Bytes{8388608}}}, {TensorId{3}, {Bytes{1}}}});
  CHECK(plan.initial == std::vector<v2::Place>{
                            {TensorId{1}, std::nullopt, v2::FormId::plain, v2::MemoryId{0}, Bytes{0}, true},
                            {TensorId{5}, 2, v2::FormId::plain, v2::MemoryId{1}, Bytes{17}, true},
                            {TensorId{6}, std::nullopt, top, v2::MemoryId{0}, Bytes{256}, true},
                            {TensorId{3}, 0, v2::FormId::plain, v2::MemoryId{2}, Bytes{0}, false},
                        });
  std::vector<v2::Command> expected = {command_2(v2::CommandKind::allocate, 0), command_2(v2::CommandKind::allocate, 6),
                                       command_2(v2::CommandKind::copy, 7),     command_2(v2::CommandKind::copy, 5),
                                       command_2(v2::CommandKind::release, 6),  command_2(v2::CommandKind::run, 0),
                                       command_2(v2::CommandKind::run, 0),      command_2(v2::CommandKind::encode, 6),
                                       command_2(v2::CommandKind::decode, 6)};
  expected[0].offset = Bytes{4096};
  expected[0].after = {after_command(CommandId{8})};
  expected[0].before_operations = {5};
  expected[1].form = zeros;
  expected[1].offset = Bytes{1024};
  expected[2].offset = Bytes{8192};
  expected[2].position = 2;
  expected[2].after = {after_operation(OperationId{3}), {Wait::On::operation, false, -2}};
  expected[2].before_operations = {9};
  expected[3].piece = 1;
  expected[3].link = v2::LinkId{1};
  expected[3].after = {after_operation(OperationId{9})};
  expected[4].form = top;
  expected[4].after = {after_command(CommandId{2}), after_previous_command(CommandId{0})};
  expected[5].operation = OperationId{3};
  expected[5].position = 9;
  expected[5].before_operations = {9, 10, 33554431};
  expected[6].operation = OperationId{4};
  expected[7].form = zeros;
  expected[7].engine = v2::EngineId{1};
  expected[7].offset = Bytes{0};
  expected[7].position = 4;
  expected[8].form = top;
  expected[8].engine = v2::EngineId{1};
  CHECK(plan.commands == expected);
  CHECK(plan.predicted.iteration == std::chrono::nanoseconds{1});
  CHECK(plan.predicted.compute == std::chrono::nanoseconds{2});
  CHECK(plan.predicted.lower_bound == std::chrono::nanoseconds{3});
  CHECK(plan.predicted.links == std::vector{Bytes{4}, Bytes{0}});
  CHECK(plan.predicted.peaks == std::vector{Bytes{5}, Bytes{6}, Bytes{0}});
  CHECK(test::written(v2::write_plan, plan) == plan_2_text);
}

TEST_CASE("the example of docs/formats.md, completed, is a plan") {
  std::string text = R"({"format": "swapmm-plan", "version": 2, "trace": ")" + std::string(64, '0') +
                     R"(",
     "planner": "on-demand", "machine": {"name": "two-devices",
     "memories":   [{"name": "gpu0", "bytes": 40000000000, "alignment_bytes": 256, "max_allocation_bytes": null},
                    {"name": "gpu1", "bytes": 8000000000, "alignment_bytes": 256},
                    {"name": "host", "bytes": null}],
     "engines":    [{"name": "gpu0", "memory": "gpu0"}, {"name": "gpu0.in"}, {"name": "gpu0.out"}],
     "capacities": [{"name": "root", "bytes_per_second": 25000000000}],
     "links":      [{"name": "host-gpu0", "from": "host", "to": "gpu0", "bytes_per_second": 15754000000, )"
                     R"("latency_ns": 0,
                     "engine": "gpu0.in", "capacities": ["root"]},
                    {"name": "gpu0-host", "from": "gpu0", "to": "host", "bytes_per_second": 15754000000, )"
                     R"("latency_ns": 0,
                     "engine": "gpu0.out"}],
     "host": "host"},
     "pieces":   [{"tensor": 5, "at": [4194304, 8388608]}],
     "initial":  [{"tensor": 1, "memory": "gpu0", "offset": 0}, {"tensor": 5, "piece": 2, )"
                     R"("memory": "gpu1", "offset": 0},
                  {"tensor": 3, "memory": "host", "valid": false}],
     "commands": [
       {"kind": "allocate", "tensor": 0, "memory": "gpu0", "offset": 4096, "after": [{"command": 6}], )"
                     R"("before_operation": 5},
       {"kind": "copy", "tensor": 7, "link": "host-gpu0", "offset": 8192, "after": [{"operation": 3}], )"
                     R"("before_operation": 9},
       {"kind": "copy", "tensor": 7, "link": "gpu0-host", "after": [{"operation": 9}]},
       {"kind": "release", "tensor": 7, "memory": "gpu0", "after": [{"command": 2}]},
       {"kind": "run", "operation": 3, "position": 9, "before_operation": 9},
       {"kind": "encode", "tensor": 6, "form": "zeros", "engine": "gpu0", "position": 4, "offset": 0},
       {"kind": "decode", "tensor": 6, "form": "zeros", "engine": "gpu0", "position": 8, "offset": 512}],
     "predicted": {"iteration_ns": 0, "compute_ns": 0, "lower_bound_ns": 0,
                   "links": [{"link": "host-gpu0", "bytes": 0}], "memories": [{"memory": "gpu0", )"
                     R"("peak_bytes": 0}]}})";
  const v2::Plan plan = good_plan_2(text);
  CHECK(plan.commands.size() == 7);
  CHECK(plan.forms == std::vector<std::string>{"zeros"});
  CHECK(good_plan_2(test::written(v2::write_plan, plan)) == plan);
}

TEST_CASE(
    "commands and the prediction may stand before the machine, and forms are numbered as the writer writes them") {
  const std::string text =
      R"({"predicted": {"memories": [{"memory": "m", "peak_bytes": 7}], "links": [], "lower_bound_ns": 0,)"
      R"("compute_ns": 0, "iteration_ns": 0}, "commands": [)"
      R"({"engine": "e", "form": "first", "tensor": 0, "kind": "encode"},)"
      R"({"memory": "m", "form": "last", "tensor": 2, "kind": "release"}],)"
      R"("initial": [{"memory": "m", "offset": 1, "form": "plain", "tensor": 0},)"
      R"({"memory": "m", "offset": 2, "form": "second", "tensor": 0}],)"
      R"("machine": {"host": "m", "links": [], "capacities": [], "engines": [{"name": "e", "memory": "m"}],)"
      R"("memories": [{"name": "m", "bytes": 9}], "name": ""}, "planner": "", "trace": ")" +
      std::string(64, '0') + R"(", "version": 2, "format": "swapmm-plan"})";
  const v2::Plan plan = good_plan_2(text);
  CHECK(plan.forms == std::vector<std::string>{"second", "first", "last"});
  CHECK(plan.initial[0].form == v2::FormId::plain);
  CHECK(plan.initial[1].form == v2::FormId{1});
  CHECK(plan.commands[0].form == v2::FormId{2});
  CHECK(plan.predicted.peaks == std::vector{Bytes{7}});
  CHECK(plan.predicted.links.empty());
  CHECK(good_plan_2(test::written(v2::write_plan, plan)) == plan);
}

TEST_CASE("defaults may be spelled out or left out") {
  const v2::Plan plan = good_plan_2(plan_2_text);
  CHECK(changed_plan_2(R"("offset": 17})", R"("offset": 17, "valid": true, "form": "plain"})") == plan);
  CHECK(changed_plan_2(R"("kind": "run", "operation": 4)",
                       R"("kind": "run", "operation": 4, "after": [], "before_operation": null)") == plan);
  CHECK(changed_plan_2(R"("tensor": 0, "memory")", R"("tensor": 0, "form": "plain", "memory")") == plan);
  // What no kind of version 2 has is unknown, also if version 1 has it.
  CHECK(changed_plan_2(R"("kind": "run")", R"("tier": 7, "range": [], "host_valid": {}, "kind": "run")") == plan);
}

TEST_CASE("fields that the kind of a command does not have are ignored") {
  const v2::Plan plan = good_plan_2(plan_2_text);
  const std::string all = R"("tensor": 9, "piece": 9, "form": "f", "memory": "m", "link": "l", "engine": "e", )"
                          R"("operation": 9, "offset": 9, "position": 9, )";
  const auto with_all_but = [&all](const std::string& kind, std::vector<std::string> own) {
    std::string others = all;
    for (const std::string& field : own) {
      const std::size_t begin = others.find('"' + field + '"');
      others.erase(begin, others.find(", ", begin) + 2 - begin);
    }
    return changed_plan_2("{\"kind\": \"" + kind + "\", ", "{" + others + "\"kind\": \"" + kind + "\", ");
  };
  CHECK(with_all_but("allocate", {"tensor", "piece", "form", "memory", "offset"}) == plan);
  CHECK(with_all_but("release", {"tensor", "piece", "form", "memory"}) == plan);
  CHECK(with_all_but("copy", {"tensor", "piece", "form", "link", "offset", "position"}) == plan);
  CHECK(with_all_but("run", {"operation", "position"}) == plan);
  CHECK(with_all_but("encode", {"tensor", "form", "engine", "offset", "position"}) == plan);
  CHECK(with_all_but("decode", {"tensor", "form", "engine", "offset", "position"}) == plan);
}

TEST_CASE("one operation or more may wait for a command") {
  const v2::Plan plan = good_plan_2(plan_2_text);
  CHECK(changed_plan_2(R"("before_operation": 5)", R"("before_operation": [5])") == plan);
  CHECK(changed_plan_2(R"("operation": 4})", R"("operation": 4, "before_operation": []})") == plan);
  CHECK(changed_plan_2(R"("operation": 4})", R"("operation": 4, "before_operation": null})") == plan);
}

TEST_CASE("the lists of the prediction may be empty or have some entries only") {
  const std::string links = R"([{"link": "host-gpu0", "bytes": 4}, {"link": "gpu0-host", "bytes": 0}])";
  const std::string peaks = R"([{"memory": "gpu0", "peak_bytes": 5}, {"memory": "gpu1", "peak_bytes": 6}])";
  CHECK(changed_plan_2(links, "[]").predicted.links.empty());
  CHECK(changed_plan_2(peaks, "[]").predicted.peaks.empty());
  CHECK(changed_plan_2(links, R"([{"link": "gpu0-host", "bytes": 9}])").predicted.links ==
        std::vector{Bytes{0}, Bytes{9}});
  const v2::Plan some = changed_plan_2(peaks, R"([{"memory": "host", "peak_bytes": 0}])");
  CHECK(some.predicted.peaks == std::vector<Bytes>(3));
  CHECK(good_plan_2(test::written(v2::write_plan, some)) == some);
  // Without any limit there are no peaks, which is not the same as an empty list.
  v2::Plan endless = some;
  endless.machine.memories = {{"gpu0", std::nullopt, Bytes{1}, std::nullopt},
                              {"gpu1", std::nullopt, Bytes{1}, std::nullopt},
                              {"host", std::nullopt, Bytes{1}, std::nullopt}};
  endless.initial.clear();
  endless.commands.clear();
  endless.forms.clear();
  CHECK(good_plan_2(test::written(v2::write_plan, endless)) == endless);
}

TEST_CASE("a plan of version 1 is read as from_version_1() converts it") {
  const std::string text = R"({"format": "swapmm-plan", "trace": ")" + std::string(64, 'a') +
                           R"(", "planner": "p",
 "machine": {"name": "a", "device_budget_bytes": 40000, "alignment_bytes": 256, "duplex": "half",
  "h2d": {"bytes_per_second": 15754000000, "latency_ns": 5}, "d2h": {"bytes_per_second": 12, "latency_ns": 0}},
 "initial": [{"tensor": 1, "offset": 0, "host_valid": true}, {"tensor": 3, "offset": 512, "host_valid": false}],
 "commands": [
  {"kind": "allocate", "tensor": 0, "offset": 4096, "after": [{"command": 3}], "before_operation": 5, "link": 7},
  {"kind": "swap_in", "tensor": 7, "offset": 8192, "after": [{"operation": 3}, {"operation": -2}]},
  {"kind": "swap_out", "tensor": 7, "after": [{"operation": 9}]},
  {"kind": "release", "tensor": 7, "after": [{"command": 2}, {"command": 0, "iteration": -1}]}],
 "predicted": {"iteration_ns": 1, "compute_ns": 2, "lower_bound_ns": 3, "h2d_bytes": 4, "d2h_bytes": 5, )"
                           R"("peak_bytes": 6},
 "version": 1})";
  const auto old = swapmm::read_plan(text);
  REQUIRE_MESSAGE(old.has_value(), old.problem().message);
  const v2::Plan plan = good_plan_2(text);
  CHECK(plan == v2::from_version_1(*old));
  CHECK(v2::check_plan(plan).has_value());
  CHECK(good_plan_2(test::written(v2::write_plan, plan)) == plan);
  std::istringstream in(text);
  CHECK(v2::read_plan(in).has_value());
  test::expect_refused(
      text,
      {{R"("offset": 512)", R"("offset": 511)", "initial[1].offset: 511 is not a multiple of the alignment, 256"},
       {R"("link": 7)", R"("range": 7)", "commands[0].range: version 1 moves whole tensors only"},
       {R"("version": 1)", R"("version": 2)", "machine.memories: missing"}},
      read_any_plan_2);
}

TEST_CASE("a bad plan of version 2 is refused with field and index") {
  const std::string no_name = " is not a name: 1 to 100 characters out of A-Z a-z 0-9 . _ -";
  test::expect_refused(
      plan_2_text,
      {
          {"swapmm-plan", "swapmm-trace", R"(format: "swapmm-trace" is not one of swapmm-plan)"},
          {R"("version": 2)", R"("version": 3)", "version: 3 is unknown, only 1 and 2 are known"},
          {R"("version": 2)", R"("version": 2.0)", "version: 2.0 is not written as an integer"},
          {R"("version": 2, )", "", "version: missing"},
          {R"("swapmm-machine", "version": 2)", R"("swapmm-machine", "version": 1)",
           "machine.version: 1 is unknown, only 2 is known"},
          {"aaaa", "AAAA", "trace: not a digest, which is 64 lower-case hexadecimal digits"},
          {R"("alignment_bytes": 256)", R"("alignment_bytes": 0)",
           "machine: memories[0].alignment_bytes: 0 is not above 0"},
          {R"("from": "host")", R"("from": "hots")",
           R"(machine: links[0].from: "hots" is not a memory of the machine)"},
          {R"("latency_ns": 5)", R"("latency_ns": -5)", "machine.links[0].latency_ns: -5 is below 0"},
          // Pieces.
          {R"("at": [1])", R"("at": [])", "pieces[1].at: empty"},
          {R"("at": [1])", R"("at": [0])", "pieces[1].at: not ascending from above 0"},
          {R"("at": [1])", R"("at": [2, 2])", "pieces[1].at: not ascending from above 0"},
          {R"("at": [1])", R"("at": [-1])", "pieces[1].at[0]: -1 is below 0"},
          {R"("at": [1])", R"("at": 1)", "pieces[1].at: a number stands where an array must"},
          {R"(, "at": [1])", "", "pieces[1].at: missing"},
          {R"({"tensor": 3, "at")", R"({"at")", "pieces[1].tensor: missing"},
          {R"({"tensor": 3, "at")", R"({"tensor": 5, "at")", "pieces[1]: tensor 5 stands twice"},
          {R"({"tensor": 3, "at")", R"({"tensor": 1048576, "at")", "pieces[1].tensor: 1048576 is above 1048575"},
          // Places.
          {R"("offset": 0})", R"("offset": 1})", "initial[0].offset: 1 is not a multiple of the alignment, 256"},
          {R"("offset": 17})", R"("offset": 8001})", "initial[1].offset: 8001 is beyond the 8000 bytes of memory gpu1"},
          {R"(, "offset": 17})", "}", "initial[1]: no offset, and memory gpu1 has a limit"},
          {R"("valid": false})", R"("offset": 0, "valid": false})",
           "initial[3].offset: memory host is without limit, and has no offsets"},
          {R"("valid": false})", R"("valid": null})", "initial[3].valid: null stands where true or false must"},
          {R"(, "memory": "host")", "", "initial[3].memory: missing"},
          {R"("memory": "host")", R"("memory": "hots")", R"(initial[3].memory: "hots" is not a memory of the machine)"},
          {R"({"tensor": 1, )", "{", "initial[0].tensor: missing"},
          {R"({"tensor": 1, )", R"({"tensor": 1, "piece": 0, )", "initial[0].piece: tensor 1 is not divided"},
          {R"("piece": 2, )", "", "initial[1]: no piece, and tensor 5 is divided"},
          {R"("piece": 2)", R"("piece": 3)", "initial[1].piece: 3 is not one of the 3"},
          {R"("piece": 2)", R"("piece": null)", "initial[1].piece: null stands where an integer must"},
          {R"("piece": 2)", R"("piece": 2, "form": "f")", "initial[1].form: a tensor that is divided has no forms"},
          {R"({"tensor": 6, "form": "top.1", "memory": "gpu0", "offset": 256})",
           R"({"tensor": 1, "memory": "gpu0", "offset": 256})", "initial[2]: stands twice"},
          {R"("form": "top.1", "memory": "gpu0", "offset": 256)", R"("form": "", "memory": "gpu0", "offset": 256)",
           R"(initial[2].form: "")" + no_name},
          // Commands.
          {R"("kind": "run")", R"("kind": "swap_in")",
           R"(commands[5].kind: "swap_in" is not one of allocate, release, copy, run, encode, decode)"},
          {R"("kind": "run", )", "", "commands[5].kind: missing"},
          {R"("tensor": 0, "memory")", R"("memory")",
           "commands[0]: no tensor, and a command of kind allocate needs one"},
          {R"("memory": "gpu0", "offset": 4096)", R"("offset": 4096)",
           "commands[0]: no memory, and a command of kind allocate needs one"},
          {R"("offset": 4096, )", "", "commands[0]: no offset, and a command of kind allocate needs one"},
          {R"("offset": 4096)", R"("offset": 4097)",
           "commands[0].offset: 4097 is not a multiple of the alignment, 256"},
          {R"("offset": 4096)", R"("offset": 40192)",
           "commands[0].offset: 40192 is beyond the 40000 bytes of memory gpu0"},
          {R"("memory": "gpu0", "offset": 4096)", R"("memory": "host", "offset": 4096)",
           "commands[0].memory: host is without limit, so it has no allocate"},
          {R"("memory": "gpu0", "offset": 4096)", R"("memory": "disk", "offset": 4096)",
           R"(commands[0].memory: "disk" is not a memory of the machine)"},
          {R"("link": "host-gpu0", "offset")", R"("offset")",
           "commands[2]: no link, and a command of kind copy needs one"},
          {R"("link": "host-gpu0", "offset")", R"("link": "host-gpu1", "offset")",
           R"(commands[2].link: "host-gpu1" is not a link of the machine)"},
          {R"("link": "host-gpu0", "offset")", R"("link": "host gpu1", "offset")",
           R"(commands[2].link: "host gpu1")" + no_name},
          {R"("link": "gpu0-host", "after")", R"("link": "gpu0-host", "offset": 0, "after")",
           "commands[3].offset: 0, but memory host is without limit"},
          {R"("piece": 1, )", "", "commands[3]: no piece, and tensor 5 is divided"},
          {R"("form": "top.1", "memory": "gpu0", "after")", R"("form": "top.1", "after")",
           "commands[4]: no memory, and a command of kind release needs one"},
          {R"("operation": 3, "position")", R"("position")",
           "commands[5]: no operation, and a command of kind run needs one"},
          {R"("operation": 3, "position")", R"("operation": 16777216, "position")",
           "commands[5].operation: 16777216 is above 16777215"},
          {R"("position": 9)", R"("position": 16777217)", "commands[5].position: 16777217 is above 16777216"},
          {R"("position": 9)", R"("position": null)", "commands[5].position: null stands where an integer must"},
          {R"("form": "zeros", "engine": "gpu0")", R"("engine": "gpu0")",
           "commands[7]: no form, and a command of kind encode needs one"},
          {R"("form": "zeros", "engine": "gpu0")", R"("form": "plain", "engine": "gpu0")",
           "commands[7].form: not the name of an encoding"},
          {R"("form": "zeros", "engine": "gpu0")", R"("form": "zeros")",
           "commands[7]: no engine, and a command of kind encode needs one"},
          {R"("form": "zeros", "engine": "gpu0")", R"("form": "zeros", "engine": "gpu0.in")",
           "commands[7].engine: not an engine with a memory"},
          {R"("form": "zeros", "engine": "gpu0")", R"("form": "zeros", "engine": "gpu1")",
           R"(commands[7].engine: "gpu1" is not an engine of the machine)"},
          {R"("engine": "gpu0"})", R"("engine": "gpu0", "offset": 3})",
           "commands[8].offset: 3 is not a multiple of the alignment, 256"},
          {R"({"command": 8})", R"({"command": 9})", "commands[0].after[0].command: 9 is not one of the 9 commands"},
          {R"({"command": 8})", "{}", "commands[0].after[0]: a wait is for one operation or one command"},
          {R"({"operation": 9})", R"({"operation": 9, "iteration": -1})",
           "commands[3].after[0]: iteration is for commands, an operation of the iteration before has a negative "
           "number"},
          {R"("before_operation": 5)", R"("before_operation": 33554432)",
           "commands[0].before_operation: 33554432 is above 33554431"},
          {R"("before_operation": 5)", R"("before_operation": "5")",
           "commands[0].before_operation: a string stands where an integer or an array must"},
          {R"("before_operation": 5)", R"("before_operation": {})",
           "commands[0].before_operation: an object stands where an integer or an array must"},
          {R"("before_operation": 5)", R"("before_operation": [5, null])",
           "commands[0].before_operation[1]: null stands where an integer must"},
          {R"("before_operation": 5)", R"("before_operation": [5, -1])",
           "commands[0].before_operation[1]: -1 is below 0"},
          {R"("before_operation": 5)", R"("before_operation": [[5]])",
           "commands[0].before_operation[0]: an array stands where an integer must"},
          {R"("offset": 4096)", R"("offset": 4096, "link": 7)",
           "commands[0].link: a number stands where a string must"},
          // The prediction.
          {R"("iteration_ns": 1)", R"("iteration_ns": -1)", "predicted.iteration_ns: -1 is below 0"},
          {R"({"link": "host-gpu0", "bytes": 4})", R"({"link": "host-gpu9", "bytes": 4})",
           R"(predicted.links[0].link: "host-gpu9" is not a link of the machine)"},
          {R"({"link": "host-gpu0", "bytes": 4})", R"({"link": "gpu0-host", "bytes": 4})",
           "predicted.links[1].link: gpu0-host stands twice"},
          {R"({"link": "host-gpu0", "bytes": 4})", R"({"link": "host-gpu0"})", "predicted.links[0].bytes: missing"},
          {R"({"link": "host-gpu0", "bytes": 4})", R"({"bytes": 4})", "predicted.links[0].link: missing"},
          {R"("memory": "gpu1", "peak_bytes": 6)", R"("memory": "gpu2", "peak_bytes": 6)",
           R"(predicted.memories[1].memory: "gpu2" is not a memory of the machine)"},
          {R"("memory": "gpu1", "peak_bytes": 6)", R"("memory": "gpu0", "peak_bytes": 6)",
           "predicted.memories[1].memory: gpu0 stands twice"},
          {R"("memory": "gpu1", "peak_bytes": 6)", R"("memory": "host", "peak_bytes": 6)",
           "predicted.memories[1].peak_bytes: memory host is without limit, and has no peak"},
          {R"("peak_bytes": 6)", R"("peak_bytes": 9223372036854775808)",
           "predicted.memories[1].peak_bytes: 9223372036854775808 is above 9223372036854775807"},
          {R"("peak_bytes": 6)", R"("other": [[[[[[[[[[[[[[)",
           "nested deeper than 16 at byte " + std::to_string(plan_2_text.find(R"("peak_bytes": 6)") + 21) +
               ", in or after predicted.memories[1]"},
      },
      read_any_plan_2);
}

TEST_CASE("a plan of version 2 is not one of version 1") {
  const auto plan = swapmm::read_plan(plan_2_text);
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.problem().message == "version: 2 is unknown, only 1 is known");
}

TEST_CASE("memory reserved for commands of version 2 that do not come is given back") {
  const v2::Plan plan = good_plan_2(test::changed(
      plan_2_text, {R"("predicted")", R"("other": ")" + std::string(1U << 20U, 'x') + R"(", "predicted")", ""}));
  CHECK(plan.commands.capacity() < 100);
  CHECK(plan.initial.capacity() < 100);
  CHECK(plan.pieces.capacity() < 100);
}

TEST_CASE(
    "the machine in a plan of version 2 is of version 2, and a memory without limit has no peak, not even of a byte") {
  const auto said = [](const std::string& version, const std::string& predicted) {
    const auto plan =
        v2::read_plan(R"({"format": "swapmm-plan", "version": 2, "trace": ")" + std::string(64, 'a') +
                      R"(", "planner": "p", "machine": {)" + version +
                      R"("name": "m", "memories": [{"name": "a", "bytes": 10}, {"name": "h", "bytes": null}],
 "engines": [{"name": "a", "memory": "a"}], "links": [], "host": "h"}, "initial": [], "commands": [], "predicted": {)" +
                      predicted + "}}");
    return plan ? std::string() : plan.problem().message;
  };
  CHECK(said("", "").empty());
  CHECK(said(R"("version": 2, )", "").empty());
  CHECK(said(R"("version": 1, )", "") == "machine.version: 1 is unknown, only 2 is known");
  CHECK(said(R"("version": 3, )", "") == "machine.version: 3 is unknown, only 2 is known");
  CHECK(said("", R"("memories": [{"memory": "h", "peak_bytes": 0}])").empty());
  CHECK(said("", R"("memories": [{"memory": "h", "peak_bytes": 1}])") ==
        "predicted.memories[0].peak_bytes: memory h is without limit, and has no peak");
}
