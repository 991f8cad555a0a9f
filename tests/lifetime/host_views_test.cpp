// SPDX-License-Identifier: Apache-2.0
// Host views: what is touched moves, and nothing else. Run under ThreadSanitizer, too. What the system does with
// touches (handlers, system calls, fork) is in host_view_faults_test.cpp.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "lifetime/host_view_desk.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

TEST_CASE("a host view copies the blocks that are touched, and nothing untouched") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  const auto view = t.host_view(small_blocks);
  REQUIRE_MESSAGE(view.lazy(), view.why_eager());
  set(desk.manager, t, 5);
  desk.manager.synchronize();
  const Bytes before = desk.manager.report().d2h;
  CHECK(view.traffic().to_view == 0_bytes);
  CHECK(view[3 * block_length + 7] == 5);
  CHECK(view[3 * block_length] == 5);
  CHECK(view[view_length - 1] == 5);
  CHECK(view.traffic().faults == 2);
  CHECK(view.traffic().to_view == 128_KiB);
  CHECK(desk.manager.report().d2h - before == 128_KiB);

  const Bytes in_before = desk.manager.report().h2d;
  view[3 * block_length] = 7;
  view[5 * block_length + 1] = 8;
  increase(desk.manager, t, 1);
  CHECK(desk.manager.report().h2d - in_before == 128_KiB);
  CHECK(view.traffic().to_tensor == 128_KiB);
  CHECK(view[3 * block_length] == 8);
  CHECK(view[3 * block_length + 1] == 6);
  CHECK(view[5 * block_length + 1] == 9);
  std::vector<int> expected(view_length, 6);
  expected[3 * block_length] = 8;
  expected[5 * block_length + 1] = 9;
  CHECK(t.download() == expected);
}

TEST_CASE("a view that is never touched costs no copy") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  const auto view = t.host_view(small_blocks);
  for (int i = 0; i < 10; ++i) increase(desk.manager, t, 1);
  desk.manager.synchronize();
  CHECK(desk.manager.report().d2h == 0_bytes);
  CHECK(desk.manager.report().h2d == 0_bytes);
  CHECK(view.traffic().faults == 0);
  CHECK(holds(t, 11));
}

TEST_CASE("reading a clean block again, and writing a modified one again, is no fault") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  const auto view = t.host_view(small_blocks);
  CHECK(view[0] == 1);
  auto other = desk.manager.tensor<int>({view_length}, "other");
  add(desk.manager, t, other, 1);  // reads it: the view keeps what it has
  CHECK(view[1] == 1);
  CHECK(view.traffic().faults == 1);
  view[2] = 9;
  view[3] = 9;
  CHECK(view.traffic().faults == 2);
  add(desk.manager, t, other, 1);  // copies the block in
  view[4] = 9;
  CHECK(view.traffic().faults == 3);
  add(desk.manager, t, other, 1);
  CHECK(view.traffic().to_tensor == 128_KiB);
  CHECK(other.download()[4] == 10);
}

TEST_CASE("a tensor without a value takes what the view holds as its first one") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  const auto view = t.host_view(small_blocks);
  CHECK(view[view_length - 1] == 0);
  view[17] = 4;
  increase(desk.manager, t, 1);
  CHECK(view[17] == 5);
  CHECK(view[18] == 1);
  CHECK(view.traffic().to_tensor == t.bytes());

  auto u = desk.manager.tensor<int>({view_length}, "u");
  std::vector<int> array(view_length);
  std::iota(array.begin(), array.end(), 0);
  const std::vector<int> expected = array;
  const auto over = u.host_view(array, small_blocks);
  CHECK(u.download() == expected);
  CHECK(array == expected);
}

TEST_CASE("an operation that writes the whole tensor overwrites what the program has modified") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  const auto view = t.host_view(small_blocks);
  view[5] = 100;
  set(desk.manager, t, 2);
  CHECK(view[5] == 2);
  CHECK(view.traffic().to_tensor == 0_bytes);
}

TEST_CASE("the end of a view, and write_back(), copy in what was modified") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  std::vector<int> expected(view_length, 1);
  {
    auto view = t.host_view(small_blocks);
    view[5] = expected[5] = 50;
    auto moved = std::move(view);
    CHECK_THROWS_AS((void)view.lazy(), UsageError);
    CHECK(view.size() == 0);
    moved[block_length] = expected[block_length] = 51;
  }
  CHECK(t.download() == expected);
  const auto view = t.host_view(small_blocks);
  view[6] = expected[6] = 52;
  view.write_back();
  CHECK(view.traffic().to_tensor == 64_KiB);
  CHECK(t.download() == expected);
}

