// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <swapmm/ir/graph.hpp>
#include <swapmm/plan/changed_trace.hpp>
#include <swapmm/plan/planners.hpp>

#include "support/plain_traces.hpp"

using namespace swapmm;
using test::machine_of;
using test::plan_of;

namespace {

constexpr TensorId weight{0}, batch{1}, made{2}, large{3};

std::vector<std::string> names(const Trace& trace) {
  std::vector<std::string> all;
  for (const TraceOperation& operation : trace.operations) all.push_back(operation.name);
  return all;
}

/// A weight, an input, and a value that goes while something large is there.
Trace step() {
  Trace trace;
  trace.name = "step";
  trace.tensors = {{"weight", Bytes{30}, TensorKind::persistent, 0},
                   {"batch", Bytes{10}, TensorKind::input, 0},
                   {"made", Bytes{30}, TensorKind::transient, 0},
                   {"large", Bytes{90}, TensorKind::transient, 0}};
  trace.operations = {{"forward", std::chrono::nanoseconds{100}, {weight, batch}, {made}, {}},
                      {"crowd", std::chrono::nanoseconds{100}, {}, {large}, {}},
                      {"rest", std::chrono::nanoseconds{100}, {}, {}, {}},
                      {"learn", std::chrono::nanoseconds{100}, {made}, {}, {weight}}};
  trace.host_reads = {{weight, OperationId{3}}};
  return trace;
}

}  // namespace

TEST_CASE("a plan's moves become operations, between those that they come between") {
  const Trace trace = step();
  const Plan plan = plan_of("best", trace, machine_of(100));
  const Trace changed = changed_trace(trace, plan);
  REQUIRE(check_trace(changed));
  const std::vector<std::string> all = names(changed);
  const auto place = [&](const std::string& name) {
    const auto found = std::find(all.begin(), all.end(), name);
    REQUIRE_MESSAGE(found != all.end(), name);
    return found - all.begin();
  };
  CHECK(place("forward") < place("reduce made"));
  CHECK(place("reduce made") < place("crowd"));
  CHECK(place("crowd") < place("restore made"));
  CHECK(place("restore made") < place("learn"));
  CHECK(place("restore weight") < place("learn"));
  CHECK(place("learn") < place("reduce weight"));                          // for the host, and for the next iteration
  CHECK(std::find(all.begin(), all.end(), "restore batch") == all.end());  // the host gives it
  CHECK(changed.operations[static_cast<std::size_t>(place("reduce made"))].duration.count() == 30);
  REQUIRE(changed.host_reads.size() == 1);
  CHECK(names(changed)[index(changed.host_reads[0].after_operation)] == "reduce weight");
  CHECK(changed.tensors[index(changed.host_reads[0].tensor)].name == "weight, reduced");
  // What a move makes, the next one needs.
  const Graph graph = make_graph(changed);
  const DataNode& reduced =
      graph.data[index(graph.operations[static_cast<std::size_t>(place("reduce made"))].gives[0])];
  CHECK(changed.tensors[index(reduced.tensor)].name == "made, reduced");
  CHECK(changed.tensors[index(reduced.tensor)].bytes == Bytes{0});
  REQUIRE(reduced.used_by.size() == 1);
  CHECK(index(reduced.used_by[0]) == static_cast<std::size_t>(place("restore made")));
}

TEST_CASE("a plan without moves changes nothing") {
  Trace trace = step();
  trace.host_reads.clear();
  CHECK(changed_trace(trace, plan_of("best", trace, machine_of(1000))) == trace);
}
