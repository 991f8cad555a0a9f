// SPDX-License-Identifier: Apache-2.0
// Random replicas: networks, numbers of replicas and processes, chunk sizes, budgets, planners, orders of the devices'
// steps. Their weights have the bits of one device that sums in the same order; who fails is told to all.
//
// SWAPMM_TEST_SEED=n, SWAPMM_TEST_SEEDS=n: support/seeds.hpp

#include <swapmm/replicas.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/replicas/thread_exchange.hpp>
#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/replica_network.hpp"
#include "support/seeds.hpp"
#include "support/steady_plans.hpp"

namespace swapmm::test::random_replicas_test {
using Device = simulated::Backend;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::size_t from_to(std::size_t low, std::size_t high) { return low + random_() % (high - low + 1); }
  bool one_in(std::size_t count) { return random_() % count == 0; }

 private:
  std::mt19937_64 random_;
};

/// How a run goes wrong.
enum class Trouble : std::uint8_t { none, body_throws, update_throws, ends_early };

struct Case {
  std::uint64_t seed = 0;
  std::vector<ReplicaLayer> layers;
  std::vector<std::size_t> spread;  // replicas of each process
  Bytes budget{};
  ReplicaOptions options;
  simulated::Options device;
  SchedulerOptions scheduler;
  std::size_t steps = 0;
  Trouble trouble = Trouble::none;
  std::size_t troubled = 0;    // the process
  std::size_t trouble_at = 0;  // the step

  [[nodiscard]] std::size_t replicas() const { return std::accumulate(spread.begin(), spread.end(), std::size_t{0}); }
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << "seed " << seed << ": " << layers.size() << " layers in chunks of " << options.layers_per_chunk
        << ", replicas";
    for (const std::size_t count : spread) out << ' ' << count;
    out << ", budget " << budget.value << ", planner " << scheduler.planner.name() << ", " << steps << " steps";
    if (trouble != Trouble::none) {
      out << ", trouble " << static_cast<int>(trouble) << " in process " << troubled << " at step " << trouble_at;
    }
    return out.str();
  }
};

/// Of the largest operation of such a network.
std::size_t largest_bundle(const std::vector<ReplicaLayer>& layers) {
  const auto bytes = [](std::size_t elements) { return (elements * sizeof(float) + 255) / 256 * 256; };
  std::size_t largest = 0;
  std::size_t input = bytes(24);
  for (const ReplicaLayer& layer : layers) {
    const std::size_t weights = bytes(layer.weights) + bytes(layer.bias);
    const std::size_t output = bytes(layer.width);
    largest = std::max({largest, input + weights + output, input + output + bytes(layer.weights),
                        input + output + bytes(layer.bias), 2 * bytes(layer.weights), 2 * bytes(layer.bias)});
    input = output;
  }
  return largest;
}

