// SPDX-License-Identifier: Apache-2.0
// Blocks of a file or of a neighbour: the one that was given back first is used first, and others before it.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <swapmm/runtime/blocks/placed_blocks.hpp>

#include "support/null_backend.hpp"

namespace swapmm::test::placed_blocks_test {
namespace {

using Blocks = runtime::PlacedBlocks<NullBackend>;
using Block = std::unique_ptr<Blocks::Block>;

constexpr Bytes size{64};

struct Desk {
  explicit Desk(Bytes bytes) : blocks(runtime::PlaceMap(bytes, bytes, Bytes{64}), runtime::Home::file), ready(bytes) {}

  Block acquire(Bytes wanted = size) {
    return blocks.acquire(wanted, ready, [&](Bytes end) {
      ++asked;
      if (end > most) return false;
      ready = end;
      return true;
    });
  }

  Blocks blocks;
  Bytes ready;                  // so much is usable
  Bytes most = Bytes{1 << 20};  // so much can be made usable
  int asked = 0;
};

}  // namespace

TEST_CASE("a block that was given back is used again last") {
  Desk desk(Bytes{16 * 64});
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 40; ++i) {
    Block block = desk.acquire();
    REQUIRE(block != nullptr);
    offsets.push_back(block->offset.value);
    CHECK(desk.blocks.in_use() == size);
    block->read = static_cast<runtime::QueuePoint>(i + 1);
    desk.blocks.release(std::move(block));
    CHECK(desk.blocks.in_use() == Bytes{});
  }
  for (std::size_t i = 8; i < offsets.size(); ++i) {
    for (std::size_t back = 1; back < 8; ++back) REQUIRE(offsets[i] != offsets[i - back]);
  }
  CHECK(desk.blocks.peak() == size);
}

TEST_CASE("of bytes that are ready, those that fit less well are used before others that cannot be made usable") {
  Desk desk(Bytes{12 * 64});
  desk.ready = desk.most = Bytes{9 * 64};
  Block large = desk.acquire(Bytes{7 * 64});
  Block behind = desk.acquire(Bytes{64});
  desk.blocks.release(std::move(large));
  const Block fits = desk.acquire(Bytes{4 * 64});  // as the last four do that there are, of which one is ready
  REQUIRE(fits != nullptr);
  CHECK(fits->offset.value == 0);
  CHECK(desk.acquire(Bytes{4 * 64}) == nullptr);
  CHECK(desk.blocks.in_use() == Bytes{5 * 64});
}

TEST_CASE("a place whose bytes cannot be made usable because of an error is free again") {
  runtime::PlacedBlocks<NullBackend> blocks(runtime::PlaceMap(Bytes{256}, Bytes{256}, Bytes{64}), runtime::Home::file);
  const auto fails = [](Bytes) -> bool { throw BackendError(BackendError::Kind::failed, 5, "the disk"); };
  CHECK_THROWS_AS((void)blocks.acquire(Bytes{256}, Bytes{}, fails), BackendError);
  CHECK(blocks.in_use() == Bytes{});
  CHECK(blocks.acquire(Bytes{256}, Bytes{}, [](Bytes) { return true; }) != nullptr);
}

TEST_CASE("whoever uses a block again comes after the last copies from it and into it") {
  Desk desk(Bytes{64});
  Block block = desk.acquire();
  block->read = 7;
  block->written = 5;
  desk.blocks.release(std::move(block));
  block = desk.acquire();
  CHECK(block->read == 7);
  CHECK(block->written == 5);
  // As a part of another size, too.
  desk.blocks.release(std::move(block));
  Desk large(Bytes{128});
  Block first = large.acquire();
  Block second = large.acquire();
  first->read = 3;
  second->written = 9;
  large.blocks.release(std::move(first));
  large.blocks.release(std::move(second));
  const Block both = large.acquire(Bytes{128});
  REQUIRE(both != nullptr);
  CHECK(both->read == 3);
  CHECK(both->written == 9);
}

TEST_CASE("all bytes can be used, whatever the sizes before were") {
  Desk desk(Bytes{16 * 64});
  for (const std::uint64_t each : {64U, 128U, 256U, 512U, 1024U, 64U}) {
    std::vector<Block> all;
    for (std::uint64_t used = 0; used < 1024; used += each) {
      all.push_back(desk.acquire(Bytes{each}));
      REQUIRE(all.back() != nullptr);
    }
    CHECK(desk.acquire() == nullptr);
    CHECK(desk.blocks.in_use() == Bytes{1024});
    for (Block& block : all) desk.blocks.release(std::move(block));
    CHECK(desk.blocks.in_use() == Bytes{});
  }
  CHECK(desk.blocks.peak() == Bytes{1024});
}

TEST_CASE("a file does not grow so that a block may rest, and a full disk is asked only if nothing else is left") {
  Desk desk(Bytes{1 << 20});
  desk.ready = Bytes{};
  desk.most = Bytes{2 * 64};
  Block first = desk.acquire();
  Block second = desk.acquire();
  CHECK(desk.asked == 2);
  CHECK(desk.ready == Bytes{128});
  for (int i = 0; i < 20; ++i) {
    desk.blocks.release(std::exchange(first, std::exchange(second, nullptr)));
    second = desk.acquire();
    REQUIRE(second != nullptr);
  }
  CHECK(desk.asked == 2);
  CHECK(desk.acquire() == nullptr);
  CHECK(desk.asked > 2);
}

}  // namespace swapmm::test::placed_blocks_test
