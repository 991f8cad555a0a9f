// SPDX-License-Identifier: Apache-2.0
#include "training_trace.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string>

namespace swapmm::bench {
namespace {

struct Layer {
  TensorId activation{}, saved{}, weight{}, moment{}, weight_gradient{}, gradient{};
  double bytes = 0;  ///< of what goes forward
};

class Builder {
 public:
  Builder(std::size_t layers, std::uint64_t seed) : layers_(layers), random_(seed) {}

  Trace build() {
    trace_.name = "training-" + std::to_string(3 * layers_.size());
    input_ = add_tensor("input", megabytes(16), TensorKind::input);
    for (std::size_t i = 0; i < layers_.size(); ++i) add_layer(i);
    for (std::size_t i = 0; i < layers_.size(); ++i) forward(i);
    for (std::size_t i = layers_.size(); i-- > 0;) backward(i);
    for (std::size_t i = 0; i < layers_.size(); ++i) optimize(i);
    return std::move(trace_);
  }

 private:
  static double megabytes(double count) { return count * 1e6; }
  double even() { return static_cast<double>(random_() >> 11U) * 0x1.0p-53; }
  /// Between 1 / spread and spread.
  double around_one(double spread) { return std::exp((2 * even() - 1) * std::log(spread)); }

  TensorId add_tensor(const std::string& name, double bytes, TensorKind kind) {
    trace_.tensors.push_back({name, Bytes{static_cast<std::uint64_t>(bytes)}, kind, 0});
    return static_cast<TensorId>(trace_.tensors.size() - 1);
  }

  void add_layer(std::size_t i) {
    Layer& layer = layers_[i];
    const std::string name = std::to_string(i);
    layer.bytes = megabytes(16) * around_one(4);
    const double weight = megabytes(4) * around_one(4);
    layer.activation = add_tensor("activation" + name, layer.bytes, TensorKind::transient);
    layer.saved = add_tensor("saved" + name, layer.bytes * around_one(2) / 2, TensorKind::transient);
    layer.gradient = add_tensor("gradient" + name, layer.bytes, TensorKind::transient);
    layer.weight = add_tensor("weight" + name, weight, TensorKind::persistent);
    layer.weight_gradient = add_tensor("weight_gradient" + name, weight, TensorKind::transient);
    layer.moment = add_tensor("moment" + name, weight, TensorKind::persistent);
  }

  /// Nanoseconds in which 15.754 GB/s copy so many bytes, times something around `factor`.
  std::chrono::nanoseconds time_for(double bytes, double factor) {
    return std::chrono::nanoseconds{std::llround(bytes / 15.754 * factor * around_one(3))};
  }

  void forward(std::size_t i) {
    const Layer& layer = layers_[i];
    const TensorId before = i == 0 ? input_ : layers_[i - 1].activation;
    trace_.operations.push_back({"forward" + std::to_string(i),
                                 time_for(layer.bytes, 0.6),
                                 {before, layer.weight},
                                 {layer.activation, layer.saved},
                                 {}});
  }

  void backward(std::size_t i) {
    const Layer& layer = layers_[i];
    TraceOperation operation{"backward" + std::to_string(i),
                             time_for(layer.bytes, 1.2),
                             {layer.activation, layer.saved, layer.weight},
                             {layer.weight_gradient},
                             {}};
    if (i + 1 < layers_.size()) {
      operation.reads.push_back(layer.gradient);  // of what this layer gave, from the next one
    }
    if (i > 0) operation.writes.push_back(layers_[i - 1].gradient);
    trace_.operations.push_back(std::move(operation));
  }

  void optimize(std::size_t i) {
    const Layer& layer = layers_[i];
    trace_.operations.push_back({"optimize" + std::to_string(i),
                                 time_for(layer.bytes, 0.1),
                                 {layer.weight_gradient},
                                 {},
                                 {layer.weight, layer.moment}});
  }

  Trace trace_;
  std::vector<Layer> layers_;
  TensorId input_{};
  std::mt19937_64 random_;
};

}  // namespace

Trace training_trace(std::size_t operations, std::uint64_t seed) {
  return Builder(std::max<std::size_t>(operations / 3, 2), seed).build();
}

}  // namespace swapmm::bench
