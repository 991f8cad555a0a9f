// SPDX-License-Identifier: Apache-2.0
// A manager with several neighbours: each has queues of its own, a speed of its own, and is a memory of its own for
// plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

namespace swapmm::test::neighbour_paths_test {
namespace {

using namespace std::chrono_literals;
using namespace swapmm::literals;

std::shared_ptr<simulated::Neighbour> neighbour_with(Bytes bytes, std::uint64_t bytes_per_second,
                                                     const std::string& name = "a neighbour") {
  simulated::NeighbourOptions options;
  options.bytes = bytes;
  options.name = name;
  options.in = options.out = simulated::CopySpeed{.bytes_per_second = bytes_per_second};
  return std::make_shared<simulated::Neighbour>(options);
}

std::chrono::nanoseconds end_of_kernels(const Simulated& device) {
  std::chrono::nanoseconds end{0};
  for (const simulated::LogEntry& entry : device.log()) {
    if (entry.kind == simulated::CommandKind::kernel) end = std::max(end, entry.end);
  }
  return end;
}

/// A device with room for eight tensors; the host carries one in 8,000 ns; an operation takes 1,000 ns.
struct Desk {
  explicit Desk(const std::vector<std::shared_ptr<simulated::Neighbour>>& neighbours, bool one_port = false)
      : device(speeds(one_port)),
        manager(device, options(neighbours), Scheduler({.planner = "best", .trial_iterations = 0})),
        probed(device.log().size()) {}

  static simulated::Options speeds(bool one_port) {
    simulated::Options options;
    options.h2d = options.d2h = {.bytes_per_second = 8'000'000U};
    options.one_port = one_port;
    options.log = true;
    return options;
  }
  static Options options(const std::vector<std::shared_ptr<simulated::Neighbour>>& neighbours) {
    Options options{.device_budget = 512_bytes};
    options.neighbours.assign(neighbours.begin(), neighbours.end());
    return options;
  }

  void make(int count) {
    for (int i = 0; i < count; ++i) {
      tensors.push_back(manager.tensor<int>({length}, "c" + std::to_string(i)));
      set(manager, tensors.back(), i + 1);
    }
  }
  void iterate(int times) {
    for (int i = 0; i < times; ++i) {
      auto iteration = manager.iteration("train");
      for (auto& tensor : tensors) increase(manager, tensor, 1);
      ++added;
    }
  }
  [[nodiscard]] bool all_hold() const {
    bool all = true;
    for (std::size_t i = 0; i < tensors.size(); ++i) all = all && holds(tensors[i], static_cast<int>(i) + 1 + added);
    return all;
  }
  /// When the last operation so far ends.
  [[nodiscard]] std::chrono::nanoseconds computed() const { return end_of_kernels(device); }
  /// Of the commands that were queued in that queue from entry `first` of the log on.
  [[nodiscard]] Bytes copied(QueueKind queue, std::size_t first) const {
    Bytes bytes;
    const auto& log = device.log();
    for (std::size_t i = first; i < log.size(); ++i) {
      if (log[i].queue == queue) bytes += log[i].bytes;
    }
    return bytes;
  }

