// SPDX-License-Identifier: Apache-2.0
// Uploads and downloads, while the device has work of its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

// On this device nothing happens until the host waits, so every wait shows.
struct HostAccessDesk {
  explicit HostAccessDesk(std::uint64_t seed = 1)
      : device([&] {
          simulated::Options options;
          options.order = simulated::Order::uniform;
          options.seed = seed;
          options.pieces = 4;
          options.steps_in_calls = false;
          return options;
        }()),
        manager(device, {.device_budget = 256_bytes}) {}
  ~HostAccessDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
  [[nodiscard]] std::uint64_t waits() const { return device.counters().host_waits_blocked; }

  Simulated device;
  MemoryManager<Simulated> manager;
};

std::vector<int> all(int value) { return std::vector<int>(length, value); }

}  // namespace

TEST_CASE("an upload can be read back by the host without the device") {
  HostAccessDesk desk;
  auto a = desk.manager.tensor<int>({length}, "a");
  a.upload(all(4));
  CHECK(a.download() == all(4));
  CHECK(desk.manager.report().swap_ins == 0);
  CHECK(desk.waits() == 0);
}

TEST_CASE("a tensor that the host fills again and again has two slots, and only the third upload waits") {
  HostAccessDesk desk;
  auto x = desk.manager.tensor<int>({length}, "x");
  auto sum = desk.manager.tensor<int>({length}, "sum");
  set(desk.manager, sum, 0);
  for (int i = 1; i <= 2; ++i) {
    x.upload(all(i));
    accumulate(desk.manager, x, sum);
  }
  CHECK(desk.waits() == 0);
  const std::uint64_t slots = desk.device.counters().host_memories.made;
  CHECK(slots == 2);
  for (int i = 3; i <= 9; ++i) {
    x.upload(all(i));
    accumulate(desk.manager, x, sum);
  }
  CHECK(desk.waits() > 0);
  CHECK(desk.device.counters().host_memories.made == slots);
  CHECK(holds(sum, 45));
}

TEST_CASE("an asynchronous download has the value of its time, whatever comes after it") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    HostAccessDesk desk(seed);
    auto a = desk.manager.tensor<int>({length}, "a");
    std::vector<std::vector<int>> targets(6, std::vector<int>(length));
    std::vector<PendingDownload<Simulated>> promised;
    for (int i = 0; i < 6; ++i) {
      if (i % 3 == 2) {
        a.upload(all(i));
      } else {
        set(desk.manager, a, i);
      }
      promised.push_back(a.download_async(targets[static_cast<std::size_t>(i)]));
    }
    increase(desk.manager, a, 100);
    for (std::size_t i = 6; i-- > 0;) {  // collected in another order
      promised[i].wait();
      CHECK(targets[i] == all(static_cast<int>(i)));
    }
    CHECK(holds(a, 105));
  }
}

TEST_CASE("asking for a download waits for nothing, and it is ready once the device has come that far") {
  HostAccessDesk desk;
  auto a = desk.manager.tensor<int>({length}, "a");
  set(desk.manager, a, 7);
  std::vector<int> target(length);
  auto promised = a.download_async(target);
  CHECK(desk.waits() == 0);
  CHECK(!promised.ready());
  desk.device.drain();
  CHECK(promised.ready());
  promised.wait();
  CHECK(promised.ready());
  promised.wait();  // once more changes nothing
  CHECK(target == all(7));
  CHECK(desk.waits() == 0);
}

TEST_CASE("two values of a tensor may be promised, and only the third download waits for the first") {
  HostAccessDesk desk;
  auto a = desk.manager.tensor<int>({length}, "a");
  std::vector<std::vector<int>> targets(6, all(-1));
  std::vector<PendingDownload<Simulated>> promised;
  for (int i = 0; i < 2; ++i) {
    set(desk.manager, a, i);
    promised.push_back(a.download_async(targets[static_cast<std::size_t>(i)]));
  }
  CHECK(desk.waits() == 0);
  const std::uint64_t slots = desk.device.counters().host_memories.made;
  CHECK(slots == 2);
  for (int i = 2; i < 6; ++i) {
    set(desk.manager, a, i);
    promised.push_back(a.download_async(targets[static_cast<std::size_t>(i)]));
    CHECK(targets[static_cast<std::size_t>(i - 2)] == all(i - 2));
    CHECK(targets[static_cast<std::size_t>(i - 1)] == all(-1));
  }
  CHECK(desk.waits() > 0);
  CHECK(desk.device.counters().host_memories.made == slots);
  for (auto& promise : promised) promise.wait();
  CHECK(targets[4] == all(4));
  CHECK(targets[5] == all(5));
}

