// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <swapmm/runtime/blocks/place_map.hpp>

#include "support/failing_new.hpp"

using namespace swapmm;
using namespace swapmm::literals;
using runtime::Clock;
using runtime::FreePlace;
using runtime::PlaceMap;

namespace {

Clock at(std::uint64_t compute) { return Clock::point(QueueKind::compute, compute); }

}  // namespace

TEST_CASE("places are taken from the smallest free piece that holds them, lowest first, in whole alignments") {
  PlaceMap map(256_bytes, 256_bytes, 16_bytes);
  CHECK(map.take(10_bytes)->offset == 0_bytes);
  CHECK(map.take(40_bytes)->offset == 16_bytes);
  CHECK(map.take(60_bytes)->offset == 64_bytes);
  CHECK(map.used() == 128_bytes);
  map.give_back(16_bytes, 40_bytes, at(1));  // a piece of 48, and one of 128
  CHECK(map.take(48_bytes)->offset == 16_bytes);
  CHECK(map.take(49_bytes)->offset == 128_bytes);
  CHECK(map.used() == 192_bytes);
  CHECK(!map.take(65_bytes).has_value());
  CHECK(map.take(64_bytes)->offset == 192_bytes);
  CHECK(!map.take(1_bytes).has_value());
  CHECK(map.used() == map.budget());
}

TEST_CASE("the budget is cut to whole alignments, whatever they are") {
  PlaceMap map(100_bytes, 48_bytes, 24_bytes);
  CHECK(map.budget() == 96_bytes);
  CHECK(map.take(1_bytes)->offset == 0_bytes);
  CHECK(map.take(25_bytes)->offset == 48_bytes);
  CHECK(map.take(24_bytes)->offset == 24_bytes);
  CHECK(map.used() == 96_bytes);
}

TEST_CASE("no place crosses from one arena into the next, however pieces come back") {
  PlaceMap map(256_bytes, 96_bytes, 16_bytes);  // 96, 96, 64
  const auto a = map.take(96_bytes);
  const auto b = map.take(96_bytes);
  const auto c = map.take(64_bytes);
  REQUIRE((a && b && c));
  for (const auto& [place, size] : {std::pair{*a, 96_bytes}, {*b, 96_bytes}, {*c, 64_bytes}}) {
    map.give_back(place.offset, size, at(1));
  }
  CHECK(!map.take(97_bytes).has_value());
  CHECK(!map.take_at(80_bytes, 32_bytes).has_value());
  CHECK(map.take_at(96_bytes, 96_bytes).has_value());
  CHECK(map.take(64_bytes)->offset == 192_bytes);
}

TEST_CASE("a place is had at an exact offset only where all of it is free") {
  PlaceMap map(256_bytes, 256_bytes, 16_bytes);
  CHECK(map.take_at(64_bytes, 64_bytes)->offset == 64_bytes);
  CHECK(!map.take_at(64_bytes, 16_bytes).has_value());
  CHECK(!map.take_at(48_bytes, 32_bytes).has_value());
  CHECK(!map.take_at(112_bytes, 32_bytes).has_value());
  CHECK(!map.take_at(240_bytes, 32_bytes).has_value());
  CHECK(map.take_at(0_bytes, 64_bytes).has_value());
  CHECK(map.take_at(128_bytes, 128_bytes).has_value());
  CHECK(map.used() == 256_bytes);
}

TEST_CASE("whoever takes bytes comes after everything that used any of them") {
  PlaceMap map(256_bytes, 256_bytes, 16_bytes);
  (void)map.take(64_bytes);
  (void)map.take(64_bytes);
  map.give_back(0_bytes, 64_bytes, at(5));
  CHECK(map.take_at(0_bytes, 16_bytes)->after == at(5));
  map.give_back(0_bytes, 16_bytes, at(6));
  map.give_back(64_bytes, 64_bytes, Clock::point(QueueKind::d2h, 9));
  const auto all = map.take(256_bytes);
  REQUIRE(all.has_value());
  CHECK(all->after[QueueKind::compute] == 6);
  CHECK(all->after[QueueKind::d2h] == 9);
}

