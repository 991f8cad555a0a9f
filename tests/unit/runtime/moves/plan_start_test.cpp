// SPDX-License-Identifier: Apache-2.0
// How a plan begins: what is moved, booked and allocated until the device is as the plan's first operation needs it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/runtime/moves/plan_start.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/store_desk.hpp"
#include "support/tensor_names.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using runtime::Role;

/// A plan that a test writes, and tensors where it does not begin.
struct PlanStartDesk : StoreDesk {
  using StoreDesk::StoreDesk;

  /// The role of a tensor that outlives iterations.
  std::uint32_t handle(const Rec& record) {
    plan.program.roles.push_back({Role::Kind::handle, record.id, record.tensor.serial, record.bytes});
    return add(record.name, record.bytes);
  }
  std::uint32_t work_area(std::string_view name, Bytes bytes = tensor_bytes) {
    plan.program.roles.push_back({.kind = Role::Kind::scratch, .bytes = bytes});
    return add(name, bytes);
  }
  void begins_with(std::uint32_t role, Bytes offset, bool host_valid = false) {
    plan.plan.initial.push_back({id_at<TensorId>(role), offset, host_valid});
    plan.footprint = std::max(plan.footprint, offset + plan.program.roles[role].bytes);
  }
  runtime::PlanStart<Device>::Start start() { return runtime::PlanStart<Device>(store, demand, plan).run(2); }

  runtime::CompiledPlan plan;

 private:
  std::uint32_t add(std::string_view name, Bytes bytes) {
    plan.program.trace.tensors.push_back({std::string(name), bytes, TensorKind::persistent});
    plan.swapped_out.push_back(false);
    return static_cast<std::uint32_t>(plan.program.roles.size() - 1);
  }
};

}  // namespace

TEST_CASE("a plan begins with its tensors in their places, and moves no other than those that are in its way") {
  PlanStartDesk desk;
  auto& right = desk.placed("right", 0_bytes);
  auto& in_the_way = desk.placed("in the way", 64_bytes);
  auto& behind = desk.placed("behind", 128_bytes);
  auto& elsewhere = desk.placed("elsewhere", 192_bytes);
  desk.begins_with(desk.handle(right), 0_bytes);
  desk.begins_with(desk.handle(elsewhere), 64_bytes);
  (void)desk.start();
  CHECK(right.device.offset == 0_bytes);
  CHECK(elsewhere.device.offset == 64_bytes);
  CHECK(elsewhere.device.valid);
  CHECK(behind.device.resident);
  CHECK(!in_the_way.device.resident);
  CHECK(in_the_way.host.valid);
  CHECK(desk.store.traffic.swap_outs == 2);
  CHECK(desk.store.traffic.swap_ins == 1);
  CHECK(desk.store.used() == 192_bytes);
}

TEST_CASE("a work area that is there when a plan begins has its place, and its bytes are booked") {
  PlanStartDesk desk;
  auto& tensor = desk.placed("tensor", 0_bytes);
  const std::uint32_t area = desk.work_area("area", 100_bytes);
  desk.begins_with(area, 64_bytes);
  desk.begins_with(desk.handle(tensor), 0_bytes);
  const auto start = desk.start();
  REQUIRE(start.roles.places.size() == 2);
  CHECK(start.roles.places[area].resident);
  CHECK(start.roles.places[area].offset == 64_bytes);
  CHECK(start.roles.places[area].address == desk.store.addresses.at(64_bytes, 100_bytes));
  CHECK(!start.roles.places[1].resident);
  CHECK(desk.store.used() == 64_bytes + 112_bytes);
  CHECK(start.roles.records == std::vector<StoreDesk::Rec*>{nullptr, &tensor});
}

TEST_CASE("a work area whose first place is not free keeps its plan from beginning, by name") {
  PlanStartDesk desk;
  auto& tensor = desk.placed("tensor", 0_bytes);
  desk.begins_with(desk.handle(tensor), 0_bytes);
  desk.begins_with(desk.work_area("area", 100_bytes), 32_bytes);
  const auto error = thrown<InternalError>([&] { (void)desk.start(); });
  REQUIRE(error);
  CHECK(names_are(error->tensors(), {"area"}));
  CHECK(error->tensors()[0].bytes == 100_bytes);
  CHECK(tensor.device.valid);
  CHECK(desk.store.used() == 64_bytes);
}

