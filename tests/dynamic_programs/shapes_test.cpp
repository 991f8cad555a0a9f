// SPDX-License-Identifier: Apache-2.0
//
// Programs whose iterations differ in size: what is timed, what the host waits for, and what is planned nevertheless.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

/// Weights that do not all fit, and trees whose nodes use them in turn.
class TreeDesk {
 public:
  explicit TreeDesk(SchedulerOptions scheduler = {})
      : device_(Simulated()),
        manager(device_, {.device_budget = 256_bytes, .queue_depth = 100'000}, Scheduler(std::move(scheduler))),
        weights_(uploaded_tensors(manager, 6)) {}
  ~TreeDesk() {
    for (std::size_t i = 0; i < weights_.size(); ++i) CHECK(holds(weights_[i], expected_[i]));
    for (const std::string& violation : device_.violations()) FAIL_CHECK(violation);
  }
  TreeDesk(const TreeDesk&) = delete;
  TreeDesk& operator=(const TreeDesk&) = delete;

  static std::size_t bucket_of(std::size_t nodes) {
    std::size_t bucket = 0;
    while ((std::size_t{1} << bucket) < nodes) ++bucket;
    return bucket;
  }

  /// An iteration with a tensor for the nodes, made for this tree alone.
  void run_tree(std::size_t nodes) {
    const auto iteration = manager.iteration("tree");
    auto features = manager.tensor<int>({nodes}, "features", transient);
    set(manager, features, static_cast<int>(nodes));
    visit(nodes);
  }
  /// An iteration with the tensor for the nodes of all trees of a bucket.
  void run_in_bucket(std::size_t nodes) {
    const std::size_t bucket = bucket_of(nodes);
    const auto iteration = manager.iteration("trees of up to " + std::to_string(std::size_t{1} << bucket) + " nodes");
    while (buckets_.size() <= bucket) {
      buckets_.push_back(manager.tensor<int>({std::size_t{1} << buckets_.size()}, "features", transient));
    }
    set(manager, buckets_[bucket], static_cast<int>(nodes));
    visit(std::size_t{1} << bucket);
  }
  /// The host's waits for the device that `call` causes.
  template <class Call>
  std::uint64_t waits_of(Call&& call) {
    const std::uint64_t before = manager.report().host_waits;
    call();
    return manager.report().host_waits - before;
  }
  [[nodiscard]] std::chrono::nanoseconds end() {
    manager.synchronize();
    return device_.now();
  }

 private:
  void visit(std::size_t nodes) {
    for (std::size_t node = 0; node < nodes; ++node) {
      increase(manager, weights_[node % weights_.size()], 1);
      ++expected_[node % weights_.size()];
    }
  }

  Simulated device_;

 public:
  MemoryManager<Simulated> manager;

 private:
  std::vector<Tensor<int, Simulated>> weights_;
  std::vector<Tensor<int, Simulated>> buckets_;
  std::vector<int> expected_{1, 2, 3, 4, 5, 6};
};

/// Sizes of trees, the same for each seed.
std::vector<std::size_t> random_sizes(std::uint64_t seed, std::size_t count, std::size_t largest) {
  std::mt19937_64 engine(seed);
  std::vector<std::size_t> sizes(count);
  for (std::size_t& size : sizes) size = 1 + engine() % largest;
  return sizes;
}

}  // namespace

TEST_CASE("of 60 trees of different sizes the host waits for the first two, and then for none") {
  TreeDesk desk;
  std::vector<std::uint64_t> waits;
  for (std::size_t tree = 0; tree < 60; ++tree) waits.push_back(desk.waits_of([&] { desk.run_tree(60 - tree); }));
  CHECK(std::count(waits.begin() + 3, waits.end(), 0) == 57);
  CHECK(desk.manager.report().plans.empty());
}

TEST_CASE("of trees whose sizes come again now and then, next to none is waited for") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    TreeDesk desk;
    std::uint64_t waits = 0;
    for (const std::size_t size : random_sizes(seed, 200, 20)) waits += desk.waits_of([&] { desk.run_tree(size); });
    CHECK(waits < 10);
  }
}

TEST_CASE("iterations that never repeat end within 1 % of the time on demand") {
  const auto time = [](SchedulerOptions scheduler) {
    TreeDesk desk(std::move(scheduler));
    for (std::size_t tree = 0; tree < 300; ++tree) desk.run_tree(1 + (37 * tree) % 61);
    return desk.end().count();
  };
  const auto on_demand = static_cast<double>(time({.observe = 0}));
  CHECK(static_cast<double>(time({})) <= 1.01 * on_demand);
}

TEST_CASE("in buckets trees of all sizes are planned, and the host waits only where it is two rounds ahead of a plan") {
  TreeDesk desk({.trial_iterations = 0});
  const std::vector<std::size_t> sizes = random_sizes(1, 200, 32);
  for (std::size_t i = 0; i < 60; ++i) desk.run_in_bucket(sizes[i]);
  for (std::size_t i = 60; i < 200; ++i) {
    CAPTURE(i);
    const std::size_t bucket = TreeDesk::bucket_of(sizes[i]);
    const bool third_in_row =
        bucket == TreeDesk::bucket_of(sizes[i - 1]) && bucket == TreeDesk::bucket_of(sizes[i - 2]);
    const std::uint64_t waits = desk.waits_of([&] { desk.run_in_bucket(sizes[i]); });
    CHECK(waits <= (third_in_row ? 1 : 0));
  }
  CHECK(desk.manager.report().iterations_followed > 180);
  CHECK(desk.manager.report().plans.size() == 6);
}
