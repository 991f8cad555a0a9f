// SPDX-License-Identifier: Apache-2.0
// Values that are in the host or in the file: which block a value gets, and how it moves to another one.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/values/homes.hpp>

#include "support/memory_file.hpp"
#include "support/store_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::runtime;

namespace {

constexpr Bytes slots{10 * 64};

/// The host has room for `values` of 64 bytes, the file for 16.
struct HomesDesk {
  explicit HomesDesk(std::uint64_t values)
      : desk({.device_budget = Bytes{256},
              .host_budget = slots + Bytes{64 * values},
              .file = file,
              .file_staging = slots}) {}

  /// A value that is only in the host or only in the file.
  StoreDesk::Rec& in(Home home, std::byte value) {
    StoreDesk::Rec& record = desk.tensor("t");
    ensure_block_in(home, record, desk.store);
    REQUIRE(record.host.block->home() == home);
    std::array<std::byte, 64> bytes{};
    bytes.fill(value);
    if (home == Home::host) {
      std::ranges::copy(bytes, record.host.block->data());
    } else {
      bool began = false;
      desk.store.away.write(*record.host.block, record.bytes, Bytes{}, bytes, began);
    }
    record.host.valid = true;
    return record;
  }
  [[nodiscard]] bool holds(StoreDesk::Rec& record, std::byte value) {
    std::array<std::byte, 64> bytes{};
    desk.store.read_block(*record.host.block, Bytes{}, bytes);
    return std::ranges::all_of(bytes, [&](std::byte byte) { return byte == value; });
  }

  std::shared_ptr<MemoryFile> file = std::make_shared<MemoryFile>(Bytes{1024});
  StoreDesk desk;
};

}  // namespace

TEST_CASE("a value moves from the host to the file and back, and its old block is free") {
  HomesDesk homes(1);
  auto& store = homes.desk.store;
  StoreDesk::Rec& record = homes.in(Home::host, std::byte{7});
  move_value(record, Home::file, store);
  CHECK(record.host.block->home() == Home::file);
  CHECK(homes.holds(record, std::byte{7}));
  CHECK(homes.file->bytes_written == 64);
  StoreDesk::Rec& other = homes.in(Home::host, std::byte{8});  // takes the room in the host
  move_value(record, Home::host, store);
  CHECK(record.host.block->home() == Home::file);  // there is none left
  CHECK(homes.holds(record, std::byte{7}));
  move_value(other, Home::file, store);
  move_value(record, Home::host, store);
  CHECK(record.host.block->home() == Home::host);
  CHECK(homes.holds(record, std::byte{7}));
  CHECK(homes.holds(other, std::byte{8}));
  CHECK(store.pool.file()->in_use() == Bytes{64});
}

TEST_CASE("a value whose move fails is still where it was") {
  HomesDesk homes(1);
  StoreDesk::Rec& record = homes.in(Home::host, std::byte{7});
  homes.file->failing_write = 1;
  CHECK_THROWS_AS(move_value(record, Home::file, homes.desk.store), BackendError);
  CHECK(record.host.block->home() == Home::host);
  CHECK(record.host.valid);
  CHECK(homes.holds(record, std::byte{7}));
  CHECK(homes.desk.store.pool.file()->in_use() == Bytes{});
}

TEST_CASE("a block elsewhere gives way to one at the wanted place only if its value is of no use") {
  HomesDesk homes(4);
  auto& store = homes.desk.store;
  StoreDesk::Rec& record = homes.in(Home::host, std::byte{7});
  ensure_block_in(Home::file, record, store);
  CHECK(record.host.block->home() == Home::host);
  record.host.valid = false;
  ensure_block_in(Home::file, record, store);
  CHECK(record.host.block->home() == Home::file);
  ensure_block_in(Home::host, record, store);
  CHECK(record.host.block->home() == Home::host);
  store.fixed_slots = true;
  ensure_block_in(Home::file, record, store);
  CHECK(record.host.block->home() == Home::host);
}

TEST_CASE("a file without room leaves a value to the host, a host without room leaves it to the file") {
  HomesDesk homes(2);
  auto& store = homes.desk.store;
  homes.file->disk = Bytes{};
  StoreDesk::Rec& first = homes.desk.tensor("first");
  ensure_block_in(Home::file, first, store);
  CHECK(first.host.block->home() == Home::host);
  homes.file->disk = Bytes{1024};
  StoreDesk::Rec& second = homes.desk.tensor("second");
  ensure_block_in(Home::host, second, store);
  CHECK(second.host.block->home() == Home::host);
  StoreDesk::Rec& third = homes.desk.tensor("third");
  ensure_block_in(Home::host, third, store);
  CHECK(third.host.block->home() == Home::file);
}

TEST_CASE("a value that stays on the device leaves its block, unless a read was promised from it") {
  HomesDesk homes(1);
  auto& store = homes.desk.store;
  StoreDesk::Rec& record = homes.in(Home::host, std::byte{7});
  PendingRead read;
  record.host.block->pending = &read;
  leave_block(record, store);
  CHECK(record.host.block != nullptr);
  CHECK(record.host.valid);
  record.host.block->pending = nullptr;
  leave_block(record, store);
  CHECK(record.host.block == nullptr);
  CHECK(!record.host.valid);
  CHECK(homes.in(Home::host, std::byte{8}).host.block->home() == Home::host);  // the room is free
}
