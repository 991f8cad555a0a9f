// SPDX-License-Identifier: Apache-2.0
// What the manager learns from iterations on demand, and what it forgets between them.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"
#include "support/weight_desk.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// A manager that stays on demand, and yet observes.
struct ObservationDesk {
  explicit ObservationDesk(Scheduler scheduler = Scheduler({.observe = 100}))
      : manager(device, {.device_budget = 512_bytes}, std::move(scheduler)) {}
  ~ObservationDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
  Simulated device;
  MemoryManager<Simulated> manager;
};

}  // namespace

TEST_CASE("where accesses are checked no plan is made, and nothing is observed for one") {
  WeightDesk desk({}, {.device_budget = 256_bytes, .check_access = true});
  for (int i = 0; i < 5; ++i) desk.increase_all("train");
  CHECK(desk.report().plans.empty());
  CHECK(desk.report().iterations_on_demand == 5);
  CHECK(!desk.manager.scheduler().trace("train"));
}

TEST_CASE("a transient value that only the host has ends with its iteration too") {
  ObservationDesk desk;
  auto t = desk.manager.tensor<int>({length}, "t", transient);
  {
    const auto iteration = desk.manager.iteration("a");
    t.upload(std::vector<int>(length, 4));
  }
  CHECK(holds(t, 4));
  const auto iteration = desk.manager.iteration("a");
  CHECK_THROWS_AS((void)t.download(), UndefinedValue);
}

TEST_CASE("a transient value gives its device bytes back when the next iteration begins") {
  ObservationDesk desk;
  auto t = desk.manager.tensor<int>({length}, "t", transient);
  {
    const auto iteration = desk.manager.iteration("a");
    set(desk.manager, t, 4);
  }
  CHECK(desk.manager.report().device_used == tensor_bytes);
  const auto iteration = desk.manager.iteration("a");
  CHECK(desk.manager.report().device_used == 0_bytes);
}

TEST_CASE("a transient value that was lost once, and written again, is undefined when its iteration has ended") {
  ObservationDesk desk;
  auto t = desk.manager.tensor<int>({length}, "t", transient);
  {
    const auto iteration = desk.manager.iteration("a");
    CHECK_THROWS_AS(desk.manager.run("throws", writes(t), [](auto&) { throw 7; }), int);
    CHECK_THROWS_AS((void)t.download(), WorkFailed);
    set(desk.manager, t, 4);
  }
  const auto iteration = desk.manager.iteration("a");
  CHECK_THROWS_AS((void)t.download(), UndefinedValue);
}

TEST_CASE("a read of a value that there is not says nothing about how long values live") {
  ObservationDesk desk;
  auto t = desk.manager.tensor<int>({length}, "t");
  auto sum = desk.manager.tensor<int>({length}, "sum");
  for (int i = 0; i < 4; ++i) {
    const auto iteration = desk.manager.iteration("a");
    set(desk.manager, sum, 0);
  }
  CHECK_THROWS_AS(accumulate(desk.manager, t, sum), UndefinedValue);
  for (int i = 0; i < 2; ++i) {
    const auto iteration = desk.manager.iteration("b");
    set(desk.manager, t, 1);
    accumulate(desk.manager, t, sum);
  }
  (void)desk.manager.iteration("a");
  const auto trace = desk.manager.scheduler().trace("b");
  REQUIRE(trace);
  CHECK(trace->host_reads.empty());  // by which a value is kept
}

TEST_CASE("a value that outlived its iteration needs no longer do so once its tensor is destroyed") {
  for (const bool destroyed : {false, true}) {
    ObservationDesk desk;
    auto t = desk.manager.tensor<int>({length}, "t");
    auto sum = desk.manager.tensor<int>({length}, "sum");
    set(desk.manager, sum, 0);
    for (int i = 0; i < 3; ++i) {
      const auto iteration = desk.manager.iteration("a");
      if (i == 1) accumulate(desk.manager, t, sum);  // of the iteration before
      set(desk.manager, t, i);
      accumulate(desk.manager, t, sum);
    }
    if (destroyed) t.reset();
    (void)desk.manager.iteration("b");
    const auto trace = desk.manager.scheduler().trace("a");
    REQUIRE(trace);
    REQUIRE(trace->operations.size() == 2);
    CHECK(trace->host_reads.size() == (destroyed ? 0 : 1));  // by which the value is kept
  }
}

