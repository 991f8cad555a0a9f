// SPDX-License-Identifier: Apache-2.0
#pragma once

// The same training without swapmm: a buffer of its own for each tensor, one queue, and the same steps in the same
// order. What swapmm computes must be equal bit for bit.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <swapmm/opencl/handle.hpp>

#include "fashion_mnist/architecture.hpp"
#include "neural/opencl_math.hpp"
#include "neural/steps.hpp"

namespace swapmm::test {

class RawNetwork {
 public:
  RawNetwork(neural::OpenclMath& math, cl_context context, cl_device_id device, const fashion::Settings& settings);
  ~RawNetwork();
  RawNetwork(const RawNetwork&) = delete;
  RawNetwork& operator=(const RawNetwork&) = delete;

  void train(std::span<const float> images, std::span<const std::uint8_t> labels, float rate);
  /// As Network::weights().
  [[nodiscard]] std::vector<float> weights();

 private:
  using Place = neural::OpenclMath::Place;

  // The buffer of that name, made at its first use.
  Place buffer(const std::string& name, std::size_t bytes);
  Place floats(const std::string& name, std::size_t count) { return buffer(name, count * sizeof(float)); }
  Place area(const neural::WorkArea& work) { return work.bytes() == 0 ? Place() : buffer("work area", work.bytes()); }
  void upload(const Place& to, const void* from, std::size_t bytes);

  void forward(std::size_t i, std::size_t part);
  void backward(std::size_t i, std::size_t part);
  void learn(const std::string& name, std::size_t count, float rate);
  // What the layer reads of that part; for the one behind the last, the logits.
  Place input(std::size_t layer, std::size_t part);
  Place input_gradient(std::size_t layer, std::size_t part);
  std::size_t input_size(std::size_t layer) const;

  neural::OpenclMath& math_;
  cl_context context_;
  fashion::Settings settings_;
  std::vector<fashion::Layer> layers_;
  opencl::Handle<cl_command_queue> queue_;
  cl_command_queue q_ = nullptr;
  std::unordered_map<std::string, opencl::Handle<cl_mem>> buffers_;
};

}  // namespace swapmm::test