TEST_CASE("views of parts") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  const std::size_t first = block_length + 5;  // at no page of the tensor
  const auto front = t.slice(0, first).host_view(small_blocks);
  const auto back = t.slice(first, view_length - first).host_view(small_blocks);
  CHECK_THROWS_AS((void)t.host_view(small_blocks), UsageError);
  CHECK_THROWS_AS((void)t.slice(first - 1, 2).host_view(small_blocks), UsageError);
  back[0] = 2;
  front[first - 1] = 3;
  std::vector<int> expected(view_length, 1);
  expected[first] = 2;
  expected[first - 1] = 3;
  increase(desk.manager, t, 1);
  for (int& x : expected) ++x;
  CHECK(back[0] == 3);
  CHECK(front[first - 1] == 4);
  CHECK(t.download() == expected);
}

TEST_CASE("edges of an array share pages with other data, which stays as it is") {
  for (const std::size_t shift : {0U, 1U, 5U, 1000U, 1023U}) {
    HostViewDesk desk;
    auto t = desk.manager.tensor<int>({view_length}, "t");
    set(desk.manager, t, 1);
    std::vector<int> memory(view_length + 4096, -1);
    std::vector<int> expected(view_length, 1);
    {
      const std::span<int> array = std::span(memory).subspan(shift, view_length);
      const auto view = t.host_view(array, small_blocks);
      REQUIRE_MESSAGE(view.lazy(), view.why_eager());
      CHECK(view.traffic().to_view < 8_KiB);
      CHECK(array.front() == 1);
      CHECK(array.back() == 1);
      array.front() = expected.front() = 20;
      array.back() = expected.back() = 21;
      array[view_length / 2] = expected[view_length / 2] = 22;
      memory[shift + view_length] = -2;
      increase(desk.manager, t, 1);
      for (int& x : expected) ++x;
      CHECK(array.front() == 21);
      CHECK(array.back() == 22);
      CHECK(array[view_length / 2] == 23);
      const bool has_edges = reinterpret_cast<std::uintptr_t>(array.data()) % 4096 != 0;
      CHECK(view.traffic().to_tensor < (has_edges ? 64_KiB + 8_KiB : 193_KiB));
      CHECK(std::vector<int>(array.begin(), array.end()) == expected);
      array[100] = expected[100] = 5;
    }
    CHECK(t.download() == expected);
    CHECK(memory[shift + view_length] == -2);
    if (shift > 0) CHECK(memory[shift - 1] == -1);
    std::fill(memory.begin(), memory.end(), 0);  // may be written again
  }
}

TEST_CASE("small arrays have no page of their own: they are eager, and right") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({16}, "t");
  std::vector<int> array(16, 3);
  const auto view = t.host_view(array);
  CHECK(!view.lazy());
  CHECK(view.why_eager() == "the memory has no whole page");
  increase(desk.manager, t, 1);
  CHECK(array == std::vector<int>(16, 4));
  array[2] = 9;
  increase(desk.manager, t, 1);
  CHECK(array[2] == 10);
  CHECK(array[3] == 5);
}

TEST_CASE("two views may meet within a page: their own pages are apart") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  auto u = desk.manager.tensor<int>({view_length}, "u");
  set(desk.manager, t, 1);
  set(desk.manager, u, 2);
  constexpr std::size_t page = 4096;
  std::vector<int> memory(2 * view_length + page / sizeof(int));
  // In the first quarter of a page, and in the last one.
  for (const std::size_t place : {page / 4, 3 * page / 4}) {
    CAPTURE(place);
    std::size_t first = 0;
    while (reinterpret_cast<std::uintptr_t>(&memory[first + view_length]) % page != place) ++first;
    const std::span<int> before = std::span(memory).subspan(first, view_length);
    const std::span<int> behind = std::span(memory).subspan(first + view_length, view_length);
    const auto one = t.host_view(before, small_blocks);
    const auto other = u.host_view(behind, small_blocks);
    CHECK(one.lazy());
    CHECK(other.lazy());
    CHECK(before.back() == 1);
    CHECK(before[view_length / 2] == 1);
    CHECK(behind.front() == 2);
    CHECK(behind[view_length / 2] == 2);
  }
}

