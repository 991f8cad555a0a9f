// SPDX-License-Identifier: Apache-2.0
// Blocks of memory, their states and permissions.
#include <doctest/doctest.h>

#if defined(__linux__)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/pages/area.hpp>
#include <swapmm/pages/page_access.hpp>

using namespace swapmm::pages;

namespace {

const std::size_t page = page_bytes();

std::vector<std::byte> filled(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

/// Each byte is in the block that at() names, and the blocks follow each other.
void check_blocks(const Area& area) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < area.count(); ++i) {
    CHECK(area.block(i).begin == end);
    end = area.block(i).end;
    CHECK(area.at(area.block(i).begin) == i);
    CHECK(area.at(end - 1) == i);
    if (!area.is_eager(i)) CHECK(reinterpret_cast<std::uintptr_t>(area.bytes_of(i).data()) % page == 0);
  }
  CHECK(end == area.bytes().size());
}

}  // namespace

TEST_CASE("memory of an area's own has no edges") {
  for (const std::size_t bytes : {std::size_t{1}, page, 4 * page + 1, 9 * page - 1}) {
    const Area area({}, bytes, 2 * page, BlockState::modified, {});
    CHECK(area.why_eager().empty());
    CHECK(area.count() == (bytes + 2 * page - 1) / (2 * page));
    check_blocks(area);
    CHECK(std::ranges::all_of(area.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    CHECK(area.protected_part().end == bytes);
  }
}

TEST_CASE("an array's edges are eager blocks") {
  std::vector<std::byte> memory(12 * page);
  const std::span<std::byte> all = memory;
  const std::size_t to_page = page - reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  for (const std::size_t shift : {to_page, to_page + 1, to_page + page - 1}) {
    for (const std::size_t bytes : {2 * page, 5 * page, 5 * page + 7, 6 * page - 1}) {
      const Area area(all.subspan(shift, bytes), bytes, 2 * page, BlockState::modified, {});
      CHECK(area.why_eager().empty());
      check_blocks(area);
      CHECK(area.is_eager(0) == (shift % page != to_page % page));
      CHECK(area.protected_part().end - area.protected_part().begin >= bytes - 2 * page + 2);
    }
  }
  const Area none(all.subspan(to_page + 1, page), page, 2 * page, BlockState::modified, {});
  CHECK(none.why_eager() == "the memory has no whole page");
  check_blocks(none);
}

TEST_CASE("a block is filled, closed, changed and forgotten") {
  for (const bool lazy : {true, false}) {
    Area area({}, 5 * page, 2 * page, BlockState::absent, lazy ? "" : "a test");
    CHECK(area.why_eager() == (lazy ? "" : "a test"));
    CHECK(area.state(1) == BlockState::absent);
    CHECK(area.fill(1, filled(2 * page, 7), false));
    CHECK(area.state(1) == BlockState::clean);
    CHECK(area.bytes()[2 * page] == std::byte{7});
    CHECK(!area.is_modified(1));
    CHECK(area.open(1));
    area.bytes()[2 * page + 5] = std::byte{8};
    CHECK(area.is_modified(1));
    area.close(1);
    CHECK(!area.is_modified(1));
    CHECK(area.bytes()[2 * page + 5] == std::byte{8});
    area.reopen(1);
    CHECK(area.is_modified(1));
    CHECK(area.fill(2, filled(page, 9), true));
    CHECK(area.is_modified(2) == lazy);
    area.forget(2 * page, 2 * page + 1);
    CHECK(area.state(1) == BlockState::absent);
    CHECK(area.state(2) != BlockState::absent);
    area.forget();
    CHECK(area.state(2) == BlockState::absent);
  }
}

TEST_CASE("where ranges of pages run out, all blocks become one") {
  Area area({}, 6 * page, 2 * page, BlockState::absent, {});
  CHECK(area.fill(1, filled(2 * page, 2), false));
  CHECK(area.poke(0, filled(2 * page, 1)));
  CHECK(area.poke(2, filled(2 * page, 3)));
  CHECK(area.state(0) == BlockState::absent);
  CHECK(area.open_all());
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(area.is_modified(i));
    CHECK(area.bytes_of(i).back() == static_cast<std::byte>(i + 1));
    area.bytes_of(i).front() = std::byte{9};
  }
}

TEST_CASE("the end of an area gives the program's memory back as it was to use") {
  std::vector<std::byte> memory(6 * page, std::byte{1});
  {
    const Area area(memory, memory.size(), page, BlockState::absent, {});
    CHECK(area.why_eager().empty());
  }
  CHECK(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{1}; }));
  std::ranges::fill(memory, std::byte{2});
}

TEST_CASE("clean blocks are forgotten, but no edge that the program has written to") {
  const std::size_t page = page_bytes();
  std::vector<std::byte> memory(8 * page);
  const std::size_t to_page = page - reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  // 10 bytes, two lazy blocks of a page, 10 bytes
  Area area(std::span<std::byte>(memory).subspan(to_page + page - 10, 2 * page + 20), 2 * page + 20, page,
            BlockState::absent, {});
  REQUIRE(area.why_eager().empty());
  REQUIRE(area.count() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    REQUIRE(area.fill(i, std::vector<std::byte>(area.bytes_of(i).size(), std::byte{7}), false));
  }
  area.bytes_of(3)[2] = std::byte{8};  // nothing notices
  area.forget_clean();
  CHECK(area.state(0) == BlockState::absent);
  CHECK(area.state(1) == BlockState::absent);
  CHECK(area.state(2) == BlockState::absent);
  CHECK(area.state(3) == BlockState::clean);
  CHECK(area.is_modified(3));
}

#endif
