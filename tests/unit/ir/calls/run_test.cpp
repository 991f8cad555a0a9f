// SPDX-License-Identifier: Apache-2.0
// What calls do with memory, and the program graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <swapmm/ir/calls/program_graph.hpp>
#include <swapmm/ir/calls/run.hpp>

#include "support/call_logs.hpp"

using namespace swapmm;
using namespace swapmm::test;
using calls::CallKind;
using calls::ObjectKind;
using calls::OrderEdge;

namespace {

calls::Run resolved(const LogMaker& maker) {
  Result<calls::Run> run = calls::resolve(maker.log);
  REQUIRE(run.has_value());
  return *std::move(run);
}

std::string refused(const LogMaker& maker) {
  const Result<calls::Run> run = calls::resolve(maker.log);
  return run ? "" : run.problem().message;
}

/// "from>to" of each edge of a kind.
std::vector<std::string> edges(const calls::ProgramGraph& graph, OrderEdge::Reason reason) {
  std::vector<std::string> all;
  for (const OrderEdge& edge : graph.order) {
    if (edge.reason == reason) all.push_back(std::to_string(index(edge.from)) + ">" + std::to_string(index(edge.to)));
  }
  return all;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("a part of a buffer is a range of its storage") {
  LogMaker maker;
  const auto buffer = maker.buffer(1000);
  const auto part = maker.part(buffer, 100, 200);
  maker.write(part, 10, 20);
  maker.write(buffer, 0, 1000);
  const calls::Run run = resolved(maker);
  REQUIRE(run.storages.size() == 1);
  REQUIRE(run.operations.size() == 2);
  const calls::StorageAccess& access = run.operations[0].accesses[0];
  CHECK(access.storage == 0);
  CHECK(access.offset == 110);
  CHECK(access.bytes == 20);
  CHECK_FALSE(access.whole);
  CHECK(run.operations[1].accesses[0].whole);
  CHECK(combined(run.operations[0])[0].access == Access::update);
  CHECK(combined(run.operations[1])[0].access == Access::write);
}

TEST_CASE("a storage is released with the last reference to it and to its parts") {
  LogMaker maker;
  const auto buffer = maker.buffer(1000);
  const auto part = maker.part(buffer, 0, 10);
  maker.add(CallKind::retain, "retain").object = buffer;
  maker.release(buffer);
  maker.release(buffer);
  maker.read(part, 0, 10);
  maker.release(part);
  const calls::Run run = resolved(maker);
  CHECK(run.storages[0].released == std::size_t{6});
}

TEST_CASE("calls that are not possible are told") {
  LogMaker beyond;
  const auto buffer = beyond.buffer(100);
  beyond.read(buffer, 90, 11);
  CHECK(refused(beyond) == "call 1 (read) goes beyond the end of object 1");
  beyond.log.calls.back().status = -30;  // the API refused it
  CHECK(refused(beyond).empty());
  LogMaker unknown;
  unknown.read(5, 0, 1);
  CHECK(refused(unknown) == "call 0 (read) names object 5, which is no memory");
  LogMaker part;
  part.part(part.buffer(10), 5, 6);
  CHECK(refused(part) == "call 1 (create) makes a part beyond its end");
  LogMaker twice;
  twice.buffer(10);
  twice.buffer(10);
  twice.log.calls.back().object = 1;
  CHECK(refused(twice) == "call 1 (create) makes an object that is there already");
}

TEST_CASE("a read and a write of one storage are an update") {
  LogMaker maker;
  const auto buffer = maker.buffer(100);
  maker.launch("k",
               {LogMaker::operand(buffer, Access::read, 0, 100), LogMaker::operand(buffer, Access::write, 0, 100)});
  CHECK(combined(resolved(maker).operations[0]).size() == 1);
  CHECK(combined(resolved(maker).operations[0])[0].access == Access::update);
}

TEST_CASE("tokens leave handles out, and nothing else") {
  LogMaker maker;
  const auto a = maker.buffer(100);
  const auto b = maker.buffer(100);
  const auto c = maker.buffer(200);
  const auto reads = [](calls::Object object, std::uint64_t bytes) {
    return LogMaker::operand(object, Access::read, 0, bytes);
  };
  maker.launch("k", {reads(a, 100), reads(b, 100)});
  maker.launch("k", {reads(b, 100), reads(a, 100)});
  maker.launch("k", {reads(a, 100), reads(a, 100)});               // aliased
  maker.launch("k", {reads(a, 100), reads(c, 200)});               // another size
  maker.launch("l", {reads(a, 100), reads(b, 100)});               // another kernel
  maker.launch("k", {reads(a, 100), reads(b, 100)}).global = {2};  // another range
  maker.launch("k", {LogMaker::operand(a, Access::update, 0, 100), reads(b, 100)});
  const calls::Run run = resolved(maker);
  CHECK(run.operations[0].token == run.operations[1].token);
  for (std::size_t i = 2; i < 7; ++i) {
    INFO(i);
    CHECK(run.operations[0].token != run.operations[i].token);
  }
}

TEST_CASE("kernels of one name from two programs have two tokens") {
  LogMaker maker;
  for (const char digest : {'1', '2'}) {
    const auto program = maker.make(ObjectKind::program);
    maker.log.calls.back().source_digest = std::string(32, digest);
    const auto kernel = maker.make(ObjectKind::kernel, program);
    maker.launch("k", {}).object = kernel;
    const auto clone = maker.make(ObjectKind::kernel, kernel);
    maker.launch("k", {}).object = clone;
  }
  const calls::Run run = resolved(maker);
  CHECK(run.operations[0].token == run.operations[1].token);
  CHECK(run.operations[0].token != run.operations[2].token);
  CHECK(run.operations[2].token == run.operations[3].token);
}

TEST_CASE("values are versions: an update makes the next one, and a release ends the last") {
  LogMaker maker;
  const auto a = maker.buffer(100);
  const auto b = maker.buffer(100);
  maker.write(a, 0, 100);  // 0: a v0
  maker.launch("k", {LogMaker::operand(a, Access::read, 0, 100),
                     LogMaker::operand(b, Access::update, 0, 100)});  // 1: b v0 -> v1
  maker.write(a, 0, 50);                                              // 2: a v0 -> v1
  maker.read(b, 0, 100);                                              // 3
  maker.release(a);
  const calls::Run run = resolved(maker);
  const calls::ProgramGraph graph = make_program_graph(maker.log, run);
  const auto version = [&](DataId id) {
    const DataNode& node = graph.flow.data[index(id)];
    const calls::Place& place = graph.places[index(node.tensor)];
    return (place.is_host ? "h" : place.storage == 0 ? "a" : "b") + std::to_string(node.version);
  };
  const auto names = [&](const std::vector<DataId>& ids) {
    Strings all;
    for (const DataId id : ids) all.push_back(version(id));
    return all;
  };
  REQUIRE(graph.flow.operations.size() == 4);
  CHECK(names(graph.flow.operations[0].takes) == Strings{"h0"});
  CHECK(names(graph.flow.operations[0].gives) == Strings{"a0"});
  CHECK(names(graph.flow.operations[1].takes) == Strings{"a0", "b0"});
  CHECK(names(graph.flow.operations[1].gives) == Strings{"b1"});
  CHECK(names(graph.flow.operations[2].takes) == Strings{"h0", "a0"});  // other host memory: it has another size
  CHECK(names(graph.flow.operations[2].gives) == Strings{"a1"});
  CHECK(names(graph.flow.operations[3].takes) == Strings{"b1"});
  CHECK(names(graph.flow.operations[3].gives) == Strings{"h0"});
  std::size_t ended = 0;
  for (std::size_t i = 0; i < graph.flow.data.size(); ++i) {
    if (!graph.ended_by[i]) continue;
    ++ended;
    CHECK(version(id_at<DataId>(i)) == "a1");
    CHECK(graph.ended_by[i] == std::size_t{6});
  }
  CHECK(ended == 1);
  // Every use of a value stands behind its making.
  for (const DataNode& node : graph.flow.data) {
    for (const OperationId use : node.used_by) CHECK((!node.made_by || *node.made_by < use));
  }
}

TEST_CASE("host memory keeps its value as long as the bytes are known to be the same") {
  LogMaker maker;
  const auto a = maker.buffer(100);
  const std::string one(32, '1');
  maker.read(a, 0, 100, 64, one);                    // 0: h v0
  maker.write(a, 0, 100, 64, one);                   // 1: takes h v0
  maker.write(a, 0, 100, 64, std::string(32, '2'));  // 2: the host wrote: h v1
  maker.write(a, 0, 100, 64);                        // 3: nobody knows: h v2
  maker.write(a, 0, 100, 64);                        // 4: nor here: h v3
  const calls::ProgramGraph graph = make_program_graph(maker.log, resolved(maker));
  const auto taken = [&](std::size_t i) { return graph.flow.data[index(graph.flow.operations[i].takes[0])].version; };
  CHECK(graph.flow.operations[1].takes[0] == graph.flow.operations[0].gives[0]);
  CHECK(taken(1) == 0);
  CHECK(taken(2) == 1);
  CHECK(taken(3) == 2);
  CHECK(taken(4) == 3);
}

TEST_CASE("the orders of queues and events stand beside the values") {
  LogMaker maker;
  const auto in_order = maker.make(ObjectKind::queue, 40);
  const auto free = maker.make(ObjectKind::queue, 41, 1);
  const auto on = [&](calls::Object queue, calls::Object event = 0, std::vector<calls::Object> waits = {}) {
    calls::Call& call = maker.launch("k", {});
    call.queue = queue;
    call.event = event;
    call.waits = std::move(waits);
  };
  on(in_order, 90);                                             // 0
  on(free, 91);                                                 // 1
  on(in_order);                                                 // 2
  on(free, 0, {90});                                            // 3
  calls::Call& barrier = maker.add(CallKind::mark, "barrier");  // 4
  barrier.queue = free;
  barrier.flags = 1;
  on(free, 0, {91, 77});  // 5: 77 is an event of the program itself
  const calls::ProgramGraph graph = make_program_graph(maker.log, resolved(maker));
  CHECK(edges(graph, OrderEdge::Reason::queue) == Strings{"0>2", "1>4", "3>4", "4>5"});
  CHECK(edges(graph, OrderEdge::Reason::event) == Strings{"0>3", "1>5"});
  CHECK(graph.queues[3] == free);
  CHECK(graph.contexts[0] == 40);
  CHECK(graph.contexts[1] == 41);
}