TEST_CASE("what is refused") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  CHECK_THROWS_AS((void)t.host_view({.block = 0_bytes}), UsageError);
  CHECK_THROWS_AS((void)t.host_view({.block = 32_KiB}), UsageError);
  CHECK_THROWS_AS((void)t.host_view({.block = 4_MiB}), UsageError);
  CHECK_THROWS_AS((void)t.host_view({.block = Bytes{(64U << 10U) + 1}}), UsageError);
  CHECK_THROWS_AS((void)t.slice(0, 10).host_view(), UndefinedValue);
  auto dead = desk.manager.tensor<int>({view_length}, "dead", transient);
  CHECK_THROWS_AS((void)dead.host_view(), UsageError);
  std::vector<int> array(view_length);
  CHECK_THROWS_AS((void)t.host_view(std::span(array).first(10)), UsageError);
  const auto view = t.host_view(array, small_blocks);
  auto u = desk.manager.tensor<int>({view_length}, "u");
  CHECK_THROWS_AS((void)u.host_view(array, small_blocks), UsageError);
  CHECK_THROWS_AS(view.prepare_read(view_length, 1), UsageError);
  CHECK_THROWS_AS(view.prepare_write(1, view_length), UsageError);
  set(desk.manager, t, 2);
  CHECK(view[0] == 2);
}

TEST_CASE("an operation that fails takes the value with it, and prepare_read() says so") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  const auto view = t.host_view(small_blocks);
  CHECK(view[0] == 1);
  CHECK_THROWS_AS(desk.manager.run("throws", updates(t), [](auto&) { throw 5; }), int);
  CHECK_THROWS_AS(view.prepare_read(), WorkFailed);
  CHECK_THROWS_AS(desk.manager.run("nested", updates(t), [&](auto&) { view.prepare_read(); }), WorkFailed);
  set(desk.manager, t, 2);
  CHECK(view[0] == 2);
  auto u = desk.manager.tensor<int>({16}, "u");
  CHECK_THROWS_AS(desk.manager.run("nested", writes(u), [&](auto&) { view.prepare_read(); }), NestedOperation);
  CHECK(view[block_length] == 2);
}

TEST_CASE("an operation that is refused changes nothing, and loses nothing that the program wrote") {
  for (const bool lazy : {true, false}) {
    CAPTURE(lazy);
    HostViewDesk desk;
    auto t = desk.manager.tensor<int>({view_length}, "t");
    auto huge = desk.manager.tensor<int>({8 * view_length}, "huge");
    set(desk.manager, t, 1);
    std::vector<int> expected(view_length, 1);
    HostViewOptions options = small_blocks;
    options.lazy = lazy;
    const auto view = t.host_view(options);
    CHECK(view[block_length] == 1);
    view[5] = expected[5] = 50;
    CHECK_THROWS_AS(desk.manager.run("too large", writes(t, huge), [](auto&) {}), BundleTooLarge);
    CHECK(view[5] == 50);
    CHECK(view[6] == 1);
    CHECK(view[block_length] == 1);
    CHECK(t.download() == expected);
  }
}

TEST_CASE("plans are followed beside views, under a budget that swaps") {
  // Where drops are to be proven, a plan that may gain nothing waits.
  HostViewDesk desk(Bytes{5 * view_length * sizeof(int) / 2}, {.drops = DropRule::observed});
  std::vector<Tensor<int, Simulated>> tensors;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(desk.manager.tensor<int>({view_length}, "t" + std::to_string(i)));
    set(desk.manager, tensors.back(), i);
  }
  auto result = desk.manager.tensor<int>({view_length}, "result");
  const auto weights = tensors[1].host_view(small_blocks);
  const auto results = result.host_view(small_blocks);
  std::array<int, 4> first{0, 1, 2, 3};  // element 0 of each
  for (int step = 0; step < 12; ++step) {
    const auto iteration = desk.manager.iteration("step");
    first[1] = weights[0] = 10 * step;
    for (std::size_t i = 0; i < 4; ++i) {
      accumulate(desk.manager, tensors[i], tensors[(i + 1) % 4]);
      first[(i + 1) % 4] += first[i];
    }
    add(desk.manager, tensors[1], result, step);
    CHECK(results[view_length - 1] == tensors[1].download()[view_length - 1] + step);
    CHECK(results[0] == first[1] + step);
  }
  for (std::size_t i = 0; i < 4; ++i) CHECK(tensors[i].download()[0] == first[i]);
  const Report report = desk.manager.report();
  CHECK(report.iterations_followed > 3);
  CHECK(report.swap_outs > 0);
}

