// SPDX-License-Identifier: Apache-2.0
// Swapping on demand while host memory is short: copies of values that are also on the device give way.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/core_desk.hpp"
#include "support/store_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Rec = CoreDesk::Rec;
using Spans = std::vector<std::span<int>>;

/// Tensors of which four fit on the device. Tensor i begins with i, by an operation.
struct HostRoomDesk : CoreDesk {
  explicit HostRoomDesk(std::size_t count, std::uint64_t host_blocks)
      : CoreDesk({.device_budget = 256_bytes, .host_budget = Bytes{host_blocks * 64}}) {
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(&written("t" + std::to_string(i), static_cast<int>(i)));
      expected.push_back(static_cast<int>(i));
    }
  }
  void read(std::size_t i) {
    run({item(*all[i], Access::read)}, [](const Spans&) {});
  }
  void increase(std::size_t i) {
    run({item(*all[i], Access::update)}, [](const Spans& spans) {
      for (int& element : spans[0]) ++element;
    });
    ++expected[i];
  }
  /// Reads all values on the device, so that the host needs no memory for them.
  void check_values() {
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::vector<int> seen;
      run({item(*all[i], Access::read)},
          [&seen](const Spans& spans) { seen.assign(spans[0].begin(), spans[0].end()); });
      core->synchronize();
      CHECK(seen == std::vector<int>(length, expected[i]));
    }
    CHECK(device.violation_count() == 0);
  }

  std::vector<Rec*> all;
  std::vector<int> expected;
};

}  // namespace

TEST_CASE("host memory for what is not on the device, and one block more, is enough for every order of operations") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    HostRoomDesk desk(8, 5);
    std::uint64_t random = seed;
    for (int round = 0; round < 300; ++round) {
      random = random * 6364136223846793005U + 1442695040888963407U;
      const std::size_t which = (random >> 40U) % desk.all.size();
      if ((random >> 50U) % 2 == 0) {
        desk.read(which);
      } else {
        desk.increase(which);
      }
    }
    CHECK(desk.core->report().host_peak <= 320_bytes);
    desk.check_values();
  }
}

TEST_CASE("memory that holds no value goes first, then the copy of the value that was unused for longest") {
  HostRoomDesk desk(6, 4);  // t0 and t1 are on the host
  desk.read(0);             // t2 goes to the host; t0 is on both
  desk.read(1);             // t3 goes to the host; t1 is on both: the host is full
  REQUIRE(desk.core->report().host_used == 256_bytes);
  desk.increase(0);  // the host's block of t0 holds no value now
  desk.read(2);      // t4 takes it
  CHECK(desk.all[0]->host.block == nullptr);
  CHECK(desk.all[1]->host.valid);
  CHECK(desk.all[4]->host.valid);
  desk.read(1);
  desk.read(2);  // both are on the device and on the host, and t1 was unused for longer
  desk.read(3);  // t5 goes to the host
  CHECK_FALSE(desk.all[1]->host.valid);
  CHECK(desk.all[2]->host.valid);
  CHECK(desk.core->report().host_used == 256_bytes);
  desk.check_values();
}

TEST_CASE("the host's own accesses get room in the same way") {
  HostRoomDesk desk(6, 4);
  desk.read(0);
  desk.read(1);
  CHECK(desk.holds(*desk.all[4], 4));  // it is on the device alone
  CHECK_FALSE(desk.all[0]->host.valid);
  Rec& uploaded = desk.uploaded("uploaded", 9);
  CHECK_FALSE(desk.all[4]->host.valid);
  CHECK(desk.all[1]->host.valid);
  CHECK(desk.holds(uploaded, 9));
  desk.check_values();
}

TEST_CASE("an asynchronous download whose memory gives way has its value") {
  HostRoomDesk desk(4, 2);
  std::vector<int> seen(length);
  runtime::PendingRead& read =
      desk.core->promise(CoreDesk::key(*desk.all[3]), 0_bytes, std::as_writable_bytes(std::span(seen)));
  desk.increase(3);
  CHECK(desk.holds(*desk.all[1], 1));
  CHECK(desk.holds(*desk.all[2], 2));
  CHECK(read.state == runtime::PendingRead::State::done);
  desk.core->collect(read);
  desk.core->end_promise(read);
  CHECK(seen == std::vector<int>(length, 3));
  desk.check_values();
}

TEST_CASE("if the host has no room even so, operations throw OutOfMemory, and nothing is lost") {
  HostRoomDesk desk(5, 1);  // t0 is on the host, which is full
  for (int round = 0; round < 3; ++round) {
    CHECK(text_of<OutOfMemory>([&] { desk.read(0); }) != "");
    CHECK(text_of<OutOfMemory>([&] { (void)desk.written("new", 1); }) != "");
    CHECK(text_of<OutOfMemory>([&] { desk.cancelled({}, 128_bytes); }) != "");
    CHECK(text_of<OutOfMemory>([&] { (void)desk.holds(*desk.all[1], 1); }) != "");
    CHECK(text_of<OutOfMemory>([&] { (void)desk.uploaded("new", 1); }) != "");
    for (std::size_t i = 1; i < 5; ++i) desk.increase(i);
  }
  CHECK(desk.core->report().device_used == 256_bytes);
  desk.core->destroy(*desk.all[1]);
  desk.all.erase(desk.all.begin() + 1);
  desk.expected.erase(desk.expected.begin() + 1);
  desk.check_values();
}

TEST_CASE("a plan that gets too little host memory throws OutOfMemory and loses nothing; no copy that it needs goes") {
  for (std::uint64_t blocks = 3; blocks <= 8; ++blocks) {
    CAPTURE(blocks);
    HostRoomDesk desk(6, blocks);
    std::size_t refused = 0;
    for (int round = 0; round < 10; ++round) {
      desk.core->begin_iteration("train");
      for (std::size_t i = 0; i < 6; ++i) {
        try {
          i % 2 == 0 ? desk.read(i) : desk.increase(i);
        } catch (const OutOfMemory&) {
          ++refused;
        }
      }
      desk.core->end_iteration();
    }
    if (blocks >= 6) CHECK(desk.core->report().iterations_followed > 0);
    if (blocks >= 6) CHECK(refused == 0);
    desk.check_values();
  }
}

TEST_CASE("a value whose copy on the host gives way counts as old as that copy, not as its way back to the device") {
  StoreDesk desk({.device_budget = 256_bytes, .host_budget = 128_bytes});
  auto& old = desk.placed("old", 0_bytes);
  auto& young = desk.placed("young", 64_bytes);
  for (auto* const each : {&old, &young}) {
    desk.store.ensure_block(*each);
    each->host.valid = true;
  }
  old.host.issue = 3;
  old.device.issue = 9;
  young.host.issue = 9;
  young.device.issue = 3;
  for (const std::string name : {"first", "second"}) {
    auto& wanted = desk.tensor(name);
    desk.demand.with_host_room(wanted, [&] { desk.store.ensure_block(wanted); });
    wanted.host.valid = true;
  }
  for (const auto* const each : {&old, &young}) {
    CHECK(each->device.valid);
    CHECK(each->device.issue == 3);
    CHECK(each->host.block == nullptr);
  }
}
