// SPDX-License-Identifier: Apache-2.0
// Addresses of places that are not used any more, when there are many.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/core_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Rec = CoreDesk::Rec;
using Spans = std::vector<std::span<int>>;

std::uint64_t live_addresses(const CoreDesk& desk) { return desk.device.counters().addresses.live; }

}  // namespace

TEST_CASE("a program whose sizes vary makes ever new addresses, and keeps a bounded number of them") {
  constexpr std::size_t sizes = 10'000;
  CoreDesk desk({.device_budget = Bytes{(sizes + 4) * 64}});
  Rec& stays = desk.written("stays", 7);
  std::uint64_t most = 0;
  for (std::size_t i = 1; i <= sizes; ++i) {
    desk.run(
        {CoreDesk::item(stays, Access::read)}, [](const Spans&) {}, Bytes{i * 64});
    most = std::max(most, live_addresses(desk));
  }
  CHECK(desk.device.counters().addresses.made > sizes);
  CHECK(most <= 4098);
  CHECK(desk.holds(stays, 7));
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("addresses of tensors on the device are kept, however many there are") {
  constexpr std::size_t count = 5'000;
  CoreDesk desk({.device_budget = Bytes{2 * count * 64}});
  std::vector<Rec*> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(&desk.written("t", static_cast<int>(i)));
  CHECK(live_addresses(desk) == count);
  std::uint64_t most = 0;
  for (std::size_t i = 2; i < count - 2; ++i) {
    desk.run(
        {CoreDesk::item(*all[i], Access::read)}, [](const Spans&) {}, Bytes{i * 64});
    most = std::max(most, live_addresses(desk));
  }
  for (std::size_t i = 2; i < count - 2; ++i) {
    desk.run(
        {CoreDesk::item(*all[i], Access::read)}, [](const Spans&) {}, Bytes{(count - i) * 64 + 32});
    most = std::max(most, live_addresses(desk));
  }
  CHECK(most <= 2 * count + 2);
  for (std::size_t i = 0; i < count; i += 97) CHECK(desk.holds(*all[i], static_cast<int>(i)));
  CHECK(desk.device.violation_count() == 0);
}