  Simulated device;
  MemoryManager<Simulated> manager;
  std::size_t probed;  // entries of the log when the manager had measured the links
  std::vector<Tensor<int, Simulated>> tensors;
  int added = 0;
};

}  // namespace

TEST_CASE("copies of several neighbours run at the same time, each in its queue, and a plan counts on it") {
  // One neighbour carries a tensor in 2,000 ns, in each direction. Two together are fast enough.
  const auto time_with = [](std::size_t count) {
    std::vector<std::shared_ptr<simulated::Neighbour>> neighbours;
    for (std::size_t i = 0; i < count; ++i) neighbours.push_back(neighbour_with(2_KiB, 32'000'000U));
    Desk desk(neighbours);
    desk.make(24);
    desk.iterate(8);
    const std::size_t first = desk.device.log().size();
    desk.iterate(8);
    desk.manager.synchronize();
    const Report report = desk.manager.report();
    INFO(report);
    REQUIRE(report.plans.size() == 1);
    CHECK(report.plans.front().tells_neighbours);
    CHECK(report.iterations_followed >= 12);
    for (std::size_t path = 0; path < 3; ++path) {
      CHECK((desk.copied(neighbour_in_queue(path), first).value != 0) == (path < count));
      CHECK((desk.copied(neighbour_out_queue(path), first).value != 0) == (path < count));
    }
    CHECK(desk.all_hold());
    CHECK(desk.device.violation_count() == 0);
    return report.plans.front().predicted.iteration;
  };
  const auto one = time_with(1);
  const auto two = time_with(2);
  const auto three = time_with(3);
  CHECK(one > 32us);
  CHECK(two < 28us);
  CHECK(three <= two);
  CHECK(three >= 24us);
}

TEST_CASE("a plan and swapping on demand use a fast neighbour before a slow one, whatever the order of the options") {
  const auto slow = neighbour_with(512_bytes, 16'000'000U, "slow");
  const auto fast = neighbour_with(1_KiB, 256'000'000U, "fast");
  Desk desk({slow, fast});
  CHECK(desk.probed > 0);
  CHECK(desk.manager.report().neighbours_written == 0_bytes);  // what was copied to measure is no value
  CHECK(desk.manager.report().neighbours_read == 0_bytes);
  CHECK(desk.manager.report().neighbours_peak == 0_bytes);
  CHECK(desk.manager.report().host_used == 0_bytes);
  desk.make(20);
  CHECK(desk.copied(QueueKind::neighbour_out, desk.probed) == 0_bytes);
  CHECK(desk.copied(QueueKind::neighbour_2_out, desk.probed) == 768_bytes);
  desk.iterate(8);
  const std::size_t first = desk.device.log().size();
  desk.iterate(8);
  desk.manager.synchronize();
  CHECK(desk.copied(QueueKind::neighbour_2_in, first).value > 2 * desk.copied(QueueKind::neighbour_in, first).value);
  CHECK(desk.copied(QueueKind::h2d, first) == 0_bytes);
  CHECK(desk.all_hold());
}

TEST_CASE("neighbours that share the device's port carry no more together, and plans know it") {
  const auto time_with = [](std::size_t count, bool one_port) {
    std::vector<std::shared_ptr<simulated::Neighbour>> neighbours;
    for (std::size_t i = 0; i < count; ++i) neighbours.push_back(neighbour_with(2_KiB, 32'000'000U));
    Desk desk(neighbours, one_port);
    desk.make(24);
    desk.iterate(12);
    const auto before = desk.computed();
    desk.iterate(8);
    const std::chrono::nanoseconds took = (desk.computed() - before) / 8;
    const Report report = desk.manager.report();
    INFO(report);
    REQUIRE(report.plans.size() == 1);
    CHECK(desk.all_hold());
    return std::pair(report.plans.front().predicted.iteration, took);
  };
  const auto [one, one_took] = time_with(1, true);
  const auto [apart, apart_took] = time_with(3, false);
  const auto [shared, shared_took] = time_with(3, true);
  CHECK(apart < one);
  CHECK(shared * 20 > one * 19);  // no faster than one neighbour
  CHECK(shared_took * 20 > one_took * 19);
  CHECK(apart_took < one_took);
  // What is predicted comes true.
  CHECK(one_took * 50 < one * 51);
  CHECK(apart_took * 50 < apart * 51);
  CHECK(shared_took * 50 < shared * 51);
}

TEST_CASE("paths are ordered by time, and by the list where times are nearly alike") {
  using runtime::fastest_first;
  using Order = runtime::NeighbourOrder;
  CHECK(fastest_first({30ns, 20ns, 10ns}) == Order{2, 1, 0});
  CHECK(fastest_first({12ns, 10ns, 11ns}) == Order{0, 1, 2});
  CHECK(fastest_first({13ns, 10ns, 12ns}) == Order{1, 0, 2});
  CHECK(fastest_first({100ns, 13ns, 10ns}) == Order{2, 1, 0});
  CHECK(fastest_first({0ns, 0ns, 0ns}) == Order{0, 1, 2});
}

TEST_CASE("each neighbour gives its memory back by itself, and plans follow: the others keep what they have") {
  std::vector<std::shared_ptr<simulated::Neighbour>> three;
  for (int i = 0; i < 3; ++i) three.push_back(neighbour_with(256_bytes, 64'000'000U));
  Desk desk(three);
  desk.make(20);
  desk.iterate(8);
  CHECK(desk.manager.report().plans.size() == 1);
  desk.manager.set_neighbour_budget(*three[1], 0_bytes);
  CHECK(three[0]->in_use() == 256_bytes);
  CHECK(three[1]->in_use() == 0_bytes);
  CHECK(three[2]->in_use() == 256_bytes);
  const std::size_t without = desk.device.log().size();
  desk.iterate(8);
  CHECK(desk.copied(QueueKind::neighbour_2_in, without) == 0_bytes);
  CHECK(desk.copied(QueueKind::neighbour_in, without) > 0_bytes);
  CHECK(desk.copied(QueueKind::neighbour_3_in, without) > 0_bytes);
  {
    const Report fewer = desk.manager.report();
    INFO(fewer);
    REQUIRE(fewer.plans.size() == 1);
    CHECK(fewer.plans.front().tells_neighbours);
  }
  // As many bytes, but on another neighbour: the plan is another one.
  desk.manager.set_neighbour_budget(*three[1], 256_bytes);
  desk.manager.set_neighbour_budget(*three[0], 0_bytes);
  const std::size_t exchanged = desk.device.log().size();
  desk.iterate(8);
  CHECK(desk.copied(QueueKind::neighbour_in, exchanged) == 0_bytes);
  CHECK(desk.copied(QueueKind::neighbour_2_in, exchanged) > 0_bytes);
  REQUIRE(desk.manager.report().plans.size() == 1);
  CHECK(desk.manager.report().plans.front().tells_neighbours);
  CHECK(desk.manager.report().plans.front().neighbours_in > 0_bytes);
  CHECK(desk.all_hold());
  // All are back: so is the first plan.
  desk.manager.set_neighbour_budget(*three[0], 256_bytes);
  const Report before = desk.manager.report();
  desk.iterate(4);
  CHECK(desk.manager.report().iterations_followed == before.iterations_followed + 4);
  CHECK(desk.all_hold());
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("more neighbours than paths: the last ones share one, and nothing is lost") {
  std::vector<std::shared_ptr<simulated::Neighbour>> five;
  for (int i = 0; i < 5; ++i) five.push_back(neighbour_with(128_bytes, 64'000'000U, "n" + std::to_string(i)));
  Desk desk(five);
  desk.make(22);
  desk.iterate(8);
  const std::size_t first = desk.device.log().size();
  desk.iterate(8);
  const Report report = desk.manager.report();
  CHECK(report.neighbours_budget == 640_bytes);
  CHECK(desk.copied(QueueKind::neighbour_3_in, first) > desk.copied(QueueKind::neighbour_in, first));
  desk.manager.set_neighbour_budget(*five[3], 0_bytes);
  CHECK(five[3]->in_use() == 0_bytes);
  CHECK(five[4]->in_use() == 128_bytes);
  desk.iterate(8);
  CHECK(desk.all_hold());
  CHECK(desk.device.violation_count() == 0);
}

TEST_CASE("a neighbour that is lost takes nothing of the others with it") {
  const auto first = neighbour_with(128_bytes, 64'000'000U);
  const auto second = neighbour_with(128_bytes, 64'000'000U);
  Desk desk({first, second});
  desk.make(14);  // c0 and c1 are on the first neighbour, c2 and c3 on the second one, c4 and c5 in the host
  desk.manager.synchronize();
  second->lose();
  for (std::size_t i : {13U, 10U, 9U, 8U, 7U, 6U, 5U, 4U, 1U, 0U})
    CHECK(holds(desk.tensors[i], static_cast<int>(i) + 1));
  for (std::size_t i : {2U, 3U}) CHECK_THROWS_AS((void)desk.tensors[i].download(), Error);
}

}  // namespace swapmm::test::neighbour_paths_test
