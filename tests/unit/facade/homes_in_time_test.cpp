// SPDX-License-Identifier: Apache-2.0
// Values that change their places in host, neighbour and file in each iteration: copies in one direction do not wait
// for those in the other one, so that iterations take as long as their plan says.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/memory_file.hpp"
#include "support/small_program.hpp"

namespace swapmm::test::homes_in_time_test {
namespace {

using namespace std::chrono_literals;
using namespace swapmm::literals;

/// The program's last operations so far end then.
std::chrono::nanoseconds computed(const Simulated& device) {
  std::chrono::nanoseconds end{0};
  for (const simulated::LogEntry& entry : device.log()) {
    if (entry.kind == simulated::CommandKind::kernel) end = std::max(end, entry.end);
  }
  return end;
}

/// What an iteration with 24 tensors takes, by its plan and in fact, on a device with room for 8.
struct Times {
  std::chrono::nanoseconds predicted{};
  std::chrono::nanoseconds took{};
  Report report{};
};

Times times_with(simulated::Options speeds, Options options) {
  speeds.log = true;
  options.device_budget = 512_bytes;
  Simulated device(speeds);
  MemoryManager<Simulated> manager(device, options, Scheduler({.planner = "best", .trial_iterations = 0}));
  std::vector<Tensor<int, Simulated>> tensors;
  for (int i = 0; i < 24; ++i) {
    tensors.push_back(manager.tensor<int>({length}, "c" + std::to_string(i)));
    set(manager, tensors.back(), i + 1);
  }
  const auto iterate = [&](int times) {
    for (int i = 0; i < times; ++i) {
      auto iteration = manager.iteration("train");
      for (auto& tensor : tensors) increase(manager, tensor, 1);
    }
  };
  iterate(12);
  const auto before = computed(device);
  iterate(8);
  Times times;
  times.took = (computed(device) - before) / 8;
  times.report = manager.report();
  REQUIRE(times.report.plans.size() == 1);
  times.predicted = times.report.plans.front().predicted.iteration;
  for (int i = 0; i < 24; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], i + 1 + 20));
  CHECK(device.violation_count() == 0);
  return times;
}

constexpr simulated::CopySpeed speed(std::uint64_t bytes_per_second) { return {.bytes_per_second = bytes_per_second}; }

}  // namespace

TEST_CASE("values on a neighbour: an iteration takes as long as its plan says") {
  simulated::Options speeds;
  speeds.h2d = speeds.d2h = speed(8'000'000);
  speeds.neighbour_in = speeds.neighbour_out = speed(32'000'000);
  Options options;
  options.neighbours = {simulated::neighbour(2_KiB)};
  const Times times = times_with(speeds, options);
  INFO(times.report);
  CHECK(times.report.plans.front().neighbours_in > 512_bytes);
  CHECK(times.took * 50 <= times.predicted * 51);
}

TEST_CASE("values in the host that leave it when they are copied: the same") {
  for (const std::uint64_t rate : {32'000'000U, 64'000'000U}) {
    simulated::Options speeds;
    speeds.h2d = speeds.d2h = speed(rate);
    Options options;
    options.neighbours = {
        simulated::neighbour(256_bytes)};  // as slow as it is by default: the plan is one for several memories
    const Times times = times_with(speeds, options);
    INFO(times.report);
    CHECK(times.report.plans.front().tells_neighbours);
    CHECK(times.took * 50 <= times.predicted * 51);
  }
}

// What is copied to or from a file passes an area in the host, of which plans know nothing.
TEST_CASE("values in a file: nearly the same") {
  simulated::Options speeds;
  speeds.h2d = speeds.d2h = speed(64'000'000);
  speeds.file_read = speeds.file_write = speed(40'000'000);
  Options options;
  options.file = std::make_shared<MemoryFile>(64_KiB);
  options.file_staging = Bytes{20 * 64};
  options.host_budget = options.file_staging + 512_bytes;
  const Times times = times_with(speeds, options);
  INFO(times.report);
  CHECK(times.report.plans.front().file_in > 256_bytes);
  CHECK(times.took * 20 <= times.predicted * 21);
}

}  // namespace swapmm::test::homes_in_time_test
