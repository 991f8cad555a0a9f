// SPDX-License-Identifier: Apache-2.0
// The executor by itself: what each event of a program does to a plan, and each step of a plan to the tensors.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/faulty.hpp>
#include <swapmm/backend/testing/simulated.hpp>

#include "support/executor_desk.hpp"
#include "support/small_program.hpp"
#include "support/tensor_names.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using runtime::Clock;
using runtime::LogEvent;

constexpr QueueKind on_compute = QueueKind::compute;
constexpr QueueKind on_h2d = QueueKind::h2d;
constexpr QueueKind on_d2h = QueueKind::d2h;

using NullDesk = ExecutorDesk<>;
using LoggedKinds = std::vector<LogEvent::What>;

Resident placed_at(std::uint32_t role, Bytes offset) { return {id_at<TensorId>(role), offset, true}; }
Command needed_by(Command command, std::uint32_t operation) {
  command.before_operation = operation;
  return command;
}
Command bring_in(std::uint32_t role, Bytes offset, std::vector<Wait> after) {
  return written_command(CommandKind::swap_in, role, offset, std::move(after));
}
Command save(std::uint32_t role, std::vector<Wait> after) {
  return written_command(CommandKind::swap_out, role, 0_bytes, std::move(after));
}
Command take_place(std::uint32_t role, Bytes offset, std::vector<Wait> after) {
  return written_command(CommandKind::allocate, role, offset, std::move(after));
}
Command free_place(std::uint32_t role, std::vector<Wait> after) {
  return written_command(CommandKind::release, role, 0_bytes, std::move(after));
}

/// Tensors a and b, on the host, and a program of two operations: a is updated, then b. Roles 0 and 1.
struct TwoUpdatesDesk : NullDesk {
  explicit TwoUpdatesDesk(std::size_t run_ahead = 2) : NullDesk(run_ahead) {
    program.handle(a).handle(b);
    program.operation("first", {{0, Access::update}}).operation("second", {{1, Access::update}}).end();
  }
  void round() {
    run({{&a, Access::update}});
    run({{&b, Access::update}});
    CHECK(executor.end_iteration());
  }

  Rec& a = on_host("a");
  Rec& b = on_host("b");
  WrittenProgram program;
};

/// Tensor a (role 0), and a local (role 1) that the second operation writes.
struct UpdateThenLocalDesk : NullDesk {
  UpdateThenLocalDesk() {
    program.handle(a).local("local");
    program.operation("first", {{0, Access::update}}).operation("second", {{1, Access::write}}).end();
  }
  Rec& a = on_host("a");
  WrittenProgram program;
};

LoggedKinds logged_kinds(const runtime::IterationLog& log) {
  LoggedKinds kinds;
  for (const LogEvent& event : log.events) kinds.push_back(event.what);
  return kinds;
}
constexpr LogEvent::What an_operation = LogEvent::What::operation;
constexpr LogEvent::What a_download = LogEvent::What::download;

}  // namespace

// ---- operations

TEST_CASE("an operation waits for the copies that the plan puts before it, also where its tensors do not need them") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {needed_by(save(0, {after_op(0)}), 1)});
  desk.run({{&desk.a, Access::update}});
  CHECK(desk.store.timeline.issued(on_d2h) == 1);
  CHECK(desk.bring({{&desk.b, Access::update}}).needs[on_d2h] == 1);
}

TEST_CASE("a work area waits for what used its place before the plan began") {
  NullDesk desk;
  auto& a = desk.on_host("a");
  WrittenProgram program;
  program.handle(a).scratch("work").operation("only", {{0, Access::update}, {1, Access::write}}).end();
  REQUIRE(desk.store.places.take_at(64_bytes, place_bytes));
  desk.store.places.give_back(64_bytes, place_bytes, {{17, 18, 19}});
  desk.start(program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {});
  const auto grant = desk.bring({{&a, Access::update}});
  CHECK(grant.scratch == desk.store.addresses.at(64_bytes, place_bytes));
  CHECK(grant.needs == Clock{{17, 18, 19}});
}

// ---- the end of a plan, and its faults

TEST_CASE("stopping where no plan is followed delays no use of free bytes") {
  NullDesk desk;
  desk.store.timeline.mark(on_compute);
  CHECK(desk.stop() == nullptr);
  CHECK(desk.store.places.take(place_bytes)->after == Clock{});
}

