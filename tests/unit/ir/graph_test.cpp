// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/dot.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/ir/graph.hpp>

#include "test_data.hpp"

using namespace swapmm;

namespace {

TensorId t(std::uint32_t id) { return TensorId{id}; }
OperationId o(std::uint32_t id) { return OperationId{id}; }
DataId d(std::uint32_t id) { return DataId{id}; }

/// One step of training: forward reads weights and images, backward makes the gradient, the step updates the weights.
Trace training_step() {
  Trace trace;
  trace.name = "step";
  trace.tensors = {{"weights", Bytes{100}, TensorKind::persistent, 0},
                   {"images", Bytes{50}, TensorKind::input, 0},
                   {"gradient", Bytes{100}, TensorKind::transient, 0}};
  trace.operations = {{"backward", std::chrono::nanoseconds{7}, {t(0), t(1)}, {t(2)}, {}},
                      {"step", std::chrono::nanoseconds{3}, {t(2)}, {}, {t(0)}}};
  return trace;
}

std::string dot(const Trace& trace) {
  std::ostringstream out;
  write_dot(out, trace, make_graph(trace));
  return out.str();
}

}  // namespace

TEST_CASE("an update ends a value and begins the tensor's next version") {
  const Graph graph = make_graph(training_step());
  REQUIRE(graph.data.size() == 4);
  CHECK(graph.data[0] == DataNode{t(0), 0, std::nullopt, {o(0), o(1)}, {}, std::nullopt});
  CHECK(graph.data[1] == DataNode{t(1), 0, std::nullopt, {o(0)}, {}, std::nullopt});
  CHECK(graph.data[2] == DataNode{t(2), 0, o(0), {o(1)}, {}, std::nullopt});
  CHECK(graph.data[3] == DataNode{t(0), 1, o(1), {}, {}, d(0)});
  REQUIRE(graph.operations.size() == 2);
  CHECK(graph.operations[0] == OperationNode{{d(0), d(1)}, {d(2)}});
  CHECK(graph.operations[1] == OperationNode{{d(2), d(0)}, {d(3)}});
}

TEST_CASE("a whole write begins a version that does not come from the old one") {
  Trace trace;
  trace.tensors = {{"a", Bytes{1}, TensorKind::transient, 0}};
  trace.operations.resize(3);
  trace.operations[0].writes = {t(0)};
  trace.operations[1].reads = {t(0)};
  trace.operations[2].writes = {t(0)};
  const Graph graph = make_graph(trace);
  REQUIRE(graph.data.size() == 2);
  CHECK(graph.data[0] == DataNode{t(0), 0, o(0), {o(1)}, {}, std::nullopt});
  CHECK(graph.data[1] == DataNode{t(0), 1, o(2), {}, {}, std::nullopt});
}

TEST_CASE("a persistent value that nothing changes is carried to itself") {
  Trace trace;
  trace.tensors = {{"a", Bytes{1}, TensorKind::persistent, 0}};
  trace.operations.resize(1);
  trace.operations[0].reads = {t(0)};
  CHECK(make_graph(trace).data == std::vector{DataNode{t(0), 0, std::nullopt, {o(0)}, {}, d(0)}});
}

TEST_CASE("a persistent value that the next iteration overwrites is not carried") {
  Trace trace;
  trace.tensors = {{"a", Bytes{1}, TensorKind::persistent, 0}};
  trace.operations.resize(2);
  trace.operations[1].writes = {t(0)};
  CHECK(make_graph(trace).data == std::vector{DataNode{t(0), 0, o(1), {}, {}, std::nullopt}});

  // The host wants the value of the iteration before: now there is one.
  trace.host_reads = {{t(0), o(0)}};
  CHECK(make_graph(trace).data ==
        std::vector{DataNode{t(0), 0, std::nullopt, {}, {o(0)}, std::nullopt}, DataNode{t(0), 1, o(1), {}, {}, d(0)}});
}