TEST_CASE("bytes that close a gap come after the uses of both neighbours, and after their own") {
  PlaceMap map(256_bytes, 256_bytes, 16_bytes);
  for (int i = 0; i < 4; ++i) (void)map.take(64_bytes);
  map.give_back(0_bytes, 64_bytes, at(5));
  map.give_back(128_bytes, 64_bytes, Clock::point(QueueKind::h2d, 7));
  map.give_back(64_bytes, 64_bytes, Clock::point(QueueKind::d2h, 9));
  const auto joined = map.take(192_bytes);
  REQUIRE(joined.has_value());
  CHECK(joined->after == Clock{{5, 7, 9}});
}

TEST_CASE("reset frees everything behind one point") {
  PlaceMap map(256_bytes, 128_bytes, 16_bytes);
  (void)map.take(100_bytes);
  map.reset(at(7));
  CHECK(map.used() == 0_bytes);
  CHECK(map.take(128_bytes)->after == at(7));
  CHECK(map.take(128_bytes)->after == at(7));
}

TEST_CASE("sizes pack if the largest first do") {
  const PlaceMap map(256_bytes, 128_bytes, 16_bytes);
  const auto packs = [&](std::vector<Bytes> sizes) { return map.would_pack(sizes); };
  CHECK(packs({}));
  CHECK(packs({128_bytes, 128_bytes}));
  CHECK(packs({16_bytes, 96_bytes, 16_bytes, 128_bytes}));
  CHECK(!packs({96_bytes, 96_bytes, 48_bytes}));
  CHECK(!packs({129_bytes}));
  CHECK(!packs({1_bytes, 113_bytes, 128_bytes, 1_bytes}));
  // Each in the smallest room that holds it: in the last one that does, the eight would not fit.
  std::vector<Bytes> tight;
  for (const std::uint64_t size : {18U, 26U, 17U, 6U, 10U, 10U, 11U, 26U}) tight.push_back(Bytes{size});
  CHECK(PlaceMap(140_bytes, 31_bytes, 1_bytes).would_pack(tight));
}

TEST_CASE("sizes pack exactly if they can be taken from an empty map, the largest first") {
  std::mt19937_64 random(1);
  int packed = 0;
  for (int round = 0; round < 5000; ++round) {
    const Bytes budget{40 + random() % 21};
    PlaceMap map(budget, Bytes{8 + random() % 24}, 1_bytes);
    std::vector<Bytes> sizes(6 + random() % 8);
    for (Bytes& size : sizes) size = Bytes{1 + random() % 8};
    std::vector<Bytes> sorted = sizes;
    std::sort(sorted.begin(), sorted.end());
    const bool fits =
        std::all_of(sorted.rbegin(), sorted.rend(), [&](Bytes size) { return map.take(size).has_value(); });
    CHECK(PlaceMap(budget, map.arena(), 1_bytes).would_pack(sizes) == fits);
    if (fits) ++packed;
  }
  CHECK(packed > 500);
  CHECK(packed < 4500);
}

TEST_CASE("a place of no bytes lies within the memory, and takes nothing from it") {
  PlaceMap map(256_bytes, 128_bytes, 16_bytes);
  for (int i = 0; i < 2; ++i) {
    const auto none = map.take(0_bytes);
    REQUIRE(none.has_value());
    CHECK(none->offset < map.budget());
    map.give_back(none->offset, 0_bytes, at(1));
    CHECK(map.used() == 0_bytes);
  }
  CHECK(map.take(128_bytes)->offset == 0_bytes);
  CHECK(map.take_at(128_bytes, 128_bytes).has_value());
}

TEST_CASE("a memory of no bytes has no place, not even for none") {
  PlaceMap map(0_bytes, 16_bytes, 16_bytes);
  std::vector<Bytes> none{0_bytes};
  CHECK(!map.would_pack(none));
  CHECK(!map.take(0_bytes).has_value());
}