TEST_CASE("a plan that is stopped in the middle of a round is not in the middle of one any more") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {});
  CHECK(desk.executor.at_start());
  desk.run({{&desk.a, Access::update}});
  CHECK(!desk.executor.at_start());
  CHECK(desk.stop() == nullptr);
  CHECK(desk.executor.at_start());
}

TEST_CASE("the fault of a plan is forgotten when another plan starts") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes)}, {});  // b is never brought
  desk.run({{&desk.a, Access::update}});
  CHECK_THROWS_AS(desk.bring({{&desk.b, Access::update}}), InternalError);
  REQUIRE(desk.executor.fault());
  CHECK(names_are(desk.executor.fault()->tensors(), {"b"}));
  CHECK(desk.stop() == nullptr);
  desk.start(desk.program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {});
  CHECK(!desk.executor.fault());
}

TEST_CASE("a step that cannot run fails the operation behind which it stands, and is kept as the plan's fault") {
  UpdateThenLocalDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes)},
             {take_place(1, 64_bytes, {after_op(0)}), take_place(1, 128_bytes, {after_op(0)})});
  const auto grant = desk.bring({{&desk.a, Access::update}});
  const auto error = thrown<InternalError>([&] { desk.complete({{&desk.a, Access::update}}, grant.needs); });
  REQUIRE(error);
  CHECK(error->tensors() == std::vector<TensorName>{{.id = 0, .name = "local"}});
  CHECK(says(error->what(), {"the plan allocates twice", "\"local\""}));
  REQUIRE(desk.executor.fault());
  CHECK(std::string(desk.executor.fault()->what()) == error->what());
  CHECK(desk.store.used() == 128_bytes);  // a, and the local once
}

// ---- the host's accesses

TEST_CASE("only the upload that comes next is expected") {
  NullDesk desk;
  auto& a = desk.on_host("a");
  auto& x = desk.on_host("x");
  WrittenProgram program;
  program.handle(x).handle(a).upload(0).operation("only", {{1, Access::update}}).end();
  desk.start(program, {placed_at(1, 0_bytes)}, {});
  CHECK(!desk.executor.upload(a));
  CHECK(desk.executor.upload(x));
  CHECK(!desk.executor.upload(x));  // the operation comes next: number 0, as the role of x
  const std::vector<NullDesk::Item> items{{&a, Access::update}};
  CHECK(desk.executor.expects({"only", items, Bytes{}, false}));
}

TEST_CASE("an upload that begins a round waits there if the host is too far ahead") {
  NullDesk desk(1);
  auto& x = desk.on_host("x");
  WrittenProgram program;
  program.handle(x).upload(0).operation("only", {{0, Access::update}}).end();
  desk.start(program, {placed_at(0, 0_bytes)}, {});
  CHECK(desk.executor.upload(x));
  desk.run({{&x, Access::update}});
  CHECK(desk.executor.end_iteration());
  CHECK(desk.store.timeline.confirmed(on_compute) == 0);
  CHECK(desk.executor.upload(x));
  CHECK(desk.store.timeline.confirmed(on_compute) == 1);
}

TEST_CASE("a download is logged with those that come before it, and one that no plan expects is not") {
  TwoUpdatesDesk desk;
  auto& other = desk.on_host("other");
  WrittenProgram program;
  program.handle(desk.a).handle(desk.b).operation("first", {{0, Access::update}});
  program.download(0).download(1).operation("second", {{1, Access::update}}).end();
  desk.start(program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {});
  desk.run({{&desk.a, Access::update}});
  desk.executor.download(other);
  CHECK(logged_kinds(desk.log()) == LoggedKinds{an_operation});
  desk.executor.download(desk.b);
  CHECK(logged_kinds(desk.log()) == LoggedKinds{an_operation, a_download, a_download});
}

TEST_CASE("one download of a tensor is one, though the plan expects two") {
  NullDesk desk;
  auto& a = desk.on_host("a");
  WrittenProgram program;
  program.handle(a).operation("only", {{0, Access::update}}).download(0).download(0).end();
  desk.start(program, {placed_at(0, 0_bytes)}, {});
  desk.run({{&a, Access::update}});
  desk.executor.download(a);
  CHECK(logged_kinds(desk.log()) == LoggedKinds{an_operation, a_download});
  desk.executor.download(a);
  CHECK(logged_kinds(desk.log()) == LoggedKinds{an_operation, a_download, a_download});
}