TEST_CASE("a host read belongs to the value there is after its operation") {
  Trace trace = training_step();
  trace.host_reads = {{t(0), o(1)}, {t(0), o(0)}, {t(2), o(1)}};
  const Graph graph = make_graph(trace);
  CHECK(graph.data[0].host_reads == std::vector{o(0)});
  CHECK(graph.data[3].host_reads == std::vector{o(1)});
  CHECK(graph.data[2].host_reads == std::vector{o(1)});
}

TEST_CASE("in the graph of a real training step every edge leads forward and joins both ways") {
  std::ifstream file(SWAPMM_TEST_DATA "/traces/g10/VIT_b512.json");
  const auto trace = read_trace(file);
  REQUIRE_MESSAGE(trace.has_value(), trace.problem().message);
  const Graph graph = make_graph(*trace);
  std::size_t takes = 0;
  std::size_t gives = 0;
  std::size_t made = 0;
  std::size_t used = 0;
  for (std::size_t i = 0; i < graph.operations.size(); ++i) {
    const TraceOperation& operation = trace->operations[i];
    CHECK(graph.operations[i].takes.size() == operation.reads.size() + operation.updates.size());
    CHECK(graph.operations[i].gives.size() == operation.writes.size() + operation.updates.size());
    takes += graph.operations[i].takes.size();
    gives += graph.operations[i].gives.size();
    for (const DataId id : graph.operations[i].gives) CHECK(graph.data[index(id)].made_by == id_at<OperationId>(i));
    for (const DataId id : graph.operations[i].takes) {
      const auto& users = graph.data[index(id)].used_by;
      CHECK(std::count(users.begin(), users.end(), id_at<OperationId>(i)) == 1);
    }
  }
  for (const DataNode& node : graph.data) {
    made += node.made_by.has_value() ? 1U : 0U;
    used += node.used_by.size();
    for (const OperationId user : node.used_by) CHECK((!node.made_by || index(*node.made_by) < index(user)));
  }
  CHECK(gives == made);
  CHECK(takes == used);
}

TEST_CASE("the picture of a graph has a box per operation, an ellipse per value and an edge per flow") {
  Trace trace = training_step();
  trace.host_reads = {{t(2), o(1)}};
  CHECK(dot(trace) == R"(digraph "step" {
  operation0 [shape=box, label="0 backward\n7 ns"];
  operation1 [shape=box, label="1 step\n3 ns"];
  data0 [shape=ellipse, label="weights v0\n100 bytes, persistent"];
  data1 [shape=ellipse, label="images v0\n50 bytes, input"];
  data2 [shape=ellipse, label="gradient v0\n100 bytes, transient\nread by the host after 1"];
  data3 [shape=ellipse, label="weights v1\n100 bytes, persistent"];
  data0 -> operation0;
  data1 -> operation0;
  operation0 -> data2;
  data2 -> operation1;
  data0 -> operation1;
  operation1 -> data3;
  data3 -> data0 [style=dashed, constraint=false];
}
)");
}

TEST_CASE("no name can leave its label") {
  Trace trace = training_step();
  trace.name = "\"; evil [label=\"";
  trace.operations[0].name = "a\"]; b -> c; [\\";
  trace.operations[1].name = std::string("nul\0 newline\n tab\t del\x7F", 23);
  trace.tensors[0].name = "&lt;\\N\\";
  trace.tensors[1].name = "bad \xFF\xC0 good \xC3\xA4";
  const std::string text = dot(trace);
  CHECK(text.find(R"(digraph "\"; evil [label=\"" {)") == 0);
  CHECK(text.find(R"(label="0 a\"]; b -> c; [\\\n7 ns"])") != std::string::npos);
  CHECK(text.find(R"(label="1 nul\\x00 newline\\x0A tab\\x09 del\\x7F\n3 ns"])") != std::string::npos);
  CHECK(text.find(R"(label="&amp;lt;\\N\\ v0\n100 bytes)") != std::string::npos);
  CHECK(text.find("label=\"bad \xEF\xBF\xBD\xEF\xBF\xBD good \xC3\xA4 v0\\n") != std::string::npos);
}
