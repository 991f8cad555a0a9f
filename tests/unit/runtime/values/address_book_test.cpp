// SPDX-License-Identifier: Apache-2.0
// Device memory in arenas, and the addresses in it.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/runtime/values/address_book.hpp>
#include <swapmm/runtime/values/host_pool.hpp>
#include <swapmm/runtime/values/scrubber.hpp>

#include "support/replaying_backend.hpp"
#include "support/telling_backend.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using NullBook = runtime::AddressBook<NullBackend>;        // whose addresses are objects
using PlainBook = runtime::AddressBook<ReplayingBackend>;  // whose addresses are none
static_assert(NullBook::has_order && !PlainBook::has_order);

/// The parts of the memory that the book visits: their places, counted from the first byte of their arena, and sizes.
std::vector<std::pair<std::ptrdiff_t, Bytes>> covered_parts(NullBook& book, Bytes arena, Bytes most) {
  std::vector<std::pair<std::ptrdiff_t, Bytes>> parts;
  book.cover(most, [&](const NullBackend::Address& address, Bytes size) {
    Bytes sum;
    for (const auto& part : parts) sum += part.second;
    parts.emplace_back(address.place - book.at(Bytes{sum.value / arena.value * arena.value}, 1_bytes)->place, size);
  });
  return parts;
}

}  // namespace

TEST_CASE("all device memory is covered once, in parts that lie in one arena each") {
  NullBackend backend;
  NullBook book(backend, 448_bytes, 256_bytes);
  using Parts = std::vector<std::pair<std::ptrdiff_t, Bytes>>;
  CHECK(covered_parts(book, 256_bytes, 64_bytes) == Parts{{0, 64_bytes},
                                                          {64, 64_bytes},
                                                          {128, 64_bytes},
                                                          {192, 64_bytes},
                                                          {0, 64_bytes},
                                                          {64, 64_bytes},
                                                          {128, 64_bytes}});
  CHECK(covered_parts(book, 256_bytes, 192_bytes) == Parts{{0, 192_bytes}, {192, 64_bytes}, {0, 192_bytes}});
  CHECK(covered_parts(book, 256_bytes, 1_KiB) == Parts{{0, 256_bytes}, {0, 192_bytes}});
}

TEST_CASE("device memory that was given back is not covered any more, and may be taken again") {
  NullBackend backend;
  NullBook book(backend, 512_bytes, 256_bytes);
  (void)book.at(256_bytes, 64_bytes);
  book.give_back();
  CHECK(book.size() == 0);
  CHECK(backend.counters().objects_live == 0);
  CHECK(covered_parts(book, 256_bytes, 64_bytes).empty());
  book.take(128_bytes, 128_bytes);
  CHECK(covered_parts(book, 128_bytes, 128_bytes).size() == 1);
}

TEST_CASE("device memory is overwritten from a block of zeros, and the host waits for each copy once it has begun") {
  TellingBackend backend;
  runtime::HostPool<TellingBackend> pool(backend, 1_KiB, 1_KiB);
  runtime::AddressBook<TellingBackend> book(backend, 192_bytes, 192_bytes);
  runtime::Scrubber<TellingBackend> scrubber(pool.acquire(128_bytes));
  scrubber.scrub(backend, book, 64_bytes);
  CHECK(backend.take_calls() == std::vector<std::string>{
                                    "host writes 128 bytes at 0",
                                    "copy of 128 bytes to device after 0",
                                    "flush",
                                    "host waits",
                                    "copy of 64 bytes to device after 0",
                                    "flush",
                                    "host waits",
                                });
}

TEST_CASE("the book forgets all addresses except those that it is told to keep, which do not move") {
  ReplayingBackend backend;
  PlainBook book(backend, 512_bytes, 512_bytes);
  for (std::uint64_t i = 0; i < 8; ++i) (void)book.at(Bytes{i * 64}, 64_bytes);
  CHECK_FALSE(book.is_crowded());
  const auto* const first = book.at(128_bytes, 64_bytes);
  const auto* const second = book.at(128_bytes, 32_bytes);
  book.keep_only(4, [](auto&& visit) {
    visit(128_bytes, 64_bytes);
    visit(128_bytes, 32_bytes);
    visit(128_bytes, 64_bytes);  // tensors without bytes may share a place
    visit(192_bytes, 32_bytes);  // which has no address
  });
  CHECK(book.size() == 2);
  CHECK(book.at(128_bytes, 64_bytes) == first);
  CHECK(book.at(128_bytes, 32_bytes) == second);
  CHECK(first->place == second->place);
}

TEST_CASE("addresses that are objects go all together, and may be made again") {
  NullBackend backend;
  NullBook book(backend, 1_MiB, 1_MiB);
  const std::uint64_t others = backend.counters().objects_live;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i <= 4096; ++i) (void)book.at(Bytes{i * 64}, 64_bytes);
    CHECK(book.is_crowded());
    book.allow_for(book.size());
    CHECK_FALSE(book.is_crowded());
    for (std::uint64_t i = 0; i <= 4096; ++i) (void)book.at(Bytes{i * 64}, 32_bytes);
    CHECK_FALSE(book.is_crowded());  // exactly twice as many
    (void)book.at(0_bytes, 16_bytes);
    CHECK(book.is_crowded());
    book.forget_all();
    CHECK(book.size() == 0);
    CHECK(backend.counters().objects_live == others);
  }
}

TEST_CASE("a book is crowded above 4096 addresses, and above twice as many as it kept") {
  ReplayingBackend backend;
  PlainBook book(backend, 1_MiB, 1_MiB);
  std::uint64_t next = 0;
  const auto fill_to = [&](std::size_t count) {
    while (book.size() < count) (void)book.at(Bytes{next++ * 64}, 64_bytes);
  };
  fill_to(4096);
  CHECK_FALSE(book.is_crowded());
  fill_to(4097);
  CHECK(book.is_crowded());
  const auto keep = [&](std::size_t count) {
    book.keep_only(count, [&](auto&& visit) {
      for (std::uint64_t i = next - count; i < next; ++i) visit(Bytes{i * 64}, 64_bytes);
    });
  };
  keep(3000);
  fill_to(6000);
  CHECK_FALSE(book.is_crowded());
  fill_to(6001);
  CHECK(book.is_crowded());
  keep(10);
  fill_to(4096);
  CHECK_FALSE(book.is_crowded());
  fill_to(4097);
  CHECK(book.is_crowded());
}
