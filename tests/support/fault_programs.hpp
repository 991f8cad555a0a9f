// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two programs in a fault world, that together use all of the runtime: observing, plans, their being left and found
// again, values read on the side.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "support/fault_world.hpp"
#include "support/memory_file.hpp"

namespace swapmm::test {

/// Room for four tensors on the device.
[[nodiscard]] inline Options four_tensors() {
  return {.device_budget = Bytes{4 * chain_tensor.value}, .queue_depth = 8};
}

/// The same, for one on the host, and a file for the others. A tensor goes through slots in two or more pieces.
[[nodiscard]] inline Options four_tensors_and_a_file() {
  const Bytes alignment{256};
  Options options = four_tensors();
  options.file_staging = Bytes{10 * round_up(Bytes{chain_tensor.value / 2}, alignment).value};
  options.host_budget = options.file_staging + chain_tensor;
  options.file = std::make_shared<MemoryFile>(round_up(Bytes{32 * chain_tensor.value}, alignment), alignment);
  return options;
}

/// Swaps, observes, plans and follows: layers forward and back, in both forms of operations.
template <Backend B>
void steady_loop(FaultWorld<B>& world, Form form, const Options& memory = four_tensors()) {
  constexpr std::size_t layers = 3;
  world.make_manager(memory);
  const std::size_t input = world.tensor("x", true);
  std::vector<std::size_t> weights;
  std::vector<std::size_t> hidden;
  for (std::size_t i = 0; i < layers; ++i) weights.push_back(world.tensor("w" + std::to_string(i)));
  for (std::size_t i = 0; i <= layers; ++i) hidden.push_back(world.tensor("h" + std::to_string(i), true));
  for (std::size_t i = 0; i < layers; ++i) world.upload(weights[i], static_cast<Number>(i));
  for (Number seed = 0; seed < 5; ++seed) {
    world.begin("train");
    world.upload(input, 100 + seed);
    world.apply_affine(form, input, hidden[0], seed);
    for (std::size_t i = 0; i < layers; ++i) world.apply_blend(form, hidden[i], weights[i], hidden[i + 1]);
    if (form == Form::with_event) world.download_later(hidden[layers]);
    for (std::size_t i = layers; i-- > 0;) world.apply_grow(form, hidden[i], weights[i]);
    if (form == Form::plain) world.download(hidden[layers]);
    world.end();
  }
  world.collect();
  world.download(weights[0]);
  world.synchronize();
}

/// Plans are left and followed again, values are read on the side, work runs between iterations.
template <Backend B>
void wandering(FaultWorld<B>& world) {
  world.make_manager({.device_budget = Bytes{3 * chain_tensor.value}, .pinned_budget = chain_tensor, .queue_depth = 8});
  std::vector<std::size_t> t;
  for (std::size_t i = 0; i < 5; ++i) t.push_back(world.tensor("t" + std::to_string(i)));
  for (std::size_t i = 0; i < 5; ++i) world.upload(t[i], static_cast<Number>(i));
  for (Number round = 0; round < 8; ++round) {
    world.begin("step");
    for (std::size_t i = 0; i < 4; ++i) {
      world.apply_grow(i % 2 == 0 ? Form::plain : Form::with_event, t[i], t[i + 1]);
      if (round == 5 && i == 1) world.apply_grow(Form::with_event, t[4], t[0]);  // not expected there
    }
    if (round % 3 == 1) world.download_later(t[2]);
    world.end();
    if (round == 6) world.apply_affine(Form::plain, t[1], t[3], round);
    if (round % 3 == 2) world.collect();
  }
  world.collect();
  world.synchronize();
}

}  // namespace swapmm::test
