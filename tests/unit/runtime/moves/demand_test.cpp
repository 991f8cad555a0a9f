// SPDX-License-Identifier: Apache-2.0
// Swapping on demand by itself: which tensors make room, where bundles find places, and what is left where that fails.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/failing_new.hpp"
#include "support/small_program.hpp"
#include "support/store_desk.hpp"
#include "support/tensor_names.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using ResidentNames = std::vector<std::string>;
using runtime::Clock;

/// Every resident lies in its own bytes, and no others are taken.
void check_all_booked(StoreDesk& desk, Bytes used) {
  CHECK(desk.store.used() == used);
  CHECK(desk.store.places.used() == used);
  CHECK(desk.demand.rebuild_residents() == nullptr);
  CHECK(desk.store.places.used() == used);
}

}  // namespace

TEST_CASE("the tensor that was unused for longest makes room, and to be read counts as a use") {
  StoreDesk desk;
  auto& a = desk.tensor("a");
  auto& b = desk.tensor("b");
  auto& c = desk.tensor("c");
  auto& d = desk.tensor("d");
  for (auto* const each : {&a, &b, &c, &d}) desk.write({each});
  CHECK(desk.residents() == ResidentNames{"a", "b", "c", "d"});
  (void)desk.bring({{&a, Access::read}});
  CHECK(desk.residents() == ResidentNames{"b", "c", "d", "a"});
  desk.write({&desk.tensor("e")});
  CHECK(desk.residents() == ResidentNames{"c", "d", "a", "e"});
  CHECK(b.host.valid);
  CHECK(desk.store.traffic.swap_outs == 1);
}

TEST_CASE("to make room, values are copied to the host unless they are there already or their tensor has ended") {
  StoreDesk desk;
  auto& alone = desk.placed("alone", 0_bytes);
  auto& both = desk.placed("both", 64_bytes);
  desk.store.ensure_block(both);
  both.host.valid = true;
  auto& ended = desk.placed("ended", 128_bytes);
  desk.store.records.end(ended);
  desk.demand.clear_device();
  CHECK(desk.store.traffic.swap_outs == 1);
  CHECK(alone.host.valid);
  CHECK(ended.host.block == nullptr);
  check_all_booked(desk, 0_bytes);
}

TEST_CASE("a work area larger than any number of bytes is refused like any other bundle that is too large") {
  StoreDesk desk;
  auto& tensor = desk.tensor("a");
  const Bytes most{~std::uint64_t{0}};
  const auto error = thrown<BundleTooLarge>([&] { (void)desk.bring({{&tensor, Access::write}}, most); });
  REQUIRE(error);
  CHECK(error->sizes.need == most);
  CHECK(error->sizes.scratch == most);
  CHECK(error->sizes.budget == 256_bytes);
  CHECK(names_are(error->tensors(), {"a"}));
}

TEST_CASE("without device memory an operation that needs none runs") {
  StoreDesk desk({.device_budget = 0_bytes});
  const auto grant = desk.bring({});
  CHECK(grant.scratch == nullptr);
  CHECK(grant.needs == Clock{});
}

TEST_CASE("a bundle that fills all pieces of device memory fits, in whatever order it is declared") {
  // 80 and 48 bytes fill one piece, and the rest fills the other. Any other way leaves a gap in both.
  for (const std::vector<std::uint64_t>& sizes :
       {std::vector<std::uint64_t>{48, 32, 32, 32, 32, 80}, {32, 32, 32, 32, 80, 48}, {80, 48, 32, 32, 32, 32}}) {
    for (std::size_t scratch = 0; scratch <= sizes.size(); ++scratch) {
      CAPTURE(sizes[0]);
      CAPTURE(scratch);
      StoreDesk desk({.device_budget = 256_bytes}, StoreDesk::in_pieces());
      std::vector<StoreDesk::Item> items;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (i != scratch) items.push_back({&desk.tensor("t", Bytes{sizes[i]}), Access::write});
      }
      const auto grant = desk.bring(items, scratch < sizes.size() ? Bytes{sizes[scratch]} : Bytes{});
      for (const auto& item : items) CHECK(item.record->device.resident);
      CHECK((grant.scratch != nullptr) == (scratch < sizes.size()));
      CHECK(desk.store.used() == 256_bytes);
      CHECK(desk.store.traffic.swap_outs == 0);
    }
  }
}

