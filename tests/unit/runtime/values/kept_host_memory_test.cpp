// SPDX-License-Identifier: Apache-2.0
// Host memory that the pool keeps for reuse: when it goes back to the API, when the pool waits for that, and what is in
// it by then.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>

#include "support/host_desk.hpp"
#include "support/telling_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;
using TellingPool = runtime::HostPool<TellingBackend>;

bool pool_refuses(HostDesk& desk, Bytes size) {
  try {
    (void)desk.pool.acquire(size);
  } catch (const OutOfMemory&) {
    return true;
  }
  return false;
}

}  // namespace

// ---- when the pool waits

TEST_CASE("the pool waits for the device only where it keeps something that could go back") {
  for (const Bytes slab : {0_bytes, 1_MiB}) {  // blocks of their own, and blocks in slabs
    CAPTURE(slab.value);
    HostDesk desk(slab, no_limit, 8_MiB);
    auto blocks = desk.acquire(8, 1_MiB);
    CHECK(pool_refuses(desk, 1_MiB));
    CHECK(desk.host().finished == 0);
    desk.pool.release(std::move(blocks[0]));
    blocks[0] = desk.pool.acquire(1_MiB);
    CHECK(pool_refuses(desk, 1_MiB));
    CHECK(desk.host().finished == 0);
    desk.pool.release(std::move(blocks[0]));
    CHECK(pool_refuses(desk, 2_MiB));
    CHECK(desk.host().finished == 1);
    CHECK(desk.host().live == 7_MiB);
    CHECK(pool_refuses(desk, 2_MiB));  // nothing is kept any more
    CHECK(desk.host().finished == 1);
  }
}

TEST_CASE("a free part of a slab in use cannot go back, and is no reason to wait") {
  HostDesk desk(64_MiB, no_limit, 2_MiB);
  auto blocks = desk.acquire(2, 1_MiB);
  REQUIRE(desk.host().pinned == std::vector<Bytes>{2_MiB});
  desk.pool.release(std::move(blocks[0]));
  CHECK(pool_refuses(desk, 2_MiB));
  CHECK(desk.host().finished == 0);
}

TEST_CASE("an unused slab goes back where only pageable memory is large enough") {
  HostDesk desk(64_MiB, 2_MiB, 4_MiB);
  auto blocks = desk.acquire(2, 1_MiB);
  REQUIRE(desk.host().pinned == std::vector<Bytes>{2_MiB});
  desk.release(blocks);
  const Block large = desk.pool.acquire(4_MiB);
  CHECK(large->kind == HostKind::pageable);
  CHECK(desk.host().live == 4_MiB);
  CHECK(desk.host().given_back == 1);
  CHECK(desk.host().finished == 1);
}

TEST_CASE("unused slabs and all that is left of the budget are enough for a block of exactly that size") {
  HostDesk desk(64_MiB, 5_MiB);
  auto blocks = desk.acquire(4, 1_MiB);
  REQUIRE(desk.host().pinned == std::vector<Bytes>{2_MiB, 2_MiB});
  desk.release(blocks);
  CHECK(desk.pool.acquire(5_MiB)->kind == HostKind::pinned);
  CHECK(desk.host().pinned.back() == 5_MiB);
  CHECK(desk.counts_right());
}

TEST_CASE("where the API refuses more page-locked memory, unused slabs make place though the budget has room") {
  HostDesk desk(64_MiB);
  desk.backend.host().most_pinned = 4_MiB;
  auto blocks = desk.acquire(4, 1_MiB);
  REQUIRE(desk.host().pinned == std::vector<Bytes>{2_MiB, 2_MiB});
  desk.release(blocks);
  CHECK(desk.pool.acquire(3_MiB)->kind == HostKind::pinned);
  CHECK(desk.host().given_back == 2);
  CHECK(desk.counts_right());
}

// ---- what the API refuses

TEST_CASE("a block larger than all slabs is asked for once, and slabs are as large as before if it is refused") {
  HostDesk desk(64_MiB);
  desk.backend.host().largest_pinned = 80_MiB;
  CHECK(desk.pool.acquire(100_MiB)->kind == HostKind::pageable);
  CHECK(desk.host().refused == 1);
  CHECK(desk.pool.acquire(60_MiB)->kind == HostKind::pinned);
  CHECK(desk.pool.acquire(10_MiB)->kind == HostKind::pinned);
  CHECK(desk.host().pinned == std::vector<Bytes>{60_MiB, 60_MiB});
}

TEST_CASE("a host that refuses the last bytes of the budget is to blame, and not the budget") {
  HostDesk desk(0_bytes, no_limit, 1_KiB);
  desk.backend.host().most = 0_bytes;
  std::string text;
  try {
    (void)desk.pool.acquire(1_KiB);
  } catch (const OutOfMemory& error) {
    text = error.what();
    CHECK(error.sizes.budget == 0_bytes);
  }
  CHECK(text == "the host refused 1024 bytes for a swapped tensor; 0 are in use");
}

TEST_CASE("an error of the API that is not about memory passes through the pool") {
  for (const Bytes slab : {0_bytes, 4_KiB}) {
    TellingBackend backend(slab);
    TellingPool pool(backend, 1_MiB, 1_MiB);
    backend.told().no_host_memory = true;
    backend.told().refusal = BackendError::Kind::device_lost;
    CHECK_THROWS_AS((void)pool.acquire(64_bytes), BackendError);
    backend.told().no_host_memory = false;
    CHECK(pool.acquire(64_bytes)->kind == HostKind::pinned);
  }
}

// ---- what is in memory that goes back

TEST_CASE("kept memory that goes back to the API while the pool lives was overwritten, if the pool is to do so") {
  for (const Bytes slab : {0_bytes, 4_KiB}) {
    for (const bool scrub : {false, true}) {
      CAPTURE(slab.value);
      CAPTURE(scrub);
      TellingBackend backend(slab);
      TellingPool pool(backend, 8_KiB, 8_KiB, scrub);
      pool.release(pool.acquire(1_KiB));
      const Bytes kept = pool.budget().in_use();
      const auto large = pool.acquire(8_KiB);
      CHECK(backend.told().given_back == 1);
      CHECK(backend.told().zero == (scrub ? 1 : 0));
      const std::vector<std::string> wait{"finish"};
      const std::vector<std::string> wait_and_write{"finish",
                                                    "host writes " + std::to_string(kept.value) + " bytes at 0"};
      CHECK(backend.take_calls() == (scrub ? wait_and_write : wait));
    }
  }
}

TEST_CASE("all that the pool keeps is overwritten before it ends: blocks of their own, and slabs with every block") {
  for (const Bytes slab : {0_bytes, 128_KiB}) {
    CAPTURE(slab.value);
    TellingBackend backend(slab);
    {
      TellingPool pool(backend, 4_KiB, 1_MiB, true);
      std::vector<std::unique_ptr<TellingPool::Block>> blocks;
      for (int i = 0; i < 8; ++i) blocks.push_back(pool.acquire(1_KiB));  // some are pageable
      for (auto& block : blocks) pool.release(std::move(block));
      pool.scrub();
    }
    CHECK(backend.told().given_back == (slab == 0_bytes ? 8 : 5));
    CHECK(backend.told().zero == backend.told().given_back);
  }
}

TEST_CASE("a list of many blocks ends without a call for each of them on the stack") {
  runtime::HostBlockList<NullBackend> list;
  for (int i = 0; i < 500'000; ++i) list.push(std::make_unique<runtime::HostBlock<NullBackend>>());
  CHECK(list.pop() != nullptr);
}