Case draw(std::uint64_t seed) {
  Dice dice(seed);
  Case made;
  made.seed = seed;
  for (std::size_t left = dice.from_to(1, 7); left > 0; --left) {
    ReplicaLayer layer;
    layer.weights = dice.one_in(4) ? 0 : dice.from_to(1, 300);
    layer.bias = dice.one_in(2) ? 0 : dice.from_to(1, 30);
    layer.width = dice.from_to(1, 150);
    layer.forward = std::chrono::nanoseconds{dice.from_to(10, 400)};
    layer.backward = std::chrono::nanoseconds{dice.from_to(20, 800)};
    made.layers.push_back(layer);
  }
  for (std::size_t left = dice.from_to(1, 5); left > 0; left -= made.spread.back()) {
    made.spread.push_back(dice.one_in(2) ? left : dice.from_to(1, left));
  }
  const std::size_t least = largest_bundle(made.layers);
  const std::size_t parts = dice.from_to(0, 3);
  made.budget = Bytes{least + parts * dice.from_to(0, least)};
  made.options.layers_per_chunk = dice.one_in(3) ? ReplicaOptions::search : dice.from_to(1, made.layers.size());
  made.options.chunk_size = {.settle = dice.from_to(0, 2), .timed = dice.from_to(1, 2), .patience = dice.from_to(1, 2)};
  made.options.sum_threads = dice.from_to(1, 3);
  constexpr std::array orders{simulated::Order::virtual_time, simulated::Order::uniform, simulated::Order::pct,
                              simulated::Order::copies_first, simulated::Order::copies_last};
  made.device.order = orders[dice.from_to(0, orders.size() - 1)];
  made.device.seed = seed;
  made.device.pieces = static_cast<int>(dice.from_to(1, 3));
  constexpr std::array planners{"belady", "on-demand", "excess-overlap", "per-operation"};
  made.scheduler.planner = planners[dice.from_to(0, planners.size() - 1)];
  if (dice.one_in(2)) made.scheduler = steady(made.scheduler);
  made.steps = dice.from_to(2, 8);
  if (dice.one_in(3)) {
    // A process that ends early is an error of those that wait for it.
    made.trouble = static_cast<Trouble>(dice.from_to(1, made.spread.size() > 1 ? 3 : 2));
    made.troubled = dice.from_to(0, made.spread.size() - 1);
    made.trouble_at = dice.from_to(0, made.steps - 1);
    // The others notice in the next step that they begin, if there is anything to sum.
    if (made.trouble == Trouble::update_throws) made.trouble_at = std::min(made.trouble_at, made.steps - 2);
    made.layers.front().weights = std::max<std::size_t>(made.layers.front().weights, 1);
  }
  return made;
}

/// One process of a case.
class Process {
 public:
  Process(const Case& all, std::size_t rank, std::unique_ptr<Exchange> exchange)
      : case_(all), rank_(rank), alone_(all.spread.size() == 1) {
    SimulatedReplicas::Setting own;
    own.replicas = all.spread[rank];
    own.first = std::accumulate(all.spread.begin(), all.spread.begin() + static_cast<std::ptrdiff_t>(rank), 0UL);
    own.budget = all.budget;
    own.options = all.options;
    if (!alone_) own.options.exchange = std::move(exchange);
    own.device = all.device;
    own.device.seed += 7 * rank;
    own.scheduler = all.scheduler;
    replicas_.emplace(all.layers, own);
  }

  /// What goes wrong beside what is meant to goes to `problems`.
  void run(std::vector<std::string>& problems) {
    for (std::size_t step = 0; step < case_.steps; ++step) {
      if (is_troubled(step)) {
        if (case_.trouble == Trouble::ends_early) return;
        fail(problems);  // throws on, if there are others
      }
      std::size_t updates = 0;
      replicas_->step([&](const SummedLayer<float>& sum) {
        ++updates;
        if (sum.layer >= case_.layers.size()) problems.emplace_back("an update of no layer");
      });
      if (updates != case_.layers.size() * case_.spread[rank_]) {
        problems.push_back(std::to_string(updates) + " updates in a step");
      }
    }
  }

  [[nodiscard]] std::size_t followed() { return replicas_->manager(0).report().iterations_followed; }

  void check(const std::vector<float>& expected, std::vector<std::string>& problems) {
    for (std::size_t i = 0; i < case_.spread[rank_]; ++i) {
      if (!same_bits(replicas_->weights(i), expected)) {
        problems.push_back("replica " + std::to_string(i) + " of process " + std::to_string(rank_) + " has other bits");
      }
      check_device(i, problems);
    }
  }

 private:
  [[nodiscard]] bool is_troubled(std::size_t step) const {
    return case_.trouble != Trouble::none && rank_ == case_.troubled && step == case_.trouble_at;
  }

