// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "program.hpp"

// Traces of version 2 with a machine of version 1, whose figures are options, and --ways.

using namespace swapmm::test;
using boost::json::object;

namespace {

/// "a" is made, used, and used again when two others have had its place. It can be made again in 100 ns, and has a
/// form.
constexpr std::string_view program = R"({"format": "swapmm-trace", "version": 2, "name": "ways",
  "tensors": [{"name": "x", "bytes": 10, "kind": "persistent"},
              {"name": "a", "bytes": 1000, "kind": "transient", FORMS},
              {"name": "b", "bytes": 1000, "kind": "transient"},
              {"name": "c", "bytes": 1000, "kind": "transient"}],
  "operations": [{"name": "make a", "duration_ns": 100, REPLAYABLE, "reads": [0], "writes": [1]},
                 {"name": "a to b", "duration_ns": 1000, "reads": [1], "writes": [2]},
                 {"name": "b to c", "duration_ns": 1000, "reads": [2], "writes": [3]},
                 {"name": "c to b", "duration_ns": 1000, "reads": [3], "writes": [2]},
                 {"name": "a and b", "duration_ns": 1000, "reads": [1, 2]}],
  "host_reads": []})";

constexpr std::string_view form =
    R"("forms": [{"name": "zeros", "bytes": 500, "expected_bytes": 100, "encode_ns": 7, "decode_ns": 5}])";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

std::string trace_file(bool replayable, bool coded) {
  std::string text(program);
  text = replaced(text, "FORMS", coded ? form : R"("forms": [])");
  text = replaced(text, "REPLAYABLE", replayable ? R"("replayable": true)" : R"("replayable": false)");
  const std::string file = scratch_file("ways.json");
  write_contents(file, text);
  return file;
}

std::vector<std::string> with_room_for_two(std::vector<std::string> arguments) {
  for (const char* word : {"--budget", "2700", "--bandwidth", "100MB/s", "--alignment", "1"})
    arguments.emplace_back(word);
  return arguments;
}

}  // namespace

TEST_CASE("a plan lets an operation run again where that is allowed, and says what it saves") {
  const std::string trace = trace_file(true, false);
  const object mixed = run_json(with_room_for_two({"plan", trace}));
  CHECK(number(mixed, "ways.again") == 1);
  CHECK(number(mixed, "ways.again_ns") == 100);
  CHECK(number(mixed, "ways.again_bytes") == 1000);
  CHECK(number(mixed, "predicted.iteration_ns") == 4200);
  const object copies = run_json(with_room_for_two({"plan", trace, "--ways", "swap"}));
  CHECK(number(copies, "ways.again") == 0);
  CHECK(number(copies, "predicted.iteration_ns") > 10'000);  // 10 us each way
  const Outcome said = run_program(with_room_for_two({"plan", trace}));
  CHECK(said.out.find("1 operation runs again, 2.4 % of the computation, instead of copies of 1.00 KB") !=
        std::string::npos);
}

TEST_CASE("a plan keeps values in their forms where that is allowed, and its file is of version 2") {
  const std::string trace = trace_file(false, true);
  const std::string file = scratch_file("ways_plan.json");
  const object coded = run_json(with_room_for_two({"plan", trace, "-o", file}));
  CHECK(number(coded, "ways.decoded") == 1);
  CHECK(number(coded, "ways.coding_ns") == 12);
  CHECK(number(coded, "predicted.iteration_ns") == 4112);
  CHECK(run_program({"check", trace, file}).code == 0);
  CHECK(contents(file).find("\"encode\"") != std::string::npos);
  const object copies = run_json(with_room_for_two({"plan", trace, "--ways", "swap,recompute,pieces"}));
  CHECK(number(copies, "ways.decoded") == 0);
}

TEST_CASE("fit and compare know the ways, too") {
  const std::string trace = trace_file(true, true);
  const object fits = run_json(with_room_for_two({"fit", trace, "--this-budget-only"}));
  CHECK(number(fits, "ways.decoded") == 1);  // the cheapest of all ways
  const object again = run_json(with_room_for_two({"fit", trace, "--this-budget-only", "--ways", "swap,recompute"}));
  CHECK(number(again, "ways.again") == 1);
  const std::vector<std::string> compare{"compare", trace,         "--budgets", "2700",       "--bandwidths",
                                         "100MB/s", "--alignment", "1",         "--planners", "belady,best"};
  const object rows = run_json(compare);
  const object& belady = rows.at("rows").at(0).as_object();
  const object& best = rows.at("rows").at(1).as_object();
  CHECK(number(best, "predicted.iteration_ns") == 4112);
  CHECK(number(belady, "predicted.iteration_ns") > 10'000);
  CHECK(number(best, "gap") >= 0);
  std::vector<std::string> swapping = compare;
  swapping.insert(swapping.end(), {"--ways", "swap"});
  CHECK(number(run_json(swapping).at("rows").at(1).as_object(), "predicted.iteration_ns") > 10'000);
}

TEST_CASE("the largest bundle has the pieces that an operation accesses, if pieces may be used") {
  const std::string trace = scratch_file("ways_pieces.json");
  write_contents(trace, R"({"format": "swapmm-trace", "version": 2, "name": "slabs",
    "tensors": [{"name": "volume", "bytes": 4000, "kind": "persistent"}, {"name": "x", "bytes": 500, "kind": "persistent"}],
    "operations": [{"name": "first", "duration_ns": 100, "in_pieces": true, "reads": [1],
                    "updates": [{"tensor": 0, "first": 0, "bytes": 2000}]},
                   {"name": "last", "duration_ns": 100, "in_pieces": true, "reads": [1],
                    "updates": [{"tensor": 0, "first": 2000, "bytes": 2000}]}],
    "host_reads": []})");
  const auto fit = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"fit", trace, "--this-budget-only"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(with_room_for_two(arguments));
  };
  CHECK(fit({}).out.find("2.50 KB: no device works with less") != std::string::npos);
  CHECK(fit({}).code == 0);
  CHECK(fit({"--ways", "swap,recompute"}).out.find("4.50 KB: no device works with less") != std::string::npos);
  CHECK(fit({"--planner", "on-demand"}).out.find("4.50 KB: no device works with less") != std::string::npos);
}

TEST_CASE("ways that there are not, or that cannot do without copies, are refused") {
  const std::string trace = trace_file(true, true);
  check_refused(with_room_for_two({"plan", trace, "--ways", "swap,guess"}), 2, {"guess", "recompute"});
  check_refused(with_room_for_two({"fit", trace, "--ways", "recompute"}), 2, {"swap is missing"});
  check_refused(with_room_for_two({"plan", trace, "--planner", "belady", "--changed", "-"}), 2, {"--changed"});
}

TEST_CASE("the changed trace has what runs again, and what is encoded and decoded, as operations") {
  const std::string changed = scratch_file("ways_changed.json");
  const std::string again = trace_file(true, false);
  CHECK(run_program(with_room_for_two({"plan", again, "--changed", changed})).code == 0);
  const std::string text = contents(changed);
  CHECK(text.find("make a") != text.rfind("make a"));
  CHECK(run_program({"show", changed, "--dot", scratch_file("ways.dot")}).code == 0);
  const std::string coded = trace_file(false, true);
  CHECK(run_program(with_room_for_two({"plan", coded, "--changed", changed})).code == 0);
  for (const char* part : {"encode a zeros", "decode a zeros"}) {
    CAPTURE(part);
    CHECK(contents(changed).find(part) != std::string::npos);
  }
}