namespace {

/// Four threads read and write random elements of a view, between operations that a program of the host mirrors.
void compare_random_accesses(const HostViewOptions& options, bool own_array, std::uint64_t seed) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t accesses = 1000;
  constexpr int rounds = 25;
  HostViewDesk desk(3_MiB);
  auto t = desk.manager.tensor<int>({view_length}, "t");
  auto other = desk.manager.tensor<int>({view_length}, "other");
  auto third = desk.manager.tensor<int>({2 * view_length}, "third");
  set(desk.manager, t, 0);
  set(desk.manager, other, 0);
  set(desk.manager, third, 0);
  std::vector<int> oracle(view_length, 0);
  std::vector<int> array(view_length + 7);
  const auto view = own_array ? t.host_view(std::span(array).subspan(7), options) : t.host_view(options);
  CHECK(view.lazy() == options.lazy);
  std::atomic<std::size_t> wrong{0};
  std::mt19937_64 choose(seed);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> crowd;
    for (std::size_t self = 0; self < threads; ++self) {
      crowd.emplace_back([&, self, own_seed = choose()] {
        std::mt19937_64 random(own_seed);
        for (std::size_t i = 0; i < accesses; ++i) {
          const std::size_t at = random() % (view_length / threads) * threads + self;
          if (view[at] != oracle[at]) ++wrong;
          if (random() % 3 == 0) view[at] = oracle[at] = static_cast<int>(random() % 1000);
        }
      });
    }
    if (round % 5 == 0) increase(desk.manager, third, 1);  // while they touch
    for (std::thread& each : crowd) each.join();
    switch (choose() % 4) {
      case 0:
        increase(desk.manager, t, 1);
        for (int& x : oracle) ++x;
        break;
      case 1: add(desk.manager, t, other, 1); break;
      case 2:
        increase(desk.manager, third, 1);  // evicts
        break;
      default:
        if (t.download() != oracle) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(t.download() == oracle);
}

}  // namespace

TEST_CASE("random accesses of four threads find what an eager program finds") {
  compare_random_accesses(small_blocks, false, 1);
  compare_random_accesses(small_blocks, true, 2);
}

TEST_CASE("an eager view does the same") {
  compare_random_accesses({.block = 64_KiB, .lazy = false}, false, 3);
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  set(desk.manager, t, 1);
  const auto view = t.host_view({.lazy = false});
  CHECK(view.why_eager() == "HostViewOptions::lazy is false");
  CHECK(view.traffic().to_view == t.bytes());
  view[3] = 4;
  view.prepare_write();
  increase(desk.manager, t, 1);
  CHECK(view[3] == 5);
  CHECK(view.traffic().to_tensor == HostViewOptions{}.block);
  CHECK(view.traffic().to_view == Bytes{2 * t.bytes().value});
}

TEST_CASE("threads touch views while another thread runs operations, and nothing is refused") {
  HostViewDesk desk;
  auto t = desk.manager.tensor<int>({view_length}, "t");
  auto busy = desk.manager.tensor<int>({16}, "busy");
  set(desk.manager, t, 3);
  set(desk.manager, busy, 0);
  std::atomic<std::size_t> wrong{0};
  for (int round = 0; round < 10; ++round) {
    const auto view = t.host_view(small_blocks);
    std::vector<std::thread> crowd;
    for (std::size_t self = 0; self < 3; ++self) {
      crowd.emplace_back([&] {
        for (std::size_t i = 0; i < view_blocks; ++i) wrong += view[i * block_length] == 3 ? 0U : 1U;
      });
    }
    for (int i = 0; i < 20; ++i) increase(desk.manager, busy, 1);
    for (std::thread& each : crowd) each.join();
    CHECK(view.traffic().to_view == t.bytes());
  }
  CHECK(wrong == 0);
  CHECK(holds(busy, 200));
}