// ---- iterations

TEST_CASE("in a cycle of several iterations each is counted, and only the current one is logged") {
  NullDesk desk;
  auto& a = desk.on_host("a");
  WrittenProgram program;
  program.handle(a).operation("first", {{0, Access::update}}).end();
  program.operation("second", {{0, Access::update}}).end();
  desk.start(program, {placed_at(0, 0_bytes)}, {});
  for (int cycle = 0; cycle < 2; ++cycle) {
    CHECK(desk.executor.iteration() == 0);
    CHECK(!desk.executor.end_iteration());
    desk.run({{&a, Access::update}});
    CHECK(desk.executor.end_iteration());
    CHECK(desk.executor.iteration() == 1);
    CHECK(!desk.executor.at_start());
    CHECK(desk.log().operations.empty());
    desk.run({{&a, Access::update}});
    const runtime::IterationLog log = desk.log();
    REQUIRE(log.operations.size() == 1);
    CHECK(log.operations[0].name == "second");
    CHECK(desk.executor.end_iteration());
    CHECK(desk.executor.at_start());
  }
}

// ---- places

TEST_CASE("a place for the local of this round is not given to the local of the round before") {
  UpdateThenLocalDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes)},
             {take_place(1, 64_bytes, {after_op(0)}), free_place(1, {after_op(1)})});
  auto& old = desk.tensor("old");
  desk.run({{&desk.a, Access::update}});
  desk.run({{&old, Access::write}});
  CHECK(desk.executor.end_iteration());
  CHECK(!old.device.resident);
  CHECK(desk.store.used() == 64_bytes);
  auto& next = desk.tensor("next");
  desk.run({{&desk.a, Access::update}});
  CHECK(desk.store.used() == 128_bytes);
  CHECK(!old.device.resident);
  (void)desk.bring({{&next, Access::write}});
  CHECK(next.device.resident);
  CHECK(next.device.offset == 64_bytes);
  CHECK(desk.store.used() == 128_bytes);
}

TEST_CASE("a plan that allocates a place for a tensor that has one leaves the tensor and its value where they are") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {save(0, {after_op(0)})},
             [](runtime::CompiledPlan& plan) {
               plan.steps.at(0).kind = CommandKind::allocate;
               plan.steps.at(0).offset = 128_bytes;
             });
  desk.run({{&desk.a, Access::update}});
  CHECK(desk.a.device.valid);
  CHECK(desk.a.device.offset == 0_bytes);
}

TEST_CASE("the next user of released bytes comes after all that the release waits for") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)},
             {free_place(0, {after_op(0), after_op(1)})});
  desk.run({{&desk.a, Access::update}});
  CHECK(desk.a.device.resident);
  desk.run({{&desk.b, Access::update}});
  CHECK(!desk.a.device.resident);
  CHECK(desk.a.device.busy[on_compute] == 2);
}

// ---- copies

TEST_CASE("a swap-in comes after whatever still writes the value on the host") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(1, 64_bytes)}, {needed_by(bring_in(0, 0_bytes, {}), 0)});
  desk.store.timeline.mark(on_d2h);
  desk.a.host.block->written = 1;
  const std::uint64_t waits = desk.store.timeline.waits_queued();
  const auto grant = desk.bring({{&desk.a, Access::update}});
  CHECK(desk.store.timeline.waits_queued() == waits + 1);
  CHECK(grant.needs[on_d2h] == 1);
  CHECK(desk.store.backend.counters().copies == 2);  // b, when the plan started, and a
}