TEST_CASE("an operation that was refused for a dropped value is no part of what was observed") {
  WeightDesk desk;
  auto value = desk.manager.tensor<int>({length}, "value");
  const auto iterate = [&] {
    const auto iteration = desk.manager.iteration("train");
    set(desk.manager, value, 1);
    for (auto& weight : desk.weights) accumulate(desk.manager, value, weight);
  };
  for (int i = 0; i < 5; ++i) iterate();
  REQUIRE(desk.followed() > 0);
  {
    const auto iteration = desk.manager.iteration("train");
    CHECK_THROWS_AS(increase(desk.manager, value, 1), DroppedValue);
  }
  (void)desk.manager.iteration("other");
  const auto trace = desk.manager.scheduler().trace("train");
  REQUIRE(trace);
  CHECK(trace->operations.size() == 1 + desk.weights.size());
}

TEST_CASE("operations outside iterations are not logged") {
  WeightDesk desk;
  const auto& recorder = desk.weights[0].ref().core->session_state()->recorder;
  CHECK(!recorder.has_operations());
  desk.increase_all("train");
  CHECK(recorder.has_operations());
  increase(desk.manager, desk.weights[0], 1);
  CHECK(!recorder.has_operations());
  increase(desk.manager, desk.weights[1], 1);
  CHECK(!recorder.has_operations());
}

TEST_CASE("an operation between iterations ends what was observed: transient values are undefined from then on") {
  WeightDesk desk;
  auto t = desk.manager.tensor<int>({length}, "t", transient);
  {
    const auto iteration = desk.manager.iteration("train");
    set(desk.manager, t, 4);
  }
  CHECK(holds(t, 4));
  increase(desk.manager, desk.weights[0], 1);
  CHECK_THROWS_AS((void)t.download(), UndefinedValue);
}

TEST_CASE("an upload that an operation between iterations has used belongs to no iteration") {
  for (const bool uploads : {false, true}) {
    WeightDesk desk;
    auto x = desk.manager.tensor<int>({length}, "x");
    set(desk.manager, x, 1);
    if (uploads) x.upload(std::vector<int>(length, 1));
    increase(desk.manager, x, 1);
    for (int i = 0; i < 6; ++i) {
      const auto iteration = desk.manager.iteration("train");
      for (auto& weight : desk.weights) accumulate(desk.manager, x, weight);
    }
    CHECK(desk.report().iterations_on_demand == 2);
    CHECK(desk.followed() == 4);
  }
}

TEST_CASE("the host does not wait for iterations that never repeat, and plans those that do after all") {
  WeightDesk desk({}, {.device_budget = 256_bytes, .queue_depth = 10'000}, Scheduler({.trial_iterations = 0}));
  const auto tree = [&](std::size_t size) {
    const auto iteration = desk.manager.iteration("train");
    for (std::size_t i = 0; i < size; ++i) increase(desk.manager, desk.weights[i % 6], 1);
  };
  for (std::size_t size = 1; size <= 10; ++size) tree(size);
  const std::uint64_t waits = desk.report().host_waits;
  for (std::size_t size = 11; size <= 60; ++size) tree(size);
  CHECK(desk.report().host_waits == waits);
  CHECK(desk.report().plans.empty());
  CHECK(desk.followed() == 0);

  for (int i = 0; i < 10; ++i) tree(6);  // one to see it, one to see it again, two with their times
  CHECK(desk.report().plans.size() == 1);
  CHECK(desk.followed() == 6);
  int first = 10;
  for (int size = 1; size <= 60; ++size) first += (size + 5) / 6;
  CHECK(holds(desk.weights[0], first));
}