TEST_CASE("a download that is given up touches its target no more") {
  HostAccessDesk desk;
  auto a = desk.manager.tensor<int>({length}, "a");
  set(desk.manager, a, 7);
  std::optional<std::vector<int>> target(length);
  {
    auto promised = a.download_async(*target);
    auto other = a.download_async(*target);
    promised = std::move(other);  // the first one ends here
  }
  CHECK(*target == std::vector<int>(length));
  target.reset();
  a.upload(all(3));
  increase(desk.manager, a, 1);
  CHECK(holds(a, 4));
}

TEST_CASE("a download outlives its tensor, and the tensor's bytes wait for it") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    HostAccessDesk desk(seed);
    std::vector<int> target(length);
    std::optional<PendingDownload<Simulated>> promised;
    {
      auto a = desk.manager.tensor<int>({length}, "a");
      set(desk.manager, a, 7);
      promised.emplace(a.download_async(target));
    }
    auto b = desk.manager.tensor<int>({length}, "b");
    b.upload(all(1));
    increase(desk.manager, b, 1);
    promised->wait();
    CHECK(target == all(7));
    CHECK(holds(b, 2));
  }
}

TEST_CASE("the host memory that a download comes from is nobody else's until the download has it") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    HostAccessDesk desk(seed);
    auto t = std::optional(desk.manager.tensor<int>({length}, "t"));
    set(desk.manager, *t, 5);
    std::vector<int> target(length);
    auto pending = t->download_async(target);
    t.reset();
    // Values of the same size, which are given what host memory is free.
    auto others = uploaded_tensors(desk.manager, 4, "other");
    pending.wait();
    CHECK(target == all(5));
    for (std::size_t i = 0; i < others.size(); ++i) CHECK(holds(others[i], static_cast<int>(i) + 1));
  }
}

TEST_CASE("downloads of parts take their part") {
  HostAccessDesk desk;
  auto a = desk.manager.tensor<int>({4, 4}, "a");
  set(desk.manager, a, 1);
  set(desk.manager, a.slice(2, 1), 5);
  std::vector<int> target(8);
  auto promised = a.slice(1, 2).download_async(target);
  increase(desk.manager, a, 10);
  promised.wait();
  CHECK(target == std::vector<int>{1, 1, 1, 1, 5, 5, 5, 5});
}

TEST_CASE("asynchronous downloads while a plan is followed have the value of their time") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    HostAccessDesk desk(seed);
    auto x = desk.manager.tensor<int>({length}, "x");
    std::vector<Tensor<int, Simulated>> weights;
    for (int i = 0; i < 6; ++i) {
      weights.push_back(desk.manager.tensor<int>({length}, "w"));
      set(desk.manager, weights.back(), 0);
    }
    std::vector<int> target(length);
    std::vector<int> surprise(length);
    std::optional<PendingDownload<Simulated>> promised;
    int sum = 0;
    for (int i = 1; i <= 45; ++i) {
      auto iteration = desk.manager.iteration();
      x.upload(all(i));
      for (auto& weight : weights) accumulate(desk.manager, x, weight);
      if (promised) {
        promised->wait();
        CHECK(target == all(sum));
      }
      sum += i;
      promised.emplace(weights[2].download_async(target));
      if (i == 42) {  // one that no plan knows
        auto once = weights[4].download_async(surprise);
        for (auto& weight : weights) increase(desk.manager, weight, 0);
        once.wait();
        CHECK(surprise == all(sum));
      }
      for (auto& weight : weights) increase(desk.manager, weight, 0);
    }
    promised->wait();
    CHECK(target == all(45 * 46 / 2));
    CHECK(desk.manager.report().iterations_followed >= 3);
  }
}

TEST_CASE("uploads between iterations are part of the next one") {
  HostAccessDesk desk;
  auto x = desk.manager.tensor<int>({length}, "x");
  std::vector<Tensor<int, Simulated>> weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(desk.manager.tensor<int>({length}, "w"));
    set(desk.manager, weights.back(), 0);
  }
  for (int i = 1; i <= 8; ++i) {
    x.upload(all(i));
    auto iteration = desk.manager.iteration();
    for (auto& weight : weights) accumulate(desk.manager, x, weight);
  }
  CHECK(desk.manager.report().iterations_followed == 6);
  const auto trace = desk.manager.scheduler().trace("iteration");
  REQUIRE(trace.has_value());
  CHECK(trace->tensors[0].name == "x");
  CHECK(trace->tensors[0].kind == TensorKind::input);
  for (auto& weight : weights) CHECK(holds(weight, 36));
}

