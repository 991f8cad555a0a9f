// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::bench {

/// What engines share; see engine_instances.cpp for the generators.
enum class Sharing : std::uint8_t {
  pipeline,   ///< layers of a network on GPUs one after another: activations and gradients go from one to the next
  streams,    ///< two streams of one GPU, each with a program of its own
  optimizer,  ///< a CPU updates the weights in the host, the GPU computes their gradients
  weights,    ///< two GPUs read the same weights
};
[[nodiscard]] std::string_view to_string(Sharing sharing);

/// An instance whose engines share memories or tensors.
struct EngineInstance {
  Sharing sharing = Sharing::pipeline;
  std::uint32_t layers = 0;
  std::uint32_t gpus = 1;
  std::uint32_t parts = 1;    ///< of a batch, in a pipeline
  bool linked = false;        ///< GPUs are linked to each other, at four times the rate of the links to the host
  double oversubscribed = 2;  ///< k: peak of live bytes in the fullest memory / room there
  /// Seconds in which a link to the host would copy all tensors once / seconds of computation of an engine.
  double pressure = 1;
};

/// The fixed list: 24 instances.
[[nodiscard]] const std::vector<EngineInstance>& engine_instances();

[[nodiscard]] std::string name_of(const EngineInstance& instance);
struct EngineProgram {
  Trace trace;
  v2::Machine machine;
};
[[nodiscard]] EngineProgram program_of(const EngineInstance& instance);

}  // namespace swapmm::bench