TEST_CASE("a plan that could not begin keeps no places") {
  PlanStartDesk desk;
  auto& there = desk.placed("there", 0_bytes);
  auto& over = desk.tensor("over");
  desk.begins_with(desk.work_area("area"), 128_bytes);
  desk.begins_with(desk.handle(there), 0_bytes);
  desk.begins_with(desk.handle(over), 32_bytes);
  const auto error = thrown<InternalError>([&] { (void)desk.start(); });
  REQUIRE(error);
  CHECK(names_are(error->tensors(), {"over"}));
  CHECK(desk.store.used() == 64_bytes);
  CHECK(desk.store.places.used() == 64_bytes);
}

TEST_CASE("a plan that begins with values on the host, too, has those copied that there are") {
  PlanStartDesk desk;
  auto& alone = desk.placed("alone", 0_bytes);
  auto& without = desk.tensor("without a value");
  auto& promised = desk.placed("promised", 128_bytes);
  desk.store.ensure_block(promised);
  runtime::PendingRead read;  // of the value before
  std::vector<std::byte> target(tensor_bytes.value);
  read.target = target.data();
  read.size = tensor_bytes;
  auto* const block = promised.host.block.get();
  block->pending = &read;
  desk.begins_with(desk.handle(alone), 0_bytes, true);
  desk.begins_with(desk.handle(without), 64_bytes, true);
  desk.begins_with(desk.handle(promised), 128_bytes, true);
  (void)desk.start();
  CHECK(alone.host.valid);
  CHECK(alone.device.valid);
  CHECK(without.device.resident);
  CHECK(!without.has_value());
  CHECK(without.host.block == nullptr);
  CHECK(promised.host.valid);
  CHECK(read.state == runtime::PendingRead::State::waiting);
  CHECK(promised.host.block.get() != block);
  CHECK(promised.host.spare.get() == block);
  CHECK(desk.store.traffic.swap_outs == 2);
  desk.store.settle_pending(*block);
}

TEST_CASE(
    "before a plan begins, host memory is there for what it copies out, twice for what is uploaded, and no more") {
  PlanStartDesk desk;
  auto& copied_out = desk.placed("copied out", 0_bytes);
  auto& uploaded = desk.placed("uploaded", 64_bytes);
  auto& neither = desk.placed("neither", 128_bytes);
  desk.begins_with(desk.handle(neither), 128_bytes);
  const std::uint32_t input = desk.handle(uploaded);
  desk.begins_with(input, 64_bytes);
  const std::uint32_t out = desk.handle(copied_out);
  desk.begins_with(out, 0_bytes);
  const std::uint32_t area = desk.work_area("area");
  desk.plan.swapped_out[out] = true;
  desk.plan.swapped_out[area] = true;  // of a tensor that does not exist yet
  using What = runtime::Event::What;
  desk.plan.program.events = {
      {What::operation, 0}, {What::upload, area}, {What::upload, input}, {What::end_of_iteration, 0}};
  (void)desk.start();
  CHECK(copied_out.host.block != nullptr);
  CHECK(copied_out.host.spare == nullptr);
  CHECK(uploaded.host.block != nullptr);
  CHECK(uploaded.host.spare != nullptr);
  CHECK(neither.host.block == nullptr);
  CHECK(desk.store.pool.budget().in_use() == 192_bytes);
}

TEST_CASE("however few points a manager keeps on demand, a plan has as many as its rounds in flight need") {
  WeightDesk desk(only_when_waited_for(), {.device_budget = 256_bytes, .queue_depth = 8},
                  Scheduler({.sample_every = 0, .trial_iterations = 0}), 20);
  for (int i = 0; i < 6; ++i) desk.increase_all("train");
  const Report before = desk.report();
  for (int i = 0; i < 10; ++i) desk.increase_all("train");
  CHECK(desk.followed() == before.iterations_followed + 10);
  CHECK(desk.report().host_waits == before.host_waits + 10);  // for each round, which is two ahead
}