TEST_CASE("an upload that a plan does not expect leaves it, and one that it expects and does not get does too") {
  HostAccessDesk desk;
  auto x = desk.manager.tensor<int>({length}, "x");
  std::vector<Tensor<int, Simulated>> weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(desk.manager.tensor<int>({length}, "w"));
    set(desk.manager, weights.back(), 0);
  }
  const auto iterate = [&](int value, bool uploads, bool twice) {
    auto iteration = desk.manager.iteration();
    if (uploads) x.upload(all(value));
    for (auto& weight : weights) {
      accumulate(desk.manager, x, weight);
      if (twice) x.upload(all(value));
    }
  };
  for (int i = 0; i < 4; ++i) iterate(1, true, false);
  CHECK(desk.manager.report().iterations_followed == 2);
  iterate(2, true, true);
  CHECK(desk.manager.report().divergences == 1);
  CHECK(says(desk.manager.report().last_divergence, {"upload", "\"x\""}));
  iterate(3, true, false);
  CHECK(desk.manager.report().iterations_followed == 3);
  iterate(0, false, false);  // keeps 3
  CHECK(desk.manager.report().divergences == 2);
  for (auto& weight : weights) CHECK(holds(weight, 4 + 2 + 3 + 3));
}

TEST_CASE("an upload of a tensor that the plan does not know leaves the plan alone") {
  HostAccessDesk desk;
  auto aside = desk.manager.tensor<int>({length}, "aside");
  std::vector<Tensor<int, Simulated>> weights;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(desk.manager.tensor<int>({length}, "w"));
    set(desk.manager, weights.back(), 0);
  }
  for (int i = 0; i < 8; ++i) {
    auto iteration = desk.manager.iteration();
    for (auto& weight : weights) increase(desk.manager, weight, 1);
    if (i >= 4) aside.upload(all(i));
  }
  CHECK(desk.manager.report().divergences == 0);
  CHECK(desk.manager.report().iterations_followed == 6);
  CHECK(holds(aside, 7));
}

TEST_CASE("pinned memory beyond its budget is pageable memory, and the values are the same") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .pinned_budget = 128_bytes});
  auto tensors = uploaded_tensors(manager, 6);
  CHECK(manager.report().pinned_used == 128_bytes);
  CHECK(manager.report().host_used == 384_bytes);
  for (auto& tensor : tensors) increase(manager, tensor, 1);
  for (std::size_t i = 0; i < 6; ++i) CHECK(holds(tensors[i], static_cast<int>(i) + 2));
  CHECK(device.counters().pinned_bytes == 128_bytes);
}

// ---- host memory in slabs

TEST_CASE("values that share a slab are read and written each at its own place, whole and in part") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Simulated device([&] {
      simulated::Options options;
      options.order = simulated::Order::uniform;
      options.seed = seed;
      options.pieces = 3;
      options.host_slab = 64_KiB;
      return options;
    }());
    MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
    auto tensors = uploaded_tensors(manager, 6);
    CHECK(device.counters().host_memories.made == 1);
    const Report report = manager.report();
    CHECK(report.pinned_slabs == 1);
    CHECK(report.pinned_used == 4_KiB);  // the slab, whole
    CHECK(report.host_used == 4_KiB);
    CHECK(device.counters().pinned_bytes == 4_KiB);
    for (auto& tensor : tensors) increase(manager, tensor, 10);
    tensors[2].slice(4, 8).upload(std::vector<int>(8, 99));
    std::vector<int> promised(8);
    auto pending = tensors[2].slice(2, 8).download_async(std::span<int>(promised));
    for (std::size_t i : {0U, 1U, 3U, 4U, 5U}) CHECK(holds(tensors[i], static_cast<int>(i) + 11));
    pending.wait();
    CHECK(promised == std::vector<int>{13, 13, 99, 99, 99, 99, 99, 99});
    std::vector<int> expected(length, 13);
    std::fill_n(expected.begin() + 4, 8, 99);
    CHECK(tensors[2].download() == expected);
    CHECK(tensors[2].slice(3, 2).download() == std::vector<int>{13, 99});
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
}

TEST_CASE("bytes of a slab become a value of another size while copies still use them, and every value is right") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Simulated device([&] {
      simulated::Options options;
      options.order = seed % 2 == 0 ? simulated::Order::uniform : simulated::Order::starved;
      options.starved_queue = seed % 4 < 2 ? QueueKind::h2d : QueueKind::d2h;
      options.seed = seed;
      options.pieces = 4;
      options.steps_in_calls = seed % 3 == 0;
      options.host_slab = 8_KiB;
      return options;
    }());
    MemoryManager<Simulated> manager(device, {.device_budget = 1536_bytes, .pinned_budget = 1_KiB},
                                     Scheduler({.observe = 0}));
    auto sum = manager.tensor<int>({length}, "sum");
    set(manager, sum, 0);
    for (int round = 0; round < 4; ++round) {
      auto large = manager.tensor<int>({16 * length}, "large");  // 1,024 bytes
      auto other = manager.tensor<int>({16 * length}, "other");
      set(manager, large, round);
      {
        auto small = uploaded_tensors(manager, 4);  // in all that may be pinned
        for (auto& tensor : small) accumulate(manager, tensor, sum);
      }
      set(manager, other, round);  // pushes the large one out, into the bytes of the small ones
      CHECK(holds(large, round));
    }
    CHECK(device.counters().host_memories.made == 1);
    CHECK(manager.report().host_used == 1_KiB);
    CHECK(holds(sum, 4 * 10));
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
}
