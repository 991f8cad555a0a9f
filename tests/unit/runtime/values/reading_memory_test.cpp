// SPDX-License-Identifier: Apache-2.0
// What reading a text takes in memory, however the text is made.
#include <doctest/doctest.h>

#include <bit>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>

#include "support/failing_new.hpp"

using namespace swapmm;

namespace {

constexpr std::size_t text_bytes = 1'000'000;
constexpr std::uint64_t any_read = 200'000;  // the description of the format, and the buffer of a stream

/// `begin`, then `element(i)` for i from 0 on with commas between, then `end`. The elements are one more than a power
/// of two: a vector that doubles has just done so, and holds everything twice.
std::string filled(const std::string& begin, const std::function<std::string(std::size_t)>& element,
                   const std::string& end) {
  std::string text = begin;
  std::size_t count = 0;
  for (; text.size() < text_bytes || !std::has_single_bit(count - 1); ++count) {
    text += (count > 0 ? "," : "") + element(count);
  }
  return text + end;
}

std::string filled(const std::string& begin, const std::string& element, const std::string& end) {
  return filled(
      begin, [&](std::size_t) { return element; }, end);
}

/// Reads from memory and from a stream, and expects the peak within four times the text. `message`: of the error; empty
/// for a text that is good.
template <class Read>
void expect_frugal(const std::string& what, const std::string& text, const std::string& message, Read read) {
  CAPTURE(what);
  const auto check = [&](auto&& source, const std::string& from) {
    CAPTURE(from);
    const test::PeakMemory memory;
    const auto outcome = read(source);
    const std::uint64_t peak = memory.bytes();
    CHECK(message == (outcome ? "" : outcome.problem().message.substr(0, message.size())));
    CHECK(outcome.has_value() == message.empty());
    CHECK(peak < text.size() * 9 / 2 + any_read);
    // Where it is far below, nothing was measured.
    if (outcome) CHECK(peak > 1000);
  };
  check(std::string_view(text), "memory");
  std::istringstream in(text);
  check(in, "stream");
}

const std::string trace_head = R"({"format":"swapmm-trace","version":1,"name":"",)";
const std::string one_operation = R"("operations":[{"name":"","duration_ns":0}])";
const std::string machine_begin =
    R"({"name":"m","device_budget_bytes":4096,"alignment_bytes":1,"h2d":{"bytes_per_second":1000,"latency_ns":0},)"
    R"("d2h":{"bytes_per_second":1000,"latency_ns":0},"duplex":"full")";
const std::string plan_head = R"({"format":"swapmm-plan","version":1,"trace":")" + std::string(64, 'a') +
                              R"(","planner":"","machine":)" + machine_begin + "},";
const std::string prediction =
    R"("predicted":{"iteration_ns":1,"compute_ns":2,"lower_bound_ns":3,"h2d_bytes":4,"d2h_bytes":5,"peak_bytes":6}})";

const auto any_trace = [](auto&& source) { return read_trace(source); };
const auto any_machine = [](auto&& source) { return read_machine(source); };
const auto any_plan = [](auto&& source) { return read_plan(source); };

/// Hostile texts of no format in particular: what each is, the text behind `head`, and how the error begins.
struct Hostile {
  std::string what;
  std::string text;
  std::string message;
};

std::vector<Hostile> hostile(const std::string& head) {
  const std::string good_until_its_end = "not JSON: incomplete JSON at byte";
  return {
      {"deep nesting of arrays", head + "\"x\":" + std::string(text_bytes, '['), "nested deeper than 16"},
      {"deep nesting of objects", filled(head + "\"x\":{", R"("y":[{"z":0)", ""), "nested deeper than 16"},
      {"a long string", head + "\"x\":\"" + std::string(text_bytes, 'x') + "\"", good_until_its_end},
      {"a long string of escapes", filled(head + "\"x\":\"", "\\u00e4", "\""), good_until_its_end},
      {"a long name", head + "\"name\":\"" + std::string(text_bytes, 'x') + "\"", ""},
      {"a long key", head + "\"" + std::string(text_bytes, 'x') + "\":0", good_until_its_end},
      {"a long number", head + "\"x\":1" + std::string(text_bytes, '0'), good_until_its_end},
      {"a long fraction", head + "\"x\":0." + std::string(text_bytes, '1'), good_until_its_end},
      {"many short keys", filled(head, R"("":0)", ""), good_until_its_end},
      {"many keys, each another",
       filled(
           head, [](std::size_t i) { return '"' + std::to_string(i) + "\":0"; }, ""),
       good_until_its_end},
      {"many small numbers", filled(head + "\"x\":[", "0", "]"), good_until_its_end},
      {"many small objects", filled(head + "\"x\":[", "{}", "]"), good_until_its_end},
      {"many blanks", head + std::string(text_bytes, ' '), good_until_its_end},
  };
}

}  // namespace

