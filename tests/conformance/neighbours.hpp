// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a backend that can use other devices' memory promises beyond conformance.hpp: see NeighbourBackend. An adaptor
// has, besides what conformance.hpp says, neighbour(backend, bytes): a Neighbour with that much memory.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/neighbour.hpp>

#include "conformance/conformance.hpp"

namespace swapmm::conformance {

/// A neighbour of no backend.
struct Stranger final : Neighbour {
  [[nodiscard]] Bytes capacity() const override { return Bytes{4096}; }
  [[nodiscard]] Bytes alignment() const override { return Bytes{64}; }
  [[nodiscard]] std::string name() const override { return "a stranger"; }
};

template <class A>
struct NeighbourBench : Bench<A> {
  static constexpr Bytes bytes{4 * Bench<A>::size};

  std::shared_ptr<Neighbour> neighbour = A::neighbour(this->backend, bytes);
  typename A::Backend::NeighbourMemory there = this->backend.allocate_at(*neighbour, bytes, 0);
};

}  // namespace swapmm::conformance

TEST_CASE_TEMPLATE_DEFINE("a value goes to a neighbour and comes back, with odd sizes and offsets", A, c_neighbour) {
  using namespace swapmm;
  conformance::NeighbourBench<A> bench;
  auto& b = bench.backend;
  CHECK(bench.neighbour->capacity() == bench.bytes);
  CHECK(bench.neighbour->largest_allocation() > Bytes{0});
  CHECK_FALSE(bench.neighbour->name().empty());
  for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{333}, bench.size}) {
    for (const std::size_t offset : {0U, 1U, 1000U}) {
      std::fill_n(bench.target.data(), bench.size * bench.places, std::byte{0});
      bench.upload(1, bench.event[0]);
      bench.upload(2, bench.event[1]);
      b.flush(QueueKind::h2d);
      b.copy_to_neighbour(bench.there, Bytes{offset}, bench.place[1], Bytes{size}, conformance::after(bench.event[0]),
                          bench.event[2]);
      b.flush(QueueKind::neighbour_out);
      bench.wait_on(QueueKind::neighbour_in, {&bench.event[1], &bench.event[2]});
      b.copy_from_neighbour(bench.place[2], bench.there, Bytes{offset}, Bytes{size}, {}, bench.event[3]);
      b.flush(QueueKind::neighbour_in);
      bench.download(2, bench.event[4], conformance::after(bench.event[3]));
      b.flush(QueueKind::d2h);
      b.wait(bench.event[4]);
      const std::byte* const got = bench.target.data() + 2 * bench.size;
      CHECK(std::equal(got, got + size, bench.source.data() + bench.size));
      CHECK(std::equal(got + size, got + bench.size, bench.source.data() + 2 * bench.size + size));
    }
  }
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("work on the device waits for a neighbour, and a neighbour for the device", A,
                          c_neighbour_order) {
  using namespace swapmm;
  conformance::NeighbourBench<A> bench;
  auto& b = bench.backend;
  for (int round = 0; round < 8; ++round) {
    std::fill_n(bench.target.data(), bench.size * bench.places, std::byte{0});
    bench.upload(0, bench.event[0]);
    b.flush(QueueKind::h2d);
    bench.wait_on(QueueKind::compute, {&bench.event[0]});
    A::add(b, bench.place[0], bench.place[1], bench.size, 3);
    b.record(QueueKind::compute, bench.event[1]);
    b.flush(QueueKind::compute);
    b.copy_to_neighbour(bench.there, Bytes{bench.size}, bench.place[1], Bytes{bench.size},
                        conformance::after(bench.event[1]), bench.event[2]);
    b.record(QueueKind::neighbour_out, bench.event[3]);
    b.flush(QueueKind::neighbour_out);
    b.copy_from_neighbour(bench.place[2], bench.there, Bytes{bench.size}, Bytes{bench.size},
                          conformance::after(bench.event[3]), bench.event[4]);
    b.flush(QueueKind::neighbour_in);
    bench.wait_on(QueueKind::compute, {&bench.event[4]});
    A::add(b, bench.place[2], bench.place[3], bench.size, 4);
    b.record(QueueKind::compute, bench.event[5]);
    b.flush(QueueKind::compute);
    bench.download(3, bench.event[0], conformance::after(bench.event[5]));
    b.flush(QueueKind::d2h);
    b.wait(bench.event[0]);
    CHECK(b.status(bench.event[2]) == EventStatus::complete);
    CHECK(bench.came_back(3, 0, 7));
  }
  b.finish();
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("the host reads and writes what a neighbour has", A, c_neighbour_host) {
  using namespace swapmm;
  conformance::NeighbourBench<A> bench;
  auto& b = bench.backend;
  std::vector<std::byte> all(bench.size);
  std::copy_n(bench.source.data(), bench.size, all.begin());
  b.write_neighbour(bench.there, Bytes{7}, all);
  std::vector<std::byte> seen(333);
  b.read_neighbour(bench.there, Bytes{7 + 100}, seen);
  CHECK(std::equal(seen.begin(), seen.end(), bench.source.data() + 100));
  b.copy_from_neighbour(bench.place[0], bench.there, Bytes{7}, Bytes{bench.size}, {}, bench.event[0]);
  b.flush(QueueKind::neighbour_in);
  b.finish();
  bench.download(0, bench.event[1], {});
  b.flush(QueueKind::d2h);
  b.wait(bench.event[1]);
  CHECK(bench.came_back(0, 0, 0));
  b.copy_to_neighbour(bench.there, Bytes{0}, bench.place[0], Bytes{bench.size}, {}, bench.event[2]);
  b.flush(QueueKind::neighbour_out);
  b.wait(bench.event[2]);
  b.read_neighbour(bench.there, Bytes{0}, all);
  CHECK(std::equal(all.begin(), all.end(), bench.source.data()));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("memory of a neighbour may be released while work uses it", A, c_neighbour_released) {
  using namespace swapmm;
  conformance::NeighbourBench<A> bench;
  auto& b = bench.backend;
  bench.upload(0, bench.event[0]);
  b.flush(QueueKind::h2d);
  {
    auto memory = std::move(bench.there);
    b.copy_to_neighbour(memory, Bytes{0}, bench.place[0], Bytes{bench.size}, conformance::after(bench.event[0]),
                        bench.event[1]);
    b.flush(QueueKind::neighbour_out);
    b.copy_from_neighbour(bench.place[1], memory, Bytes{0}, Bytes{bench.size}, conformance::after(bench.event[1]),
                          bench.event[2]);
    b.flush(QueueKind::neighbour_in);
  }
  bench.neighbour.reset();
  bench.download(1, bench.event[3], conformance::after(bench.event[2]));
  b.flush(QueueKind::d2h);
  b.wait(bench.event[3]);
  CHECK(bench.came_back(1, 0, 0));
  A::verify(b);
}

TEST_CASE_TEMPLATE_DEFINE("a neighbour of another backend is refused", A, c_neighbour_stranger) {
  using namespace swapmm;
  conformance::Bench<A> bench;
  const conformance::Stranger stranger;
  CHECK_THROWS_AS((void)bench.backend.allocate_at(stranger, Bytes{64}, 0), BackendError);
}

#define SWAPMM_NEIGHBOUR_CONFORMANCE(ADAPTOR)             \
  SWAPMM_CONFORMANCE_CASE(c_neighbour, ADAPTOR);          \
  SWAPMM_CONFORMANCE_CASE(c_neighbour_order, ADAPTOR);    \
  SWAPMM_CONFORMANCE_CASE(c_neighbour_host, ADAPTOR);     \
  SWAPMM_CONFORMANCE_CASE(c_neighbour_released, ADAPTOR); \
  SWAPMM_CONFORMANCE_CASE(c_neighbour_stranger, ADAPTOR)
