// SPDX-License-Identifier: Apache-2.0
// Managers that share one limit on host memory.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/runtime/values/host_ledger.hpp>

#include "support/core_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using runtime::HostLedger;

namespace {

using Rec = CoreDesk::Rec;

void read(CoreDesk& desk, Rec& record) {
  desk.run({CoreDesk::item(record, Access::read)}, [](const auto&) {});
}

/// Three tensors that are on the device and on the host.
struct Rich : CoreDesk {
  explicit Rich(const std::shared_ptr<HostLedger>& ledger)
      : CoreDesk({.device_budget = 256_bytes}, {.shared_host = ledger}) {
    for (int i = 0; i < 3; ++i) {
      all.push_back(&uploaded("r" + std::to_string(i), 10 + i));
      read(*this, *all.back());
    }
  }
  std::vector<Rec*> all;
};

}  // namespace

TEST_CASE("a ledger gives what there is, and nothing else") {
  HostLedger ledger(100_bytes);
  CHECK(ledger.take(60_bytes));
  CHECK(!ledger.take(41_bytes));
  CHECK(ledger.take(40_bytes));
  CHECK(ledger.room() == 0_bytes);
  CHECK(ledger.in_use() == 100_bytes);
  ledger.give_back(60_bytes);
  CHECK(ledger.room() == 60_bytes);
  CHECK(ledger.peak() == 100_bytes);
}

TEST_CASE("a ledger is exact between threads") {
  HostLedger ledger(1000_bytes);
  std::vector<std::uint64_t> taken(4);
  std::vector<std::thread> threads;
  for (std::uint64_t& mine : taken) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        if (ledger.take(7_bytes)) ++mine;
        if (i % 3 == 0 && mine != 0) ledger.give_back(7_bytes), --mine;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t sum = 0;
  for (const std::uint64_t mine : taken) sum += mine;
  CHECK(ledger.in_use() == Bytes{7 * sum});
  CHECK(ledger.in_use() <= ledger.limit());
  CHECK(ledger.peak() <= ledger.limit());
  CHECK(ledger.peak() >= ledger.in_use());
}

TEST_CASE("what one manager has of the shared host memory, the other has not, until it is given back") {
  const auto ledger = std::make_shared<HostLedger>(256_bytes);
  {
    Rich rich(ledger);
    REQUIRE(ledger->in_use() == 192_bytes);
    {
      CoreDesk poor({.device_budget = 64_bytes}, {.shared_host = ledger});
      Rec& first = poor.written("p0", 1);
      Rec& second = poor.written("p1", 2);
      CHECK(ledger->in_use() == 256_bytes);
      Rec& third = poor.tensor("p2");
      const auto write = [&] {
        poor.run({CoreDesk::item(third, Access::write)}, [](const auto& spans) {
          for (int& element : spans[0]) element = 3;
        });
      };
      try {
        write();
        FAIL("there was no host memory for what leaves");
      } catch (const OutOfMemory& error) {
        CHECK(error.sizes.budget == 256_bytes);
        CHECK(error.sizes.in_use == 256_bytes);
        CHECK(error.sizes.need == 64_bytes);
      }
      rich.core->give_back_host(64_bytes);
      CHECK(ledger->in_use() == 192_bytes);
      write();
      CHECK(ledger->in_use() == 256_bytes);
      rich.core->give_back_host(128_bytes);
      CHECK(ledger->in_use() == 128_bytes);
      CHECK(rich.core->report().host_used == 0_bytes);
      CHECK(poor.holds(first, 1));
      CHECK(poor.holds(second, 2));
      CHECK(poor.holds(third, 3));
      CHECK(poor.device.violation_count() == 0);
    }
    for (int i = 0; i < 3; ++i) CHECK(rich.holds(*rich.all[static_cast<std::size_t>(i)], 10 + i));
    CHECK(rich.device.violation_count() == 0);
  }
  CHECK(ledger->in_use() == 0_bytes);
}

TEST_CASE("a value that is only on the host stays there") {
  const auto ledger = std::make_shared<HostLedger>(256_bytes);
  CoreDesk desk({.device_budget = 64_bytes}, {.shared_host = ledger});
  Rec& first = desk.written("first", 1);
  Rec& second = desk.written("second", 2);
  desk.core->give_back_host(1_MiB);
  CHECK(ledger->in_use() == 64_bytes);
  CHECK(desk.holds(first, 1));
  CHECK(desk.holds(second, 2));
}
