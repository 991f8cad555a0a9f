// SPDX-License-Identifier: Apache-2.0
// The gate of a manager: who gets in, who is refused, and what a refusal says.
#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

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