TEST_CASE("a plan that swaps in what is not on the host, or what has no tensor, is at fault") {
  for (const bool has_tensor : {false, true}) {
    UpdateThenLocalDesk desk;
    WrittenProgram program = desk.program;
    auto& b = desk.on_host("b");
    program.handle(b);
    desk.start(program, {placed_at(0, 0_bytes)}, {needed_by(bring_in(has_tensor ? 2 : 1, 64_bytes, {}), 0)});
    b.host.valid = false;
    const auto error = thrown<InternalError>([&] { (void)desk.bring({{&desk.a, Access::update}}); });
    REQUIRE(error);
    CHECK(says(error->what(), {"swaps in a value that is not on the host", has_tensor ? "\"b\"" : "\"local\""}));
    REQUIRE(error->tensors().size() == 1);
    CHECK(error->tensors()[0].name == (has_tensor ? "b" : "local"));
    CHECK(error->tensors()[0].id == (has_tensor ? b.tensor.serial : 0));
    CHECK(error->lost().size() == (has_tensor ? 1 : 0));
    CHECK(desk.store.used() == 64_bytes);
  }
}

TEST_CASE("a plan that swaps in what is on the device already is at fault, and the value is not lost") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {save(1, {after_op(0)})},
             [](runtime::CompiledPlan& plan) {
               plan.steps.at(0).kind = CommandKind::swap_in;
               plan.steps.at(0).offset = 128_bytes;
             });
  const auto grant = desk.bring({{&desk.a, Access::update}});
  const auto error = thrown<InternalError>([&] { desk.complete({{&desk.a, Access::update}}, grant.needs); });
  REQUIRE(error);
  CHECK(says(error->what(), {"swaps in what is on the device already", "\"b\""}));
  CHECK(error->tensors().at(0).id == desk.b.tensor.serial);
  CHECK(error->lost().empty());
  CHECK(desk.b.device.valid);
  CHECK(desk.b.device.offset == 64_bytes);
  CHECK(desk.store.used() == 128_bytes);
}

TEST_CASE("a swap-in that the device refuses takes no bytes, and its error is not called a fault of the plan") {
  using FaultyDevice = Faulty<Simulated>;
  FaultyDevice device{Simulated()};
  ExecutorDesk<FaultyDevice> desk(2, device);
  auto& a = desk.on_host("a");
  WrittenProgram program;
  program.handle(a).operation("only", {{0, Access::update}}).end();
  desk.start(program, {}, {needed_by(bring_in(0, 0_bytes, {}), 0)});
  device.restart({FaultClass::copy_to_device, FaultMode::once, 1});
  CHECK_THROWS_AS((void)desk.bring({{&a, Access::update}}), BackendError);
  device.restart({});
  CHECK(!a.device.resident);
  CHECK(a.host.valid);
  CHECK(desk.store.used() == 0_bytes);
  CHECK(!desk.executor.fault());
  CHECK(desk.stop() == nullptr);
}

TEST_CASE("a swap-out of what has no value, or no tensor yet, copies nothing, but later steps can wait for its point") {
  for (const bool has_tensor : {false, true}) {
    UpdateThenLocalDesk desk;
    WrittenProgram program = desk.program;
    auto& empty = desk.tensor("empty");
    program.handle(empty);
    desk.start(program, {placed_at(0, 0_bytes), placed_at(2, 64_bytes)},
               {save(has_tensor ? 2 : 1, {after_op(0)}), needed_by(take_place(1, 128_bytes, {after_op(0)}), 1)});
    const std::uint64_t copies = desk.store.backend.counters().copies;
    desk.run({{&desk.a, Access::update}});
    CHECK(desk.store.timeline.issued(on_d2h) == 1);
    CHECK(desk.store.backend.counters().copies == copies);
    CHECK(!empty.host.valid);
    CHECK(desk.store.traffic.swap_outs == 0);
  }
}

TEST_CASE("a swap-out comes after a copy that still reads the value on the host") {
  TwoUpdatesDesk desk;
  desk.start(desk.program, {placed_at(0, 0_bytes), placed_at(1, 64_bytes)}, {save(0, {after_op(0)})});
  desk.round();
  desk.store.timeline.mark(on_h2d);
  desk.a.host.block->read = desk.store.timeline.issued(on_h2d);
  (void)desk.bring({{&desk.a, Access::update}});
  const std::uint64_t waits = desk.store.timeline.waits_queued();
  desk.complete({{&desk.a, Access::update}}, Clock{});
  CHECK(desk.store.timeline.waits_queued() == waits + 2);  // for the operation, and for that copy
  CHECK(desk.a.host.valid);
  CHECK(desk.store.traffic.swap_outs == 2);
}
