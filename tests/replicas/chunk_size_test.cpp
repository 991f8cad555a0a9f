// SPDX-License-Identifier: Apache-2.0
// The search for the chunk size, on curves of times that are given.
#include <swapmm/replicas/chunk_size.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <swapmm/error.hpp>

namespace swapmm::test::chunk_size_test {

using Nanoseconds = std::chrono::nanoseconds;
/// Time of a step by layers per chunk.
using Curve = std::function<std::int64_t(std::size_t)>;

/// Runs a search to its end. Returns the number of steps it took.
std::size_t run(ChunkSizeSearch& search, const Curve& curve) {
  std::size_t steps = 0;
  for (; !search.done() && steps < 10'000; ++steps) search.took(Nanoseconds{curve(search.layers_per_chunk())});
  REQUIRE(search.done());
  return steps;
}

std::size_t best_of(const Curve& curve, std::size_t layers) {
  std::size_t best = 1;
  for (std::size_t size = 2; size <= layers; ++size) {
    if (curve(size) < curve(best)) best = size;
  }
  return best;
}

TEST_CASE("on every curve that falls to one size and rises after it, this size is found") {
  for (std::size_t layers = 1; layers <= 12; ++layers) {
    for (std::size_t best = 1; best <= layers; ++best) {
      const Curve curve = [&](std::size_t size) {
        const auto apart = static_cast<std::int64_t>(size > best ? size - best : 2 * (best - size));
        return 1000 + apart * apart;
      };
      ChunkSizeSearch search(layers);
      const std::size_t steps = run(search, curve);
      CHECK(search.layers_per_chunk() == best);
      CHECK(search.tries().size() == (layers == 1 ? 0 : std::min(layers, best + 2)));
      CHECK(steps == 10 * search.tries().size());
    }
  }
}

TEST_CASE("noise below half of what neighbours differ by leads at most one size astray") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::size_t layers = 2 + random() % 20;
    const std::size_t best = 1 + random() % layers;
    std::uniform_int_distribution<std::int64_t> noise(-49, 49);
    ChunkSizeSearch search(layers, {.settle = 1, .timed = 3});
    run(search, [&](std::size_t size) {
      const auto apart = static_cast<std::int64_t>(size > best ? size - best : best - size);
      return 10'000 + 100 * apart + noise(random);
    });
    const std::size_t found = search.layers_per_chunk();
    CHECK(std::max(found, best) - std::min(found, best) <= 1);
  }
}

TEST_CASE("on a flat curve the smallest size stays, and a single slow step of a size changes nothing") {
  ChunkSizeSearch flat(9);
  run(flat, [](std::size_t) { return 500; });
  CHECK(flat.layers_per_chunk() == 1);
  CHECK(flat.tries().size() == 3);

  const Curve curve = [](std::size_t size) { return size < 5 ? 1000 - 100 * static_cast<std::int64_t>(size) : 900; };
  std::size_t step = 0;
  ChunkSizeSearch jumping(9);
  run(jumping, [&](std::size_t size) { return ++step % 7 == 0 ? 90'000 : curve(size); });
  CHECK(jumping.layers_per_chunk() == best_of(curve, 9));
}

TEST_CASE("patience rides over a bump, and a falling curve is followed to its end") {
  const Curve bump = [](std::size_t size) { return size == 3 ? 950 : 1000 - 10 * static_cast<std::int64_t>(size); };
  ChunkSizeSearch steady(8);
  run(steady, bump);
  CHECK(steady.layers_per_chunk() == 3);  // sizes 4 and 5 are slower than it, 8 is not known
  ChunkSizeSearch patient(8, {.patience = 6});
  run(patient, bump);
  CHECK(patient.layers_per_chunk() == 8);

  ChunkSizeSearch falling(8);
  run(falling, [](std::size_t size) { return 1000 - static_cast<std::int64_t>(size); });
  CHECK(falling.layers_per_chunk() == 8);
}

TEST_CASE("what is told after the end, or while a size settles, counts for nothing") {
  ChunkSizeSearch search(4, {.settle = 2, .timed = 1, .patience = 1});
  for (const std::int64_t time : {1, 1, 50, 1, 1, 60}) search.took(Nanoseconds{time});
  REQUIRE(search.done());
  CHECK(search.layers_per_chunk() == 1);
  CHECK(search.tries()[0].step == Nanoseconds{50});
  search.took(Nanoseconds{1});
  CHECK(search.tries().size() == 2);
}

TEST_CASE("a search among nothing, or without a measurement, is refused") {
  CHECK_THROWS_AS(ChunkSizeSearch(0), UsageError);
  CHECK_THROWS_AS(ChunkSizeSearch(3, {.timed = 0}), UsageError);
  CHECK_THROWS_AS(ChunkSizeSearch(3, {.patience = 0}), UsageError);
}

}  // namespace swapmm::test::chunk_size_test
