// SPDX-License-Identifier: Apache-2.0
// Where blocks of host memory come from, on a backend that counts what it is asked for.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated/random.hpp>
#include <swapmm/error.hpp>

#include "support/failing_new.hpp"
#include "support/host_desk.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

std::size_t count_of(const std::vector<Block>& blocks, HostKind kind) {
  return static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.end(), [&](const Block& block) { return block->kind == kind; }));
}

bool lie_apart(const std::vector<Block>& blocks) {
  std::vector<std::pair<const std::byte*, std::uint64_t>> ranges;
  for (const Block& block : blocks) ranges.emplace_back(block->data(), block->size.value);
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i - 1].first + ranges[i - 1].second > ranges[i].first) return false;
  }
  return true;
}

std::vector<Bytes> in_mib(std::initializer_list<std::uint64_t> sizes) {
  std::vector<Bytes> bytes;
  for (const std::uint64_t size : sizes) bytes.push_back(Bytes{size << 20U});
  return bytes;
}

template <class Call>
std::string out_of_memory(Call&& call) {
  try {
    call();
  } catch (const OutOfMemory& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

// ---- slabs

TEST_CASE("a thousand blocks of 1 MiB are 21 pieces of page-locked memory: they double, up to the backend's slab") {
  HostDesk desk(64_MiB);
  const auto blocks = desk.acquire(1000, 1_MiB);
  std::vector<Bytes> expected = in_mib({2, 2, 4, 8, 16, 32});
  expected.resize(21, 64_MiB);
  CHECK(desk.host().pinned == expected);
  CHECK(desk.host().pageable.empty());
  CHECK(desk.host().live == 1024_MiB);
  CHECK(desk.pool.slabs() == 21);
  CHECK(desk.counts_right());
  CHECK(count_of(blocks, HostKind::pinned) == 1000);
  CHECK(lie_apart(blocks));
}

TEST_CASE("where the backend names no slab, each block is a piece of its own, of whole 64 bytes") {
  HostDesk desk(0_bytes);
  const auto blocks = desk.acquire(1000, 1000_bytes);
  CHECK(desk.host().pinned == std::vector<Bytes>(1000, 1024_bytes));
  CHECK(desk.pool.slabs() == 0);
  CHECK(desk.counts_right());
  CHECK(blocks[999]->offset == 0_bytes);
}

TEST_CASE("blocks of one slab begin at multiples of 256 bytes and share no byte, whatever their sizes") {
  HostDesk desk(1_MiB);
  std::vector<Block> blocks;
  Bytes sum;
  for (const std::uint64_t size : {1U, 255U, 256U, 257U, 1000U, 4096U, 5000U, 64U}) {
    blocks.push_back(desk.pool.acquire(Bytes{size}));
    CHECK(blocks.back()->size == round_up(Bytes{size}, 256_bytes));
    CHECK(blocks.back()->offset.value % 256 == 0);
    CHECK(blocks.back()->data() == blocks.back()->memory().data() + blocks.back()->offset.value);
    sum += blocks.back()->size;
  }
  CHECK(lie_apart(blocks));
  CHECK(desk.host().pinned == std::vector<Bytes>{32_KiB});  // a 32nd of the largest
  CHECK(sum < 32_KiB);
}

TEST_CASE(
    "a block above the largest slab is a slab of exactly its size, and one above the next slab makes that larger") {
  HostDesk desk(64_MiB);
  const Block large = desk.pool.acquire(100_MiB);
  CHECK(desk.host().pinned == in_mib({100}));
  const Block small = desk.pool.acquire(1_MiB);
  CHECK(desk.host().pinned == in_mib({100, 64}));
  HostDesk other(64_MiB);
  const Block first = other.pool.acquire(Bytes{(5U << 20U) + 1});
  CHECK(other.host().pinned == std::vector<Bytes>{5_MiB + 4_KiB});  // whole pages
}

TEST_CASE("a block that is released goes to the next one of its size, the last one first") {
  HostDesk desk(1_MiB);
  Block small = desk.pool.acquire(1000_bytes);
  Block other = desk.pool.acquire(1000_bytes);
  Block large = desk.pool.acquire(3000_bytes);
  const Pool::Block* const at_small = small.get();
  const Pool::Block* const at_other = other.get();
  const Pool::Block* const at_large = large.get();
  desk.pool.release(std::move(large));
  desk.pool.release(std::move(small));
  desk.pool.release(std::move(other));
  other = desk.pool.acquire(1024_bytes);
  CHECK(other.get() == at_other);
  small = desk.pool.acquire(800_bytes);
  CHECK(small.get() == at_small);
  large = desk.pool.acquire(3000_bytes);
  CHECK(large.get() == at_large);
  CHECK(desk.host().pinned.size() == 1);
}

// ---- budgets

TEST_CASE("slabs end exactly at the pinned budget, and then values lie in pageable memory, one piece per block") {
  HostDesk desk(64_MiB, 10_MiB);
  const auto blocks = desk.acquire(13, 1_MiB);
  CHECK(desk.host().pinned == in_mib({2, 2, 4, 2}));
  CHECK(desk.host().pageable == in_mib({1, 1, 1}));
  CHECK(count_of(blocks, HostKind::pinned) == 10);
  CHECK(desk.pool.budget().pinned() == 10_MiB);
  CHECK(desk.pool.budget().in_use() == 13_MiB);
  CHECK(desk.counts_right());
}

TEST_CASE("what is left of a budget is used, down to the block's own size, and not a byte beyond") {
  for (const std::uint64_t budget : {4608U, 4863U}) {
    CAPTURE(budget);
    HostDesk desk(64_MiB, Bytes{budget});
    CHECK(desk.pool.acquire(4500_bytes)->kind == HostKind::pinned);
    CHECK(desk.host().pinned == std::vector<Bytes>{4608_bytes});
  }
  HostDesk none(64_MiB, 4607_bytes);
  CHECK(none.pool.acquire(4500_bytes)->kind == HostKind::pageable);
  CHECK(none.host().pageable == std::vector<Bytes>{4608_bytes});
  HostDesk more(64_MiB, 9999_bytes);
  CHECK(more.pool.acquire(4500_bytes)->kind == HostKind::pinned);
  CHECK(more.pool.acquire(4500_bytes)->kind == HostKind::pinned);
  CHECK(more.host().pinned == std::vector<Bytes>{9984_bytes});  // all of it, but for what no block could use
  HostDesk host(64_MiB, no_limit, 1_MiB + 300_bytes);
  const auto blocks = host.acquire(4, 256_KiB);
  CHECK(host.pool.acquire(256_bytes)->kind == HostKind::pinned);
  CHECK(host.host().pinned == std::vector<Bytes>{1_MiB + 256_bytes});
  CHECK(out_of_memory([&] { (void)host.pool.acquire(1_bytes); }) != "nothing was thrown");
}

TEST_CASE("what cannot be had names the bytes that are needed, taken and allowed") {
  HostDesk desk(1_MiB, no_limit, 1_MiB);
  const auto blocks = desk.acquire(2, 300'000_bytes);
  CHECK(out_of_memory([&] { (void)desk.pool.acquire(1_MiB); }) == "host budget exceeded: 1048576 bytes needed, " +
                                                                      std::to_string(desk.host().live.value) +
                                                                      " of 1048576 in use. Raise Options::host_budget");
  HostDesk poor(1_MiB);
  poor.backend.host().most = 0_bytes;
  CHECK(out_of_memory([&] { (void)poor.pool.acquire(1000_bytes); }) ==
        "the host refused 1024 bytes for a swapped tensor; 0 are in use");
}

TEST_CASE("random blocks under random budgets and refusals: never above a budget, never one byte twice") {
  std::size_t fell_back = 0;
  std::size_t out = 0;
  std::size_t gave_back = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    simulated::detail::Random random(seed);
    const Bytes pinned_budget{random.below(200'000)};
    const Bytes host_budget{random.below(400'000)};
    HostDesk desk(Bytes{std::uint64_t{1024} << random.below(10)}, pinned_budget, host_budget);
    if (random.below(3) == 0) desk.backend.host().largest_pinned = Bytes{random.below(50'000)};
    if (random.below(3) == 0) desk.backend.host().most_pinned = Bytes{random.below(100'000)};
    if (random.below(5) == 0) desk.backend.host().most = Bytes{random.below(200'000)};
    std::vector<Block> blocks;
    for (int step = 0; step < 200; ++step) {
      desk.backend.host().busy = true;
      if (blocks.empty() || random.below(100) < 55) {
        try {
          blocks.push_back(desk.pool.acquire(Bytes{1 + random.below(20) * random.below(1000)}));
          if (blocks.back()->kind == HostKind::pageable) ++fell_back;
        } catch (const OutOfMemory&) {
          ++out;
        }
      } else {
        std::swap(blocks[random.below(static_cast<std::uint32_t>(blocks.size()))], blocks.back());
        if (random.below(2) == 0) {
          desk.pool.rest(std::move(blocks.back()));
        } else {
          desk.pool.release(std::move(blocks.back()));
        }
        blocks.pop_back();
      }
      REQUIRE(desk.counts_right());
      REQUIRE(desk.host().pinned_live <= pinned_budget);
      REQUIRE(desk.host().live <= host_budget);
      REQUIRE(lie_apart(blocks));
    }
    CHECK(desk.host().given_back_busy == 0);
    gave_back += desk.host().given_back;
  }
  CHECK(fell_back > 1000);
  CHECK(out > 1000);
  CHECK(gave_back > 1000);
}

// ---- an API that refuses

TEST_CASE("where the API refuses a slab, the block's own size is tried, and so large a slab is not asked for again") {
  HostDesk desk(64_MiB);
  desk.backend.host().largest_pinned = 3_MiB;
  const auto blocks = desk.acquire(100, 1_MiB);
  CHECK(count_of(blocks, HostKind::pinned) == 100);
  CHECK(desk.host().refused == 1);  // 4 MiB
  std::vector<Bytes> expected = in_mib({2, 2, 1});
  expected.resize(51, 2_MiB);
  CHECK(desk.host().pinned == expected);
}

TEST_CASE("where the API has no page-locked memory, each block is pageable") {
  HostDesk desk(64_MiB);
  desk.backend.host().most_pinned = 0_bytes;
  const auto blocks = desk.acquire(3, 1_MiB);
  CHECK(count_of(blocks, HostKind::pageable) == 3);
  CHECK(desk.host().pageable == in_mib({1, 1, 1}));
  CHECK(desk.host().finished == 0);
}

// ---- blocks that rest

TEST_CASE("a block that rests is used again when four others of its size have come, the oldest first") {
  for (const Bytes slab : {0_bytes, 64_MiB}) {
    CAPTURE(slab.value);
    HostDesk desk(slab);
    std::vector<const std::byte*> places;
    for (int i = 0; i < 12; ++i) {
      Block block = desk.pool.acquire(1_MiB);
      places.push_back(block->data());
      CHECK(block->kind == HostKind::pinned);
      desk.pool.rest(std::move(block));
    }
    for (std::size_t i = 5; i < places.size(); ++i) CHECK(places[i] == places[i - 5]);
    CHECK(desk.host().pinned_live <= 8_MiB);  // five, in slabs
    CHECK(desk.counts_right());
    // Another size is not served by them, and all unused memory goes back.
    const Block other = desk.pool.acquire(3_MiB);
    CHECK(std::find(places.begin(), places.end(), other->data()) == places.end());
    desk.pool.give_back_all_unused();
    CHECK(desk.pool.budget().in_use() >= 3_MiB);
    CHECK(desk.counts_right());
  }
}

TEST_CASE("where there is no room beside them, blocks that rest are used, the oldest first") {
  HostDesk desk(0_bytes, 2_MiB, 2_MiB);
  Block first = desk.pool.acquire(1_MiB);
  Block second = desk.pool.acquire(1_MiB);
  const std::byte* const place = first->data();
  desk.pool.rest(std::move(first));
  desk.pool.rest(std::move(second));
  CHECK(desk.pool.acquire(1_MiB)->data() == place);
  CHECK(desk.host().finished == 0);
}

TEST_CASE("where the API refuses page-locked memory beside blocks that rest, it is not asked again and again") {
  HostDesk desk(0_bytes);
  Block block = desk.pool.acquire(1_MiB);
  desk.backend.host().most_pinned = 1_MiB;
  for (int i = 0; i < 50; ++i) {
    desk.pool.rest(std::move(block));
    block = desk.pool.acquire(1_MiB);
    REQUIRE(block->kind == HostKind::pinned);
  }
  CHECK(desk.host().refused == 1);
  CHECK(desk.host().pageable.empty());
}

TEST_CASE("the peak of a pool that begins is what is in use") {
  HostDesk desk(0_bytes);
  { desk.pool.release(desk.pool.acquire(5_MiB)); }
  CHECK(desk.pool.budget().peak() == 5_MiB);
  desk.pool.begin();
  CHECK(desk.host().live == 0_bytes);
  CHECK(desk.pool.budget().peak() == 0_bytes);
}

// ---- blocks of one size that become those of another

TEST_CASE("two free neighbours become one block without new memory and without a wait, where the budget is short") {
  for (const bool last_first : {false, true}) {  // how they are given back
    CAPTURE(last_first);
    HostDesk desk(64_MiB, 8_MiB);
    auto blocks = desk.acquire(8, 1_MiB);  // in slabs of 2, 2 and 4
    REQUIRE(desk.host().pinned == in_mib({2, 2, 4}));
    blocks[5]->written = 7;
    blocks[5]->read = 3;
    blocks[6]->written = 4;
    blocks[6]->read = 9;
    const std::byte* const place = blocks[5]->data();
    desk.pool.release(std::move(blocks[last_first ? 6 : 5]));
    desk.pool.release(std::move(blocks[last_first ? 5 : 6]));
    const Block both = desk.pool.acquire(2_MiB);
    CHECK(both->kind == HostKind::pinned);
    CHECK(both->data() == place);
    CHECK(both->written == 7);  // whoever writes it next comes after all copies of before
    CHECK(both->read == 9);
    CHECK(desk.host().pinned.size() == 3);
    CHECK(desk.host().pageable.empty());
    CHECK(desk.host().finished == 0);
  }
}

TEST_CASE("a larger block is cut, and what is left of it stays free for others") {
  HostDesk desk(64_MiB, 2_MiB);
  desk.pool.release(desk.pool.acquire(2_MiB));
  const auto blocks = desk.acquire(4, 512_KiB);
  CHECK(count_of(blocks, HostKind::pinned) == 4);
  CHECK(lie_apart(blocks));
  CHECK(desk.host().pinned == in_mib({2}));
  CHECK(desk.pool.acquire(512_KiB)->kind == HostKind::pageable);
}

TEST_CASE("free bytes that are no neighbours are no block, not even across two slabs that lie side by side") {
  HostDesk desk(64_MiB, 4_MiB);
  auto blocks = desk.acquire(4, 1_MiB);  // in slabs of 2 and 2
  REQUIRE(desk.host().pinned == in_mib({2, 2}));
  desk.pool.release(std::move(blocks[1]));
  desk.pool.release(std::move(blocks[2]));
  CHECK(desk.pool.acquire(2_MiB)->kind == HostKind::pageable);
  CHECK(desk.host().finished == 0);  // no slab is unused: waiting would bring nothing
}

TEST_CASE("as long as the budget has room, kept blocks keep their size") {
  HostDesk desk(64_MiB);
  Block block = desk.pool.acquire(2_MiB);
  const Pool::Block* const kept = block.get();
  desk.pool.release(std::move(block));
  const Block other = desk.pool.acquire(1_MiB);
  CHECK(desk.host().pinned == in_mib({2, 2}));
  CHECK(desk.pool.acquire(2_MiB).get() == kept);
}

TEST_CASE("a block from which a read is promised keeps its bytes") {
  HostDesk desk(64_MiB, 2_MiB);
  Block block = desk.pool.acquire(2_MiB);
  runtime::PendingRead read;
  block->pending = &read;
  desk.pool.release(std::move(block));
  CHECK(desk.pool.acquire(1_MiB)->kind == HostKind::pageable);
  block = desk.pool.acquire(2_MiB);
  CHECK(block->pending == &read);
  block->pending = nullptr;
}

// ---- back to the API

TEST_CASE("unused slabs that are each too small make place for a larger one, once the device has ended its work") {
  HostDesk desk(64_MiB, 4_MiB);
  auto blocks = desk.acquire(4, 1_MiB);
  REQUIRE(desk.host().pinned == in_mib({2, 2}));
  desk.release(blocks);
  desk.backend.host().busy = true;
  const Block block = desk.pool.acquire(3_MiB);
  CHECK(block->kind == HostKind::pinned);
  CHECK(desk.host().pinned == in_mib({2, 2, 3}));
  CHECK(desk.host().given_back == 2);
  CHECK(desk.host().given_back_busy == 0);
  CHECK(desk.host().finished == 1);
  CHECK(desk.pool.slabs() == 1);
  CHECK(desk.counts_right());
}

TEST_CASE("a slab in which something lies stays") {
  HostDesk desk(64_MiB, 4_MiB);
  auto blocks = desk.acquire(4, 1_MiB);
  const Block used = std::move(blocks.back());
  blocks.pop_back();
  desk.release(blocks);
  const Block large = desk.pool.acquire(3_MiB);
  CHECK(large->kind == HostKind::pageable);
  CHECK(desk.host().given_back == 0);
  CHECK(desk.host().finished == 0);
  CHECK(desk.pool.acquire(2_MiB)->kind == HostKind::pinned);  // the unused one is enough for this
  CHECK(desk.host().pinned == in_mib({2, 2}));
}

TEST_CASE(
    "where the host budget is short, kept pageable blocks and unused slabs go back, and a slab comes in their place") {
  HostDesk desk(64_MiB, 2_MiB, 4_MiB);
  auto blocks = desk.acquire(4, 1_MiB);
  REQUIRE(desk.host().pinned == in_mib({2}));
  REQUIRE(desk.host().pageable == in_mib({1, 1}));
  desk.release(blocks);
  desk.backend.host().busy = true;
  const Block block = desk.pool.acquire(4_MiB);
  CHECK(block->kind == HostKind::pageable);  // above the pinned budget
  CHECK(desk.host().live == 4_MiB);
  CHECK(desk.host().given_back == 3);
  CHECK(desk.host().given_back_busy == 0);
  CHECK(desk.counts_right());
  CHECK(desk.pool.budget().peak() == 4_MiB);
}

TEST_CASE("without slabs, kept blocks go back to the API where the host budget is short") {
  HostDesk desk(0_bytes, no_limit, 4_MiB);
  auto blocks = desk.acquire(4, 1_MiB);
  desk.release(blocks);
  const Block small = desk.pool.acquire(1_MiB);
  CHECK(desk.host().finished == 0);
  desk.backend.host().busy = true;
  const Block large = desk.pool.acquire(3_MiB);  // exactly the rest
  CHECK(large->kind == HostKind::pinned);
  CHECK(desk.host().finished == 1);
  CHECK(desk.host().given_back == 3);
  CHECK(desk.host().given_back_busy == 0);
  CHECK(desk.counts_right());
}

TEST_CASE("where sizes vary, what is kept has no more than a few times the bytes that values need") {
  for (const Bytes slab : {0_bytes, 64_MiB}) {
    for (const bool grow : {false, true}) {
      CAPTURE(slab.value);
      CAPTURE(grow);
      HostDesk desk(slab);
      std::uint64_t state = 1;
      Bytes most;
      for (std::uint64_t round = 0; round < 1000; ++round) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        const std::uint64_t step = grow ? round : (state >> 33U) % 400;
        const Bytes size{(1U << 20U) + step * (4U << 10U)};
        auto blocks = desk.acquire(10, size);
        for (const Block& block : blocks) {
          CHECK(block->size >= size);
          CHECK(block->size.value <= 2 * size.value);
        }
        CHECK(lie_apart(blocks));
        most = std::max(most, Bytes{10 * size.value});
        desk.backend.host().busy = true;
        desk.release(blocks);
        if (round > 10) CHECK(desk.host().live.value <= 5 * most.value + (64U << 20U));
      }
      CHECK(desk.counts_right());
      CHECK(desk.host().given_back_busy == 0);
      // Each larger size needs memory of its own where there are no slabs.
      if (!grow || slab.value != 0) CHECK(desk.host().pinned.size() < 500);  // of 10,000 blocks
    }
  }
}

TEST_CASE("sizes that take turns keep blocks of their own, also if only one of them is in use at a time") {
  HostDesk desk(0_bytes);
  for (int round = 0; round < 20; ++round) {
    for (const std::uint64_t size : {10U, 21U, 43U}) {
      auto blocks = desk.acquire(1, Bytes{size << 20U});
      CHECK(blocks.front()->size.value == size << 20U);
      desk.release(blocks);
    }
  }
  CHECK(desk.host().pinned == in_mib({10, 21, 43}));
  CHECK(desk.host().finished == 0);
}

TEST_CASE("the pool gives back all it took") {
  CountingBackend backend(1_MiB);
  {
    Pool pool(backend, 3_MiB, no_limit);
    std::vector<Block> blocks;
    for (int i = 0; i < 10; ++i) blocks.push_back(pool.acquire(500'000_bytes));
    for (Block& block : blocks) pool.release(std::move(block));
    CHECK(backend.host().live > 3_MiB);
  }
  CHECK(backend.host().live == 0_bytes);
}

// ---- what it costs

TEST_CASE("blocks that come and go allocate nothing, nor do two sizes that take turns in one place") {
  HostDesk desk(64_MiB, 2_MiB);
  const auto take_turns = [&] {
    Block large = desk.pool.acquire(2_MiB);
    CHECK(large->kind == HostKind::pinned);
    desk.pool.release(std::move(large));
    Block first = desk.pool.acquire(1_MiB);
    Block second = desk.pool.acquire(1_MiB);
    CHECK(second->kind == HostKind::pinned);
    desk.pool.release(std::move(first));
    desk.pool.release(std::move(second));
  };
  take_turns();
  take_turns();
  const std::uint64_t allocated = allocations();
  for (int i = 0; i < 100; ++i) take_turns();
  CHECK(allocations() == allocated);
  CHECK(desk.host().pinned == in_mib({2}));
  CHECK(desk.host().finished == 0);
}

TEST_CASE("an allocation that fails in the pool costs nothing but its call") {
  for (std::uint64_t n = 1;; ++n) {
    CAPTURE(n);
    HostDesk desk(1_MiB, 128_KiB, 1_MiB);
    std::vector<Block> blocks;
    blocks.reserve(20);
    bool fired = false;
    {
      const FailingNew failing(n);
      for (std::size_t i = 0; i < 12; ++i) {
        try {
          blocks.push_back(desk.pool.acquire(Bytes{20'000 + 5'000 * (i % 5)}));
        } catch (const std::bad_alloc&) {
        }
        if (i % 3 == 2 && !blocks.empty()) {
          desk.pool.release(std::move(blocks.back()));
          blocks.pop_back();
        }
      }
      fired = failing.fired();
    }
    REQUIRE(desk.counts_right());
    REQUIRE(lie_apart(blocks));
    desk.release(blocks);
    CHECK(desk.pool.acquire(100'000_bytes)->kind == HostKind::pinned);
    CHECK(desk.counts_right());
    if (!fired) break;
  }
}