TEST_CASE("a bundle that finds its free bytes in pieces is placed anew, and waits for nothing where it was first") {
  // Pieces of 128, 128 and 112 bytes. The first and the last have gaps of 32 bytes and less beside tensors of the
  // bundle, so there the work area finds its place in the second, but `wanted` finds none.
  StoreDesk desk({.device_budget = 368_bytes}, StoreDesk::in_pieces());
  auto& small = desk.placed("small", 32_bytes, 16_bytes);
  auto& other = desk.placed("other", 80_bytes, 16_bytes);
  auto& middle = desk.placed("middle", 288_bytes, 48_bytes);
  auto& wanted = desk.tensor("wanted", 48_bytes);
  for (auto* const each : {&small, &other, &middle}) {
    desk.store.ensure_block(*each);
    each->host.valid = true;
  }
  const Clock busy = Clock::point(QueueKind::compute, 7);
  REQUIRE(desk.store.places.take_at(128_bytes, 128_bytes));
  desk.store.places.give_back(128_bytes, 128_bytes, busy);
  const auto grant = desk.bring(
      {{&small, Access::read}, {&other, Access::read}, {&middle, Access::read}, {&wanted, Access::write}}, 112_bytes);
  CHECK(grant.scratch == desk.store.addresses.at(256_bytes, 112_bytes));
  for (auto* const each : {&small, &other, &middle, &wanted}) {
    CHECK(each->device.resident);
    CHECK(each->device.offset < 128_bytes);
  }
  CHECK(desk.store.used() == 240_bytes);
  CHECK(grant.needs[QueueKind::compute] == 0);
  desk.demand.end_scratch(112_bytes, Clock{});
  check_all_booked(desk, 128_bytes);
}

TEST_CASE("a place that cannot be booked, or has no address, is free again, and what is there stays") {
  StoreDesk desk;
  auto& there = desk.placed("there", 0_bytes);
  auto& wanted = desk.tensor("wanted");
  desk.store.book(160_bytes, Clock{});  // by somebody who takes no place
  CHECK(thrown<InternalError>([&] { (void)desk.bring({{&wanted, Access::write}}); }));
  CHECK(thrown<InternalError>([&] { (void)desk.bring({}, 64_bytes); }));
  CHECK(!wanted.device.resident);
  desk.store.unbook(160_bytes, Clock{});
  check_all_booked(desk, 64_bytes);
  desk.store.backend.restart({FaultClass::address_creation, FaultMode::once, 1});
  auto& next = desk.tensor("next", 32_bytes);
  CHECK(thrown<BackendError>([&] { (void)desk.bring({{&next, Access::write}}); }));
  CHECK(!next.device.resident);
  CHECK(there.device.valid);
  CHECK(desk.residents() == ResidentNames{"there"});
  check_all_booked(desk, 64_bytes);
}

TEST_CASE("with room reserved, the list of residents is rebuilt without an allocation, and by last use") {
  StoreDesk desk({.device_budget = 4096_bytes});
  constexpr std::uint64_t count = 40;
  ResidentNames expected;
  for (std::uint64_t i = 0; i < count; ++i) desk.tensor("t" + std::to_string(i));
  for (std::uint64_t i = 0; i < count; ++i) {  // as a plan does, which keeps no list of places
    auto& record = desk.store.records[static_cast<std::uint32_t>(i)];
    const Bytes offset{64 * i};
    desk.store.assign_place(record, offset, desk.store.addresses.at(offset, tensor_bytes), Clock{});
    record.use.stamp = (i * 7) % count;
    expected.push_back("t" + std::to_string((i * 23) % count));  // 7 * 23 = 1 modulo 40
  }
  const std::uint64_t before = allocations();
  const std::exception_ptr disorder = desk.demand.rebuild_residents();
  CHECK(allocations() == before);
  CHECK(disorder == nullptr);
  CHECK(desk.residents() == expected);
}

