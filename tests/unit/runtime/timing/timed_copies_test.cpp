// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>

#include <swapmm/runtime/timing/timed_copies.hpp>

using namespace swapmm;
using namespace swapmm::literals;
using runtime::TimedCopies;

TEST_CASE("a timed copy is found by its label, which no operation has") {
  TimedCopies copies;
  const std::uint32_t in = copies.add(QueueKind::h2d, 10_bytes);
  const std::uint32_t out = copies.add(QueueKind::d2h, 20_bytes);
  for (const std::uint32_t label : {in, out}) CHECK(TimedCopies::is_label(label));
  CHECK(!TimedCopies::is_label(1));
  CHECK(!TimedCopies::is_label(0x7FFFFFFF));
  REQUIRE(copies.find(in) != nullptr);
  CHECK(copies.find(in)->queue == QueueKind::h2d);
  CHECK(copies.find(in)->size == 10_bytes);
  REQUIRE(copies.find(out) != nullptr);
  CHECK(copies.find(out)->queue == QueueKind::d2h);
  CHECK(copies.find(out)->size == 20_bytes);
  CHECK(copies.count() == 2);
}

TEST_CASE("a timed copy that was forgotten is not taken for a newer one") {
  TimedCopies copies;
  const std::uint32_t first = copies.add(QueueKind::h2d, 10_bytes);
  const std::uint32_t second = copies.add(QueueKind::h2d, 20_bytes);
  copies.forget();
  CHECK(copies.count() == 0);
  CHECK(copies.find(first) == nullptr);
  const std::uint32_t third = copies.add(QueueKind::d2h, 30_bytes);
  CHECK(copies.find(first) == nullptr);
  CHECK(copies.find(second) == nullptr);
  REQUIRE(copies.find(third) != nullptr);
  CHECK(copies.find(third)->size == 30_bytes);
  copies.forget();
  const std::uint32_t fourth = copies.add(QueueKind::d2h, 40_bytes);
  CHECK(copies.find(third) == nullptr);
  REQUIRE(copies.find(fourth) != nullptr);
  CHECK(copies.find(fourth)->size == 40_bytes);
}
