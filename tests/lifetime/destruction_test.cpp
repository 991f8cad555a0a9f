// SPDX-License-Identifier: Apache-2.0
// What a program has of the library may be destroyed in any order, whatever is in flight.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

enum class Work { ended, on_demand, by_a_plan };

SchedulerOptions how_to_plan(Work work) {
  SchedulerOptions options;
  options.planner = "belady";
  options.planning = work == Work::by_a_plan ? Planning::immediate : Planning::deferred;
  return options;
}

simulated::Options device_of(std::uint64_t seed) {
  simulated::Options options;
  options.device_bytes = 1_KiB;
  options.order = simulated::Order::uniform;
  options.pieces = 3;
  options.seed = seed;
  return options;
}

/// One of each kind of object. The tensors: values on both sides, one that no plan has, and a promised download.
struct Objects {
  Objects(Simulated on, Work work) : device(std::move(on)) {
    scheduler.emplace(how_to_plan(work));
    manager.emplace(*device, Options{.device_budget = 256_bytes}, *scheduler);
    tensors.emplace();
    for (int i = 0; i < 6; ++i) {
      tensors->push_back(manager->tensor<int>({length}));
      set(*manager, tensors->back(), i);
    }
    for (int round = 0; round < 4; ++round) {
      iteration.emplace(manager->iteration());
      for (auto& tensor : *tensors) increase(*manager, tensor, 1);
      if (round < 3) iteration.reset();
    }
    job = scheduler->planning_job();
    promise.emplace(tensors->front().download_async(target));
    if (work == Work::ended) device->finish();
  }

  static constexpr std::size_t count = 7;
  void end(std::size_t which) {
    switch (which) {
      case 0: manager.reset(); break;
      case 1: tensors.reset(); break;
      case 2: promise.reset(); break;
      case 3: iteration.reset(); break;
      case 4: scheduler.reset(); break;
      case 5: job.reset(); break;
      default: device.reset(); break;
    }
  }

  std::vector<int> target = std::vector<int>(length);
  std::optional<Simulated> device;
  std::optional<Scheduler> scheduler;
  std::optional<MemoryManager<Simulated>> manager;
  std::optional<std::vector<Tensor<int, Simulated>>> tensors;
  std::optional<Iteration<Simulated>> iteration;
  std::optional<PlanningJob> job;
  std::optional<PendingDownload<Simulated>> promise;
};

using Order = std::array<std::size_t, Objects::count>;

// Where the manager goes before the promise, its end has kept it.
void run_order(const Order& order, Work work, std::uint64_t seed) {
  CAPTURE(order);
  const Simulated device(device_of(seed));
  {
    Objects objects(device, work);
    bool promised = true;
    for (const std::size_t which : order) {
      objects.end(which);
      if (which == 2) promised = false;
      if (which == 0 && promised) CHECK(objects.target == std::vector<int>(length, 4));
      if (which == 0) CHECK(device.counters().device_memories.live == 0);
    }
  }
  check_clean(device);
}

}  // namespace

TEST_CASE("objects may go in every order, with and without work in flight: all is given back, promises are kept") {
  for (const Work work : {Work::ended, Work::on_demand, Work::by_a_plan}) {
    CAPTURE(static_cast<int>(work));
    Order order{0, 1, 2, 3, 4, 5, 6};
    std::uint64_t number = 0;
    do {
      // Each order with one kind of work.
      const std::uint64_t one_of = is_slow ? 24 : is_thorough() ? 3 : 9;
      if (++number % one_of == static_cast<std::uint64_t>(work)) run_order(order, work, number);
    } while (std::next_permutation(order.begin(), order.end()));
    CHECK(number == 5040);
  }
}

TEST_CASE("the device may go with the last of the objects, whichever that is") {
  for (const Work work : {Work::ended, Work::on_demand, Work::by_a_plan}) {
    for (std::size_t last = 0; last < Objects::count; ++last) {
      Objects objects(Simulated(device_of(last + 1)), work);
      for (std::size_t which = Objects::count; which-- > 0;) {
        if (which != last) objects.end(which);
      }
      objects.end(last);
    }
  }
}