  // A step in which something throws before anything is learned. Alone, the process goes on with the same step.
  void fail(std::vector<std::string>& problems) {
    try {
      if (case_.trouble == Trouble::body_throws) {
        replicas_->replicas().step([](std::size_t) { throw std::runtime_error("out of luck"); },
                                   [](const SummedLayer<float>&) {});
      } else {
        replicas_->step([](const SummedLayer<float>&) { throw std::runtime_error("out of luck"); });
      }
      problems.emplace_back("what a function threw did not pass through");
    } catch (const std::runtime_error& error) {
      if (!alone_) throw;
      if (std::string(error.what()) != "out of luck") throw;
    }
  }

  void check_device(std::size_t replica, std::vector<std::string>& problems) {
    const Report report = replicas_->manager(replica).report();
    if (report.device_peak > case_.budget) problems.emplace_back("above the budget");
    if (replicas_->device(replica).violation_count() != 0) problems.emplace_back("an order was violated");
  }

  const Case& case_;
  std::size_t rank_;
  bool alone_;
  std::optional<SimulatedReplicas> replicas_;
};

std::vector<float> on_one_device(const Case& all) {
  MemoryManager<Device> manager(Device(), {.device_budget = Bytes{1U << 20U}});
  ReplicaNetwork network(manager, all.layers);
  for (std::size_t step = 0; step < all.steps; ++step) learn_on_one_device(network, step, all.replicas());
  return network.weights();
}

/// What the error of a process must be, if it has one.
std::string error_of(const Case& all, std::size_t rank) {
  if (all.trouble == Trouble::none || all.spread.size() == 1) return "";
  if (all.trouble == Trouble::ends_early) {
    return rank == all.troubled ? "" : "replica process " + std::to_string(all.troubled) + " has ended";
  }
  return rank == all.troubled ? "out of luck"
                              : "replica process " + std::to_string(all.troubled) + " failed: out of luck";
}

/// `followed`: iterations by plans, of the first process.
std::vector<std::string> problems_of(const Case& all, std::size_t& followed) {
  const std::size_t processes = all.spread.size();
  const std::vector<float> expected = on_one_device(all);
  std::vector<std::unique_ptr<Exchange>> exchanges = exchanges_between_threads(processes);
  std::vector<std::vector<std::string>> problems(processes);
  const auto run = [&](std::size_t rank) {
    std::string thrown;
    try {
      Process process(all, rank, std::move(exchanges[rank]));
      process.run(problems[rank]);
      if (processes == 1 || all.trouble == Trouble::none) process.check(expected, problems[rank]);
      if (rank == 0) followed += process.followed();
    } catch (const std::exception& error) {
      thrown = error.what();
    }
    if (thrown != error_of(all, rank)) {
      problems[rank].push_back("process " + std::to_string(rank) + " ended by '" + thrown + "' and not by '" +
                               error_of(all, rank) + "'");
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 1; rank < processes; ++rank) threads.emplace_back(run, rank);
    run(0);
  }
  std::vector<std::string> found;
  for (const auto& own : problems) found.insert(found.end(), own.begin(), own.end());
  return found;
}

TEST_CASE("random replicas have the bits of one device, and each process learns of what ends another") {
  const Seeds all = seeds(static_cast<std::uint64_t>(effort(360, 12)));
  std::size_t several = 0;
  std::size_t troubled = 0;
  std::size_t both = 0;
  std::size_t followed = 0;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    const Case one = draw(seed);
    several += one.spread.size() > 1 ? 1U : 0U;
    troubled += one.trouble != Trouble::none ? 1U : 0U;
    both += one.spread.size() > 1 && one.trouble != Trouble::none ? 1U : 0U;
    for (const std::string& problem : problems_of(one, followed)) FAIL_CHECK(one.text() << ": " << problem);
  }
  if (all.count < 50) return;
  CHECK(several > all.count / 6);
  CHECK(troubled > all.count / 6);
  CHECK(both > all.count / 20);
  CHECK(followed > all.count);  // iterations
}

}  // namespace swapmm::test::random_replicas_test
