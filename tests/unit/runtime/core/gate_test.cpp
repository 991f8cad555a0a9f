// SPDX-License-Identifier: Apache-2.0
// The gate of a manager: who gets in, who is refused, and what a refusal says.
#include <doctest/doctest.h>

#include <ctime>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/runtime/core/gate.hpp>

#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using runtime::Gate;

TEST_CASE("a nested call is told which operation runs, and the gate forgets the operation when its caller leaves") {
  Gate gate;
  const auto nested = [&] { (void)gate.enter(); };
  {
    Gate::Stay stay = gate.enter();
    stay.runs("grow");
    const std::optional<NestedOperation> error = thrown<NestedOperation>(nested);
    REQUIRE(error);
    CHECK(error->operation() == "grow");
    CHECK(says(error->what(), {"the callable of operation \"grow\"", "cannot nest"}));
  }
  const Gate::Stay next = gate.enter();
  const std::optional<NestedOperation> error = thrown<NestedOperation>(nested);
  REQUIRE(error);
  CHECK(error->operation().empty());
  CHECK(says(error->what(), {"cannot nest"}));
}

TEST_CASE("while a caller is inside, nobody else gets in, and the caller does not wait for itself") {
  Gate gate;
  {
    const Gate::Stay stay = gate.enter();
    CHECK(static_cast<bool>(stay));
    CHECK_FALSE(static_cast<bool>(gate.try_enter()));
    CHECK_FALSE(static_cast<bool>(gate.enter_waiting()));
    std::string refusal;
    std::thread other([&] { refusal = text_of<ConcurrentUse>([&] { (void)gate.enter(); }); });
    other.join();
    CHECK(says(refusal, {"two threads", "order them"}));
  }
  CHECK(static_cast<bool>(gate.try_enter()));
  CHECK(static_cast<bool>(gate.enter_waiting()));
}

TEST_CASE("what any thread may do at any time refuses nobody: others wait for it, and it does not for itself") {
  Gate gate;
  std::atomic<bool> inside{false};
  std::atomic<int> entered{0};
  std::thread brief([&] {
    const Gate::Stay stay = gate.try_enter_briefly();
    CHECK(static_cast<bool>(stay));
    CHECK(gate.has_caller());
    CHECK_FALSE(static_cast<bool>(gate.try_enter_briefly()));
    CHECK_FALSE(static_cast<bool>(gate.try_enter()));
    CHECK_FALSE(static_cast<bool>(gate.enter_waiting()));
    CHECK(thrown<NestedOperation>([&] { (void)gate.enter(); }));
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(entered == 0);
  });
  while (!inside) std::this_thread::yield();
  std::vector<std::thread> others;
  others.emplace_back([&] {
    const Gate::Stay stay = gate.try_enter_briefly();
    entered += static_cast<bool>(stay) ? 1 : 0;
  });
  {
    const Gate::Stay stay = gate.enter();
    ++entered;
  }
  for (std::thread& other : others) other.join();
  brief.join();
  CHECK(entered >= 1);
  const Gate::Stay caller = gate.enter();
  std::thread late([&] { CHECK_FALSE(static_cast<bool>(gate.try_enter_briefly())); });
  late.join();
}

TEST_CASE("who waits at the gate gets in when the other thread has left") {
  Gate gate;
  std::atomic<bool> inside{false};
  std::atomic<bool> asked{false};
  std::atomic<bool> left{false};
  std::thread other([&] {
    const Gate::Stay stay = gate.enter();
    inside = true;
    while (!asked) std::this_thread::yield();
    left = true;
  });
  while (!inside) std::this_thread::yield();
  asked = true;
  {
    const Gate::Stay stay = gate.enter_waiting();
    CHECK(static_cast<bool>(stay));
    CHECK(left.load());
  }
  other.join();
}

TEST_CASE("who waits at the gate for a short time gets in, and refuses nobody meanwhile") {
  Gate gate;
  std::atomic<bool> inside{false};
  std::atomic<bool> left{false};
  std::optional<std::thread> brief;
  {
    const Gate::Stay caller = gate.enter();
    CHECK_FALSE(static_cast<bool>(gate.enter_waiting_briefly()));
    brief.emplace([&] {
      const Gate::Stay stay = gate.enter_waiting_briefly();
      CHECK(static_cast<bool>(stay));
      inside = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      left = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_FALSE(inside.load());
  }
  while (!inside) std::this_thread::yield();
  const Gate::Stay next = gate.enter();  // waits
  CHECK(left.load());
  brief->join();
}

TEST_CASE("where callers wait, a second thread enters when the first one has left, and a nested call is refused") {
  Gate gate(true);
  std::atomic<bool> inside{false};
  std::atomic<bool> left{false};
  std::thread other([&] {
    Gate::Stay stay = gate.enter();
    stay.runs("long");
    CHECK(says(text_of<NestedOperation>([&] { (void)gate.enter(); }), {"\"long\"", "cannot nest"}));
    CHECK_FALSE(static_cast<bool>(gate.enter_waiting()));
    CHECK_FALSE(static_cast<bool>(gate.try_enter()));
    inside = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    left = true;
  });
  while (!inside) std::this_thread::yield();
  CHECK_FALSE(static_cast<bool>(gate.try_enter()));
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  {
    const Gate::Stay stay = gate.enter();
    CHECK(left.load());
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1'000'000 < 50);  // it slept
  other.join();
  CHECK(static_cast<bool>(gate.try_enter()));
  CHECK(static_cast<bool>(gate.enter_waiting()));
  CHECK(static_cast<bool>(gate.enter()));
}

TEST_CASE("where callers wait, they enter in the order in which they came, and none comes between") {
  Gate gate(true);
  std::vector<int> order;  // guarded by the gate
  std::vector<std::thread> threads;
  {
    const Gate::Stay stay = gate.enter();
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&, i] {
        const Gate::Stay mine = gate.enter();
        order.push_back(i);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
  }
  {
    const Gate::Stay stay = gate.enter();
    CHECK(order == std::vector<int>{0, 1, 2});
  }
  for (std::thread& thread : threads) thread.join();
  long count = 0;
  threads.clear();
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 2000; ++k) {
        if (k % 3 == 0) {
          if (const Gate::Stay mine = gate.try_enter(); mine) count += 1;
        }
        const Gate::Stay mine = gate.enter();
        count += 1000;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(count / 1000 >= 8000);
}
