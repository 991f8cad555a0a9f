// SPDX-License-Identifier: Apache-2.0
#include "faults/loop/memory_scenarios.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <swapmm/shared_links.hpp>

#include "faults/loop/network.hpp"
#include "support/memory_file.hpp"

namespace swapmm::test {
namespace {

// Slots of 128 bytes: a value of 256 bytes takes two.
Options with_file() {
  Options options = small();
  options.file_staging = Bytes{10 * 128};
  options.host_budget = options.file_staging + Bytes{512};
  options.file = std::make_shared<MemoryFile>(Bytes{16384}, Bytes{128});
  return options;
}

void values_in_a_file(World& world) {
  world.make_manager(with_file());
  std::vector<std::size_t> t;
  for (int i = 0; i < 8; ++i) t.push_back(world.tensor("t" + std::to_string(i)));
  for (std::size_t i = 0; i < 8; ++i) world.upload(t[i], static_cast<Element>(i));
  for (std::size_t i = 0; i < 8; ++i) {
    world.run({.name = "mix", .reads = {t[(i + 3) % 8]}, .writes = {}, .updates = {t[i]}});
    if (i % 3 == 0) world.download_later(t[i]);
  }
  world.upload_part(t[1], 8, 16, 5);
  world.upload_part(t[7], 30, 10, 6);
  for (std::size_t i = 0; i < 8; ++i) world.run({.name = "again", .reads = {}, .writes = {}, .updates = {t[i]}});
  world.collect();
  for (std::size_t i = 0; i < 8; ++i) world.download(t[i]);
  world.synchronize();
}

void trained_with_a_file(World& world) {
  Options options = with_file();
  options.host_budget += Bytes{512};  // room for some of the values, so that plans tell host and file apart
  world.make_manager(options, steady({.planner = "belady"}));  // a planner of the program knows no file
  const Network network = make_network(world, 3);
  for (Element i = 0; i < 6; ++i) train(world, network, i, 0, i % 2 == 0);
  world.download(network.weights[0]);
  world.synchronize();
}

bool used_the_file(World& world) {
  const auto report = world.report();
  return swapped_both_ways(world) && report->file_read.value > 0 && report->file_written.value > 0;
}

bool told_host_and_file_apart(World& world) {
  const auto report = world.report();
  return followed_at_all(world) && used_the_file(world) &&
         std::any_of(report->plans.begin(), report->plans.end(),
                     [](const PlanSummary& plan) { return plan.tells_file; });
}

// The device has room for some tensors, two neighbours for some others, and the host has the rest.
void trained_with_neighbours(World& world) {
  Options options = small();
  options.neighbours = {simulated::neighbour(Bytes{256}), simulated::neighbour(Bytes{256})};
  world.make_manager(options, steady({.planner = "belady"}));
  const Network network = make_network(world, 3);
  for (Element i = 0; i < 6; ++i) train(world, network, i, 0, i % 2 == 0);
  world.upload_part(network.weights[1], 8, 16, 5);
  world.download(network.weights[0]);
  world.download_later(network.weights[2]);
  world.collect();
  world.synchronize();
}

bool used_neighbours(World& world) {
  const auto report = world.report();
  return followed_at_all(world) && report->neighbours_read.value > 0 && report->neighbours_written.value > 0;
}

// Values are encoded on their way; the host reads and changes some of them.
void trained_with_encodings(World& world) {
  Options options = small();
  options.codec_staging = Bytes{2 * encoder_bytes(Bytes{World::usual_size * sizeof(Element)}).value};
  options.device_budget += options.codec_staging;
  world.make_manager(options);
  const Network network = make_network(world, 4);
  world.upload(network.input, 7);
  std::vector<std::size_t> t;
  for (int i = 0; i < 6; ++i) {
    t.push_back(world.tensor("t" + std::to_string(i)));
    world.run({.name = "write", .reads = {network.input}, .writes = {t.back()}, .updates = {}});
  }
  world.download(t[0]);
  world.upload_part(t[1], 8, 16, 5);
  world.download_later(t[1]);
  for (Element i = 0; i < 6; ++i) train(world, network, i, 0, i % 2 == 0);
  world.download(network.weights[0]);
  world.collect();
  world.synchronize();
}

bool used_encodings(World& world) {
  const auto report = world.report();
  return followed_at_all(world) && report->encoded_in.value > 0 && report->encoded_out.value > 0;
}

// Copies of the second device wait for copies of the first one.
constexpr LinkCapacities shared_by_two{.both_ways = 256'000'000};

void two_devices(World& world) {
  Options options = small();
  options.device_budget = Bytes{3 * World::usual_size * sizeof(Element)};
  options.shared_links = std::make_shared<SharedLinks>(shared_by_two);
  struct Part {
    std::size_t input = 0;
    std::array<std::size_t, 2> weights{};
    std::array<std::size_t, 2> results{};
  };
  std::array<Part, 2> parts;
  for (std::size_t m = 0; m < parts.size(); ++m) {
    world.make_manager(options, steady({.planner = "best"}), m);
    Part& part = parts[m];
    part.input = world.tensor("x", World::usual_size, persistent, true);
    for (std::size_t i = 0; i < 2; ++i) {
      part.weights[i] = world.tensor("w" + std::to_string(i));
      world.upload(part.weights[i], static_cast<Element>(i));
      part.results[i] = world.tensor("r" + std::to_string(i), World::usual_size, transient, true);
    }
  }
  for (Element i = 0; i < 7; ++i) {
    for (std::size_t m = 0; m < parts.size(); ++m) {
      const auto& [input, weights, results] = parts[m];
      world.use_manager(m);
      world.begin("train");
      world.upload(input, i);
      world.run({.name = "forward0", .reads = {input, weights[0]}, .writes = {results[0]}, .updates = {}});
      world.run({.name = "forward1", .reads = {results[0], weights[1]}, .writes = {results[1]}, .updates = {}});
      world.run({.name = "backward1", .reads = {results[1]}, .writes = {}, .updates = {weights[1]}});
      world.run({.name = "backward0", .reads = {results[0]}, .writes = {}, .updates = {weights[0]}});
      world.end();
    }
  }
  for (std::size_t m = 0; m < parts.size(); ++m) {
    world.use_manager(m);
    world.download(parts[m].weights[0]);
    world.synchronize();
  }
}

bool took_turns(World& world) {
  const auto report = world.report();
  return followed(world) && report->turns_taken >= 5;
}

constexpr std::array<Scenario, 5> all_of_memories{{
    {.name = "values in a file", .run = values_in_a_file, .achieved = used_the_file},
    {.name = "trained with a file", .run = trained_with_a_file, .achieved = told_host_and_file_apart},
    {.name = "trained with neighbours", .run = trained_with_neighbours, .achieved = used_neighbours, .stride = 6},
    {.name = "trained with encodings", .run = trained_with_encodings, .achieved = used_encodings, .stride = 6},
    {.name = "two devices that share links",
     .run = two_devices,
     .device =
         [](simulated::Options& options) {
           options.order = simulated::Order::virtual_time;
           options.h2d.bytes_per_second = options.d2h.bytes_per_second = shared_by_two.both_ways;
           options.clock = std::make_shared<simulated::SharedClock>(shared_by_two);
         },
     .achieved = took_turns,
     .managers = 2,
     .first = 1,
     .stride = 12},
}};

}  // namespace

std::span<const Scenario> memory_scenarios() { return all_of_memories; }

}  // namespace swapmm::test
