// SPDX-License-Identifier: Apache-2.0
// Several threads: safe, or refused by a clear error. Run under ThreadSanitizer, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/core_desk.hpp"
#include "support/in_threads.hpp"
#include "support/small_program.hpp"
#include "support/watched_loop.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

using IntTensor = Tensor<int, Simulated>;
using Manager = MemoryManager<Simulated>;
const Options small{.device_budget = 256_bytes};

/// Calls again where another thread is inside. How often that was.
template <class Call>
std::size_t insist(Call&& call) {
  for (std::size_t refused = 0;; ++refused) {
    try {
      call();
      return refused;
    } catch (const ConcurrentUse&) {
      std::this_thread::yield();
    }
  }
}

}  // namespace

TEST_CASE("calls of several threads at once run one at a time, or are refused and have done nothing") {
  const Simulated device;
  {
    Manager manager(device, small);
    std::atomic<std::size_t> refused{0};
    in_threads(4, [&](std::size_t self) {
      std::optional<IntTensor> tensor;
      refused += insist([&] { tensor.emplace(manager.tensor<int>({length})); });
      int value = static_cast<int>(self);
      refused += insist([&] { set(manager, *tensor, value); });
      for (int i = 0; i < 200; ++i) {
        refused += insist([&] { increase(manager, *tensor, 4); });
        value += 4;
        if (i % 20 == 0) refused += insist([&] { tensor->upload(std::vector<int>(length, ++value)); });
        std::vector<int> seen(length);
        std::optional<PendingDownload<Simulated>> pending;
        refused += insist([&] { pending.emplace(tensor->download_async(seen)); });
        refused += insist([&] { pending->wait(); });
        if (seen != std::vector<int>(length, value)) throw Error("a value is wrong");
        refused += insist([&] { (void)manager.report(); });
      }
    });
    MESSAGE(refused.load() << " calls were refused");
    CHECK(manager.report().tensors == 0);
    CHECK(probe(manager));
  }
  check_clean(device);
}

TEST_CASE("threads that take turns are as one") {
  const Simulated device;
  {
    Manager manager(device, small);
    auto tensors = uploaded_tensors(manager, 6);
    std::mutex turn;
    in_threads(3, [&](std::size_t) {
      for (int i = 0; i < 50; ++i) {
        const std::lock_guard lock(turn);
        const auto iteration = manager.iteration();
        for (auto& tensor : tensors) increase(manager, tensor, 1);
      }
    });
    for (int i = 0; i < 6; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 150));
    CHECK(manager.report().iterations_followed > 100);
  }
  check_clean(device);
}

TEST_CASE("tensors and promises may be destroyed by other threads while one works") {
  const Simulated device;
  {
    Manager manager(device, small);
    auto worked_on = uploaded_tensors(manager, 4);
    std::vector<std::vector<IntTensor>> piles;
    for (int i = 0; i < 3; ++i) piles.push_back(uploaded_tensors(manager, 40));
    std::vector<int> target(length);
    std::vector<PendingDownload<Simulated>> promises;
    std::vector<PendingDownload<Simulated>> later;
    for (auto& pile : piles) {
      for (auto& tensor : pile) {
        promises.push_back(tensor.download_async(target));
        for (int i = 0; i < 10; ++i) later.push_back(tensor.download_async(target));
      }
    }
    std::atomic<int> begun{0};
    in_threads(4, [&](std::size_t self) {
      ++begun;
      while (begun < 4) std::this_thread::yield();
      if (self == 3) {
        promises.clear();
      } else {
        while (!piles[self].empty()) piles[self].pop_back();
      }
    });
    in_threads(2, [&](std::size_t self) {
      if (self == 1) {
        while (!later.empty()) later.pop_back();  // the other thread is not refused
        return piles.clear();
      }
      for (int round = 0; round < 50; ++round) {
        for (auto& tensor : worked_on) increase(manager, tensor, 1);
      }
    });
    for (int i = 0; i < 4; ++i) CHECK(holds(worked_on[static_cast<std::size_t>(i)], i + 1 + 50));
    CHECK(manager.report().tensors == 4);
  }
  check_clean(device);
}

TEST_CASE("tensors may be destroyed by several threads while their manager ends, and after it") {
  for (int round = 0; round < 20; ++round) {
    const Simulated device;
    std::optional<Manager> manager(std::in_place, device, small);
    std::vector<std::vector<IntTensor>> piles;
    for (int i = 0; i < 3; ++i) piles.push_back(uploaded_tensors(*manager, 20));
    for (auto& tensor : piles.front()) increase(*manager, tensor, 1);
    std::atomic<int> begun{0};
    in_threads(4, [&](std::size_t self) {
      ++begun;
      while (begun < 4) std::this_thread::yield();
      if (self == 3) return manager.reset();
      piles[self].clear();
    });
    check_clean(device);
  }
}