TEST_CASE("peak memory counts what is held at a time, and of large blocks what was written") {
  const auto small = [](std::size_t count) { return std::vector<char>(count, 'x'); };
  {
    const test::PeakMemory memory;
    for (int i = 0; i < 10; ++i) CHECK(small(1000).size() == 1000);
    CHECK(memory.bytes() >= 1000);
    CHECK(memory.bytes() < 1200);
  }
  {
    const test::PeakMemory memory;
    std::vector<std::vector<char>> kept(10);
    for (auto& one : kept) one = small(1000);
    CHECK(memory.bytes() >= 10'000);
    CHECK(memory.bytes() < 11'000);
  }
  const test::PeakMemory memory;
  std::vector<char> large;
  large.reserve(10'000'000);
  CHECK(memory.bytes() < 10'000);
  large.resize(1'000'000);  // of zeros
  CHECK(memory.bytes() >= 990'000);
  CHECK(memory.bytes() < 1'010'000);
  std::vector<char>().swap(large);
  CHECK(small(1'000'000).size() == 1'000'000);
  CHECK(memory.bytes() < 1'010'000);
}

TEST_CASE("a good trace takes at most four times its text") {
  const auto tensor = [](std::size_t i) {
    return R"({"name": "layer )" + std::to_string(i) + R"(", "bytes": )" + std::to_string(4096 * i) +
           R"(, "kind": "persistent"})";
  };
  const auto operation = [](std::size_t i) {
    const std::string a = std::to_string(i % 1000);
    const std::string b = std::to_string(1000 + i % 1000);
    return R"({"name": "forward )" + a + R"(", "duration_ns": 1234, "reads": [)" + a + "], \"updates\": [" + b + "]}";
  };
  std::string tensors = "\"tensors\":[";
  for (std::size_t i = 0; i < 2000; ++i) tensors += (i > 0 ? "," : "") + tensor(i);
  tensors += "],";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"as programs are", filled(trace_head + tensors + "\"operations\":[", operation, "]}")},
      {"the shortest operations",
       filled(trace_head + R"("tensors":[],"operations":[)", R"({"name":"","duration_ns":0})", "]}")},
      {"the shortest tensors",
       filled(trace_head + one_operation + ",\"tensors\":[", R"({"name":"","bytes":0,"kind":"input"})", "]}")},
      {"the shortest host reads",
       filled(trace_head + tensors + one_operation + ",\"host_reads\":[", R"({"tensor":0,"after_operation":0})", "]}")},
      {"the shortest bundles", filled(trace_head + tensors + "\"operations\":[",
                                      R"({"name":"","duration_ns":0,"reads":[0],"writes":[1],"updates":[2]})", "]}")},
      {"tensors with names that need memory of their own",
       filled(trace_head + one_operation + ",\"tensors\":[", R"({"name":"0123456789abcdef","bytes":0,"kind":"input"})",
              "]}")},
  };
  for (const auto& [what, text] : table) expect_frugal(what, text, "", any_trace);
}

TEST_CASE("a bad trace takes at most four times its text") {
  for (const Hostile& one : hostile(trace_head)) {
    expect_frugal(one.what, one.text, one.what == "a long name" ? "name: stands twice in one object" : one.message,
                  any_trace);
  }
  const std::string bundle = trace_head + R"("tensors":[],"operations":[{"name":"","duration_ns":0,"reads":[)";
  expect_frugal("one id, again and again", filled(bundle, "0", "]}]}"),
                "operations[0].reads[0]: 0 is not the id of one of the 0 tensors", any_trace);
  expect_frugal("ids, each another",
                filled(
                    bundle, [](std::size_t i) { return std::to_string(i); }, "]}]}"),
                "operations[0].reads[0]: 0 is not the id of one of the 0 tensors", any_trace);
  expect_frugal("tensors, then the end",
                filled(trace_head + "\"tensors\":[", R"({"name":"","bytes":0,"kind":"input"})", ""),
                "not JSON: incomplete JSON at byte", any_trace);
  expect_frugal("a billion tensors announced",
                trace_head + R"("tensor_count":1000000000,"tensors":[],"operations":[]})",
                "operations: a trace has at least one", any_trace);
}

TEST_CASE("a machine takes at most four times its text, good or bad") {
  for (const Hostile& one : hostile(R"({"format":"swapmm-machine","version":1,"name":"",)")) {
    expect_frugal(one.what, one.text, one.what == "a long name" ? "name: stands twice in one object" : one.message,
                  any_machine);
  }
  expect_frugal(
      "unknown fields",
      filled(R"({"format":"swapmm-machine","version":1,)" + machine_begin.substr(1) + ",", R"("x":[0,0])", "}"), "",
      any_machine);
}

TEST_CASE("a plan takes at most four times its text, good or bad") {
  const std::string commands = plan_head + R"("initial":[],"commands":[)";
  const std::string end = "]," + prediction;
  const std::vector<std::pair<std::string, std::string>> table = {
      {"as plans are", filled(
                           commands,
                           [](std::size_t i) {
                             return R"({"kind": "swap_in", "tensor": )" + std::to_string(i % 1000) +
                                    R"(, "offset": 1024, "after": [{"operation": )" + std::to_string(i % 700) +
                                    R"(}, {"command": 3}], "before_operation": 9})";
                           },
                           end)},
      {"the shortest commands", filled(commands, R"({"kind":"release","tensor":0})", end)},
      {"the shortest waits",
       filled(commands + R"({"kind":"release","tensor":0,"after":[)", R"({"command":0})", "]}" + end)},
      {"commands with one wait", filled(commands, R"({"kind":"release","tensor":0,"after":[{"command":0}]})", end)},
      {"the most residents",
       filled(
           plan_head + R"("initial":[)",
           [](std::size_t i) { return R"({"tensor":)" + std::to_string(i) + R"(,"offset":0,"host_valid":true})"; },
           R"(],"commands":[],)" + prediction)},
  };
  for (const auto& [what, text] : table) expect_frugal(what, text, "", any_plan);
  for (const Hostile& one : hostile(plan_head)) {
    expect_frugal(one.what, one.text, one.what == "a long name" ? "not JSON: incomplete JSON" : one.message, any_plan);
  }
  expect_frugal("one resident, again and again",
                filled(plan_head + R"("initial":[)", R"({"tensor":0,"offset":0,"host_valid":true})",
                       R"(],"commands":[],)" + prediction),
                "initial[1].tensor: tensor 0 stands twice", any_plan);
}