TEST_CASE("room for tensors is reserved for more than there are, so that it is seldom reserved") {
  StoreDesk desk;
  desk.demand.reserve(100);
  const std::uint64_t before = allocations();
  for (std::size_t count = 1; count <= 150; ++count) desk.demand.reserve(count);
  CHECK(allocations() == before);
}

TEST_CASE("the tensors of one large bundle are all found again when the list of residents is rebuilt") {
  StoreDesk desk({.device_budget = 64_KiB});
  std::vector<StoreDesk::Rec*> all;
  for (int i = 0; i < 500; ++i) all.push_back(&desk.tensor("t"));
  desk.write(all);
  CHECK(desk.demand.rebuild_residents() == nullptr);
  CHECK(desk.residents().size() == 500);
  check_all_booked(desk, 32000_bytes);
}

TEST_CASE("where two tensors hold the same device bytes, those right before and behind them stay") {
  StoreDesk desk;
  const auto settled = [&](const char* name, Bytes offset, Bytes bytes) -> auto& {
    auto& record = desk.tensor(name, bytes);
    desk.store.assign_place(record, offset, desk.store.addresses.at(offset, bytes), Clock{});
    record.device.valid = true;
    return record;
  };
  auto& before = settled("before", 0_bytes, 32_bytes);
  auto& under = settled("under", 32_bytes, 16_bytes);
  auto& behind = settled("behind", 96_bytes, 16_bytes);
  auto& over = settled("over", 32_bytes, 64_bytes);
  over.use.stamp = 1;
  const auto error = thrown<InternalError>([&] { std::rethrow_exception(desk.demand.rebuild_residents()); });
  REQUIRE(error);
  CHECK(names_are(error->tensors(), {"under", "over"}));
  CHECK(names_are(error->lost(), {"under", "over"}));
  CHECK(before.device.valid);
  CHECK(behind.device.valid);
  CHECK(!under.has_value());
  CHECK(!over.has_value());
  CHECK(desk.residents() == ResidentNames{"before", "under", "behind"});
}

TEST_CASE("tensors that hold the same device bytes are told in pairs, each pair once") {
  StoreDesk desk;
  const auto settled = [&](const char* name, Bytes offset) -> auto& {
    auto& record = desk.tensor(name);
    desk.store.assign_place(record, offset, desk.store.addresses.at(offset, tensor_bytes), Clock{});
    record.device.valid = true;
    record.use.stamp = record.id;
    return record;
  };
  settled("first", 0_bytes);
  settled("second", 96_bytes);
  settled("over both", 48_bytes);
  settled("over second", 80_bytes);
  const auto error = thrown<InternalError>([&] { std::rethrow_exception(desk.demand.rebuild_residents()); });
  REQUIRE(error);
  CHECK(names_are(error->tensors(), {"first", "over both", "second", "over both",  // pairs
                                     "over second", "over both", "second", "over second"}));
  CHECK(desk.residents() == ResidentNames{"first", "second"});
}

TEST_CASE("a tensor that was used before its iteration began is no temporary of that iteration, and keeps its value") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes},
                                   Scheduler({.planner = "belady", .sample_every = 0, .trial_iterations = 0}));
  auto weights = uploaded_tensors(manager, 4);
  const auto iterate = [&](auto& temporary, int value) {
    set(manager, temporary, value);
    for (auto& weight : weights) accumulate(manager, temporary, weight);
  };
  for (int i = 0; i < 5; ++i) {  // the first begins with uploads
    const auto iteration = manager.iteration("train");
    auto temporary = manager.tensor<int>({length}, "temporary");
    iterate(temporary, 10);
  }
  REQUIRE(manager.report().iterations_followed == 2);
  auto mine = manager.tensor<int>({length}, "mine");
  set(manager, mine, 1);
  {
    const auto iteration = manager.iteration("train");
    iterate(mine, 20);
  }
  CHECK(manager.report().iterations_followed == 2);
  CHECK(holds(mine, 20));
  CHECK(holds(weights[3], 4 + 5 * 10 + 20));
}
