// SPDX-License-Identifier: Apache-2.0
// A tree convolution network learns from expression trees of which no two are alike, on a device that has room for a
// part of its data. Every bit of the trained weights is compared with the same network written as loops over ordinary
// memory.
//
//   tree_network [--trees N] [--leaves N] [--depth N] [--budget BYTES] [--observe N] [--seed N]
//
// --depth trains on trees that are one chain of so many operators each, instead of on random trees. --observe 0 makes
// no plans: for comparison.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "by_loops.hpp"
#include "network.hpp"
#include "simulated_networks/options.hpp"

namespace {

using namespace trees;

struct Settings {
  std::uint64_t trees = 1000;
  std::uint64_t leaves = 128;  // of the largest random tree
  std::uint64_t depth = 0;     // 0: random trees
  std::uint64_t budget = 0;    // bytes; 0: little more than the largest operation needs
  std::uint64_t observe = 2;   // SchedulerOptions::observe; 0: no plans
  std::uint64_t seed = 1;
};

/// Throws std::exception if the words make no sense.
Settings settings_of(const std::vector<std::string>& words) {
  Settings settings;
  networks::set_options(words, {{"--trees", &settings.trees},
                                {"--leaves", &settings.leaves},
                                {"--depth", &settings.depth},
                                {"--budget", &settings.budget},
                                {"--observe", &settings.observe},
                                {"--seed", &settings.seed}});
  if (settings.trees == 0 || settings.leaves == 0) throw std::invalid_argument("there must be a tree, with a leaf");
  return settings;
}

std::vector<Tree> make_trees(const Settings& settings) {
  std::mt19937_64 random(settings.seed);
  std::vector<Tree> trees;
  for (std::uint64_t i = 0; i < settings.trees; ++i) {
    trees.push_back(settings.depth != 0 ? chain_tree(random, settings.depth)
                                        : random_tree(random, 1 + random() % settings.leaves));
  }
  return trees;
}

std::size_t largest(const std::vector<Tree>& trees) {
  std::size_t nodes = 0;
  for (const Tree& tree : trees) nodes = std::max(nodes, tree.nodes.size());
  return nodes;
}

/// Trains and compares. Returns whether all bits are equal.
bool run(const Settings& settings) {
  const std::vector<Tree> trees = make_trees(settings);
  const std::uint64_t least = largest_bundle(largest(trees));
  const swapmm::Bytes budget{settings.budget != 0 ? settings.budget : least + least / 8 + 4096};

  swapmm::simulated::Options of_device;
  of_device.device_bytes = budget;
  of_device.h2d.bytes_per_second = of_device.d2h.bytes_per_second = 12'000'000'000;
  Device device(of_device);
  // The host may be many trees ahead: no operation of a tree waits for it.
  swapmm::SchedulerOptions scheduling;
  scheduling.observe = settings.observe;
  scheduling.trial_iterations =
      0;  // trees of one bucket differ in size: two rounds say nothing about which plan is faster
  Manager manager{device, {.device_budget = budget, .queue_depth = 1U << 16U}, swapmm::Scheduler(scheduling)};
  Network network(manager, settings.seed);
  NetworkByLoops by_loops(settings.seed);

  const std::uint64_t part = std::max<std::uint64_t>(1, settings.trees / 10);
  std::vector<float> before(2, 0.0F);
  for (std::uint64_t i = 0; i < trees.size(); ++i) {
    network.train(trees[i]);
    by_loops.train(trees[i]);
    if ((i + 1) % part != 0) continue;
    const std::vector<float> totals = network.totals();
    std::cout << "trees " << i + 1 << ": mean squared error " << (totals[0] - before[0]) / static_cast<float>(part)
              << ", right " << 100 * (totals[1] - before[1]) / static_cast<float>(part) << " %\n";
    before = totals;
  }

  const bool equal = network.weights() == by_loops.weights() && network.totals() == by_loops.totals();
  const swapmm::Report report = manager.report();
  std::cout << "largest tree: " << largest(trees) << " nodes; buckets: " << network.buckets() << '\n'
            << "budget " << budget.value << " bytes, at most used " << report.device_peak.value << '\n'
            << "iterations by a plan: " << report.iterations_followed << " of " << trees.size()
            << "; waits of the host: " << report.host_waits << '\n'
            << "time of the device " << std::chrono::duration<double, std::milli>(device.now()).count() << " ms\n"
            << "bytes to the device " << report.h2d.value << ", to the host " << report.d2h.value << '\n'
            << "the weights are " << (equal ? "" : "NOT ") << "those of the host's loops, bit for bit\n";
  return equal && report.device_peak <= budget;
}

}  // namespace

int main(int count, char** words) {
  return networks::exit_code("tree_network", count, words,
                             [](const std::vector<std::string>& options) { return run(settings_of(options)); });
}