TEST_CASE("a place that cannot be taken for want of host memory leaves the map as it was") {
  std::uint64_t fired = 0;
  for (std::uint64_t n = 1; n <= 30; ++n) {
    CAPTURE(n);
    PlaceMap map(256_bytes, 512_bytes, 16_bytes);  // one arena, smaller than it may be
    std::vector<Bytes> taken;
    taken.reserve(8);
    {
      const test::FailingNew failing(n);
      for (std::uint64_t offset = 16; offset < 256; offset += 32) {
        try {
          if (map.take_at(Bytes{offset}, 16_bytes)) taken.push_back(Bytes{offset});
        } catch (const std::bad_alloc&) {
        }
      }
      if (failing.fired()) ++fired;
    }
    CHECK(map.used() == Bytes{16 * taken.size()});
    for (const Bytes offset : taken) map.give_back(offset, 16_bytes, at(1));
    CHECK(map.take_at(0_bytes, 256_bytes).has_value());
  }
  CHECK(fired > 0);
}

TEST_CASE("a thousand places allocate a few times, and after a reset no more") {
  PlaceMap map(Bytes{1000 * 16}, Bytes{1000 * 16}, 16_bytes);
  const std::uint64_t before = test::allocations();
  for (int i = 0; i < 1000; ++i) REQUIRE(map.take(16_bytes).has_value());
  const std::uint64_t once = test::allocations();
  CHECK(once - before <= 12);
  for (int round = 0; round < 10; ++round) {
    map.reset(at(1));
    for (int i = 0; i < 1000; ++i) (void)map.take(16_bytes);
  }
  CHECK(test::allocations() == once);
}

TEST_CASE("random places never overlap, the free bytes are all there is, and giving back allocates nothing") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const Bytes alignment{std::uint64_t{1} << random() % 5};
    const Bytes arena{alignment.value * (1 + random() % 20)};
    PlaceMap map(Bytes{alignment.value * (20 + random() % 60)}, arena, alignment);
    std::map<std::uint64_t, std::uint64_t> taken;  // offset -> end, rounded
    std::uint64_t used = 0;
    for (int step = 0; step < 200; ++step) {
      if (random() % 3 != 0 || taken.empty()) {
        const Bytes size{1 + random() % arena.value};
        std::optional<FreePlace> place;
        if (random() % 2 == 0) {
          place = map.take(size);
        } else {
          place = map.take_at(Bytes{alignment.value * (random() % 80)}, size);
        }
        if (!place) continue;
        const std::uint64_t begin = place->offset.value;
        const std::uint64_t end = begin + round_up(size, alignment).value;
        REQUIRE(end <= map.budget().value);
        REQUIRE(begin % alignment.value == 0);
        REQUIRE(begin / arena.value == (end - 1) / arena.value);
        const auto next = taken.lower_bound(begin);
        REQUIRE((next == taken.end() || next->first >= end));
        REQUIRE((next == taken.begin() || std::prev(next)->second <= begin));
        taken.emplace(begin, end);
        used += end - begin;
      } else {
        auto victim = taken.begin();
        std::advance(victim, static_cast<std::ptrdiff_t>(random() % taken.size()));
        const std::uint64_t before = test::allocations();
        map.give_back(Bytes{victim->first}, Bytes{victim->second - victim->first}, at(1));
        REQUIRE(test::allocations() == before);
        used -= victim->second - victim->first;
        taken.erase(victim);
      }
      REQUIRE(map.used().value == used);
    }
    for (const auto& [begin, end] : taken) map.give_back(Bytes{begin}, Bytes{end - begin}, at(1));
    // All pieces are whole again.
    for (Bytes offset; offset < map.budget(); offset += arena) {
      CHECK(map.take_at(offset, std::min(arena, map.budget() - offset)).has_value());
    }
  }
}