TEST_CASE("a manager's end waits for the thread that is inside; afterwards that thread is told that it is gone") {
  const Simulated device;
  std::optional<Manager> manager(std::in_place, device, small);
  IntTensor tensor = manager->tensor<int>({length}, "a");
  std::atomic<bool> inside{false};
  std::string told;
  std::thread other([&] {
    Manager& mine = *manager;
    mine.run("long", writes(tensor), [&](auto& op) {
      inside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const auto out = op[tensor];
      op.queue().launch("long", operation_time, {Touch::write(out)}, [out] { out[0] = 1; });
    });
    for (;;) {
      try {
        (void)tensor.download();
      } catch (const ConcurrentUse&) {
        continue;
      } catch (const UsageError& error) {
        told = error.what();
        return;
      }
    }
  });
  while (!inside) std::this_thread::yield();
  manager.reset();
  CHECK(device.counters().device_memories.live == 0);
  other.join();
  CHECK(says(told, {"no longer exists"}));
  check_clean(device);
}

TEST_CASE("a thread may wait for a download while another one ends the manager: it has the value, if not at once") {
  const Simulated device;
  for (int round = 0; round < 100; ++round) {
    std::optional<Manager> manager;
    manager.emplace(device, small);
    auto tensor = manager->tensor<int>({length});
    tensor.upload(std::vector<int>(length, round));
    std::vector<int> seen(length);
    PendingDownload<Simulated> download = tensor.download_async(seen);
    bool refused = false;
    std::thread other([&] {
      try {
        download.wait();
      } catch (const Error&) {
        refused = true;  // the manager was ending
      }
    });
    manager.reset();
    other.join();
    if (refused) download.wait();
    CHECK(seen == std::vector<int>(length, round));
  }
  check_clean(device);
}

TEST_CASE("managers in different threads, each with a device of its own, know nothing of each other") {
  std::vector<Simulated> devices(3);
  in_threads(3, [&](std::size_t self) {
    Manager manager(devices[self], small);
    for (int i = 0; i < 5; ++i) {
      if (!probe(manager)) throw Error("a value is wrong");
    }
  });
  for (const Simulated& device : devices) check_clean(device);
}

TEST_CASE("threads that ask for plans to make, make each one once, while another one runs the program") {
  const Simulated device;
  {
    SchedulerOptions options;
    options.planning = Planning::deferred;
    const Scheduler scheduler(options);
    Manager manager(device, small, scheduler);
    auto tensors = uploaded_tensors(manager, 6);
    std::atomic<bool> over{false};
    in_threads(3, [&](std::size_t self) {
      if (self != 0) {
        Scheduler asked = scheduler;
        while (!over) {
          if (std::optional<PlanningJob> job = asked.planning_job()) job->run();
          std::this_thread::yield();
        }
        return;
      }
      int rounds = 0;
      for (const std::size_t count : {6U, 5U, 4U}) {  // three sequences, so three plans
        const std::uint64_t before = manager.report().iterations_followed;
        while (manager.report().iterations_followed < before + 5 && rounds < 100'000) {
          const auto iteration = manager.iteration("with " + std::to_string(count));
          for (std::size_t i = 0; i < count; ++i) increase(manager, tensors[i], 1);
          ++rounds;
          std::this_thread::yield();
        }
      }
      over = true;
    });
    CHECK(manager.report().plans.size() == 3);
  }
  check_clean(device);
}

TEST_CASE("a capture whose body throws ends when another thread has left the manager") {
  WatchedLoop loop(4);
  loop.settle();
  std::atomic<bool> inside{false};
  std::atomic<bool> thrown_out{false};
  std::atomic<bool> left{false};
  std::thread other;
  const auto body = [&] {
    other = std::thread([&] {
      loop.manager.run("warm up", scratch(row_bytes), [&](auto&) {
        inside = true;
        while (!thrown_out) std::this_thread::yield();
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        left = true;
      });
    });
    while (!inside) std::this_thread::yield();
    thrown_out = true;
    throw 7;
  };
  CHECK_THROWS_AS((void)loop.manager.capture("loop", body), int);
  CHECK(left.load());
  other.join();
  CHECK(!loop.device.capturing());
  loop.manager.synchronize();  // nothing was postponed
  loop.settle();
  loop.check_rows();
}

TEST_CASE("where callers wait, calls of several threads at once run one at a time, and none is refused") {
  CoreDesk desk(small, {.callers_wait = true});
  in_threads(4, [&](std::size_t self) {
    CoreDesk::Rec& mine = desk.tensor("t" + std::to_string(self));
    int value = static_cast<int>(self);
    const auto set_all = [](int to) {
      return [to](const std::vector<std::span<int>>& all) { std::fill(all[0].begin(), all[0].end(), to); };
    };
    for (int i = 0; i < 200; ++i) {
      desk.run({CoreDesk::item(mine, Access::write)}, set_all(++value));
      if (i % 20 == 0 && !desk.holds(mine, value)) throw Error("a value is wrong");
      if (i % 50 == 0) desk.core->destroy(desk.tensor("short"));
      (void)desk.core->report();
    }
    if (!desk.holds(mine, value)) throw Error("a value is wrong");
  });
  CHECK(desk.core->report().tensors == 4);
  CHECK(desk.device.violation_count() == 0);
}
