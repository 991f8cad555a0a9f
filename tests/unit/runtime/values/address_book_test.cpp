// SPDX-License-Identifier: Apache-2.0
// Device memory in arenas, and the addresses in it.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/runtime/values/address_book.hpp>
#include <swapmm/runtime/values/host_pool.hpp>
#include <swapmm/runtime/values/scrubber.hpp>

#include "support/telling_backend.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using NullBook = runtime::AddressBook<NullBackend>;

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
