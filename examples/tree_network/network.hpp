// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "parameters.hpp"

namespace trees {

using Device = swapmm::simulated::Backend;
using Manager = swapmm::MemoryManager<Device>;
template <class T>
using TensorOf = swapmm::Tensor<T, Device>;

/// The network on a device whose memory is limited.
///
/// Trees differ in size, but a plan is for one sequence of operations on tensors of fixed sizes. So trees share the
/// tensors of their *bucket*: those for up to 8, 16, 32, ... nodes. A tree uses a part of them, and the number of its
/// nodes is an argument of the kernels. Each bucket is an iteration name of its own, with a plan of its own, and the
/// weights and their velocities, which all buckets use, are in every plan.
class Network {
 public:
  Network(Manager& manager, std::uint64_t seed);
  /// One step of training. Queues it: the host does not wait for the device.
  void train(const Tree& tree);
  /// Waits for the device.
  [[nodiscard]] std::vector<std::vector<float>> weights() const;
  /// See add_up(). Waits for the device.
  [[nodiscard]] std::vector<float> totals() const { return totals_.download(); }
  [[nodiscard]] std::size_t buckets() const { return buckets_.size(); }

 private:
  struct Parameter {
    TensorOf<float> weights;
    TensorOf<float> velocity;
    TensorOf<float> gradient;
  };
  struct Bucket {
    std::size_t capacity = 0;
    std::string name;
    TensorOf<Node> nodes;
    std::vector<TensorOf<float>> features;       // of each layer
    std::array<TensorOf<float>, 2> by_features;  // gradients, in turn
  };

  Bucket make_bucket(std::size_t capacity);
  Bucket& bucket_for(std::size_t nodes);
  void run_forward(const Bucket& bucket, std::size_t nodes);
  void run_judge(float target);
  void run_backward(const Bucket& bucket, std::size_t nodes);
  void run_learn();

  Manager& manager_;
  std::vector<Parameter> parameters_;
  std::vector<Bucket> buckets_;
  TensorOf<float> pooled_;
  TensorOf<std::int32_t> where_;
  TensorOf<float> by_pooled_;
  TensorOf<float> error_;
  TensorOf<float> totals_;
};

/// The bytes that the largest operation on a tree of so many nodes needs: no smaller budget is possible.
[[nodiscard]] std::uint64_t largest_bundle(std::size_t nodes);

}  // namespace trees
