// SPDX-License-Identifier: Apache-2.0
#include "faults/loop/network.hpp"

#include <string>

namespace swapmm::test {

Options small() {
  Options options;
  options.device_budget = four_tensors;
  options.queue_depth = 8;
  return options;
}

Network make_network(World& world, std::size_t layers) {
  Network network;
  network.input = world.tensor("x", World::usual_size, persistent, true);
  for (std::size_t i = 0; i < layers; ++i) network.weights.push_back(world.tensor("w" + std::to_string(i)));
  for (std::size_t i = 0; i <= layers; ++i) {
    network.activations.push_back(world.tensor("h" + std::to_string(i), World::usual_size, persistent, true));
  }
  Element salt = 100;
  for (const std::size_t weight : network.weights) world.upload(weight, ++salt);
  return network;
}

void forward(World& world, const Network& network, Element input, bool as_list) {
  const auto& h = network.activations;
  world.upload(network.input, input);
  world.run({.name = "copy", .reads = {network.input}, .writes = {h[0]}, .updates = {}, .waits_as_list = as_list});
  for (std::size_t i = 0; i < network.weights.size(); ++i) {
    world.run({.name = "forward" + std::to_string(i),
               .reads = {h[i], network.weights[i]},
               .writes = {h[i + 1]},
               .updates = {},
               .waits_as_list = as_list});
  }
}

void backward(World& world, const Network& network, std::size_t scratch, bool as_list) {
  for (std::size_t i = network.weights.size(); i-- > 0;) {
    world.run({.name = "backward" + std::to_string(i),
               .reads = {network.activations[i]},
               .writes = {},
               .updates = {network.weights[i]},
               .scratch_bytes = scratch,
               .waits_as_list = as_list});
  }
}

void train(World& world, const Network& network, Element input, std::size_t scratch, bool as_list) {
  world.begin("train");
  forward(world, network, input, as_list);
  backward(world, network, scratch, as_list);
  world.download(network.activations.back());
  world.end();
}

bool followed(World& world) {
  const auto report = world.report();
  return report && report->iterations_followed >= 2 && report->swap_ins > 0 && report->swap_outs > 0;
}

bool swapped_both_ways(World& world) {
  const auto report = world.report();
  return report && report->swap_ins > 4 && report->swap_outs > 4;
}

bool followed_at_all(World& world) {
  const auto report = world.report();
  return report && report->iterations_followed >= 2;
}

}  // namespace swapmm::test
