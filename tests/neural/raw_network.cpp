// SPDX-License-Identifier: Apache-2.0
#include "neural/raw_network.hpp"

#include <utility>

namespace swapmm::test {

RawNetwork::RawNetwork(Math& math, const fashion::Settings& settings)
    : math_(math), settings_(settings), layers_(fashion::architecture(settings)) {
  const auto first = fashion::first_weights(layers_, settings.seed);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string& name = layers_[i].name;
    const std::size_t out = layers_[i].shape.out;
    memory(name + ".weights", first[i].size() * sizeof(float)).write(std::as_bytes(std::span(first[i])));
    math_.fill(q_, first[i].size(), floats(name + ".weights.momentum", first[i].size()), 0);
    math_.fill(q_, out, floats(name + ".bias", out), 0);
    math_.fill(q_, out, floats(name + ".bias.momentum", out), 0);
  }
}

DeviceBytes& RawNetwork::memory(const std::string& name, std::size_t bytes) {
  // Work areas differ from operation to operation.
  const std::string key = name == "work area" ? name + std::to_string(bytes) : name;
  const auto found = memories_.find(key);
  return found != memories_.end() ? found->second : memories_.emplace(key, DeviceBytes(bytes)).first->second;
}

std::size_t RawNetwork::input_size(std::size_t layer) const {
  const auto& s = layers_[layer].shape;
  return s.pixels() * s.in;
}

std::string RawNetwork::input_name(std::size_t layer, std::size_t part) const {
  const std::string suffix = "." + std::to_string(part);
  if (layer == 0) return "images" + suffix;
  const fashion::Layer& before = layers_[layer - 1];
  return before.name + (before.pool ? ".pooled" : ".out") + suffix;
}

Math::Place RawNetwork::input(std::size_t layer, std::size_t part) {
  const std::size_t count = layer < layers_.size() ? input_size(layer) : layers_[layer - 1].outputs();
  return floats(input_name(layer, part), count);
}

Math::Place RawNetwork::input_gradient(std::size_t layer, std::size_t part) {
  const fashion::Layer& before = layers_[layer - 1];
  const std::size_t count = layer < layers_.size() ? input_size(layer) : before.outputs();
  return floats(before.name + ".gradient behind." + std::to_string(part), count);
}

void RawNetwork::forward(std::size_t i, std::size_t part) {
  const fashion::Layer& layer = layers_[i];
  const Place out = floats(layer.name + ".out." + std::to_string(part), layer.outputs());
  const neural::WorkArea work = neural::forward_work(math_, layer.shape);
  neural::convolve(math_, q_, layer.shape, layer.relu, input(i, part), floats(layer.name + ".weights", 0),
                   floats(layer.name + ".bias", 0), out, work, area(work));
  if (!layer.pool) return;
  const std::size_t pooled = layer.pooled().size();
  math_.max_pool(q_, layer.pooled(), out, input(i + 1, part),
                 buffer(layer.name + ".map." + std::to_string(part), pooled));
}

void RawNetwork::backward(std::size_t i, std::size_t part) {
  const fashion::Layer& layer = layers_[i];
  Place gradient = input_gradient(i + 1, part);
  if (layer.pool) {
    const Place behind = gradient;
    gradient = floats(layer.name + ".gradient." + std::to_string(part), layer.outputs());
    math_.max_pool_backward(q_, layer.pooled(), input(i + 1, part),
                            buffer(layer.name + ".map." + std::to_string(part), 0), behind, gradient);
  }
  const neural::WorkArea work = neural::weights_work(math_, layer.shape);
  neural::convolve_weights_backward(math_, q_, layer.shape, part > 0, input(i, part), gradient,
                                    floats(layer.name + ".weights.gradient", layer.weights()),
                                    floats(layer.name + ".bias.gradient", layer.shape.out), work, area(work));
  if (i == 0) return;
  const neural::WorkArea other = neural::input_work(math_, layer.shape);
  neural::convolve_input_backward(math_, q_, layer.shape, gradient, floats(layer.name + ".weights", 0),
                                  input_gradient(i, part), other, area(other));
  if (!layers_[i - 1].pool) math_.relu_backward(q_, input_size(i), input(i, part), input_gradient(i, part));
}

void RawNetwork::learn(const std::string& name, std::size_t count, float rate) {
  math_.momentum_step(q_, count, rate, settings_.momentum, floats(name, 0), floats(name + ".momentum", 0),
                      floats(name + ".gradient", 0));
}

void RawNetwork::train(std::span<const float> images, std::span<const std::uint8_t> labels, float rate) {
  const std::size_t n = settings_.images_per_part();
  for (std::size_t part = 0; part < settings_.parts; ++part) {
    const DeviceBytes& label = memory("labels." + std::to_string(part), n);
    memory(input_name(0, part), n * 784 * sizeof(float)).write(std::as_bytes(images.subspan(part * n * 784, n * 784)));
    label.write(std::as_bytes(labels.subspan(part * n, n)));
    for (std::size_t i = 0; i < layers_.size(); ++i) forward(i, part);
    math_.softmax_loss(q_, n, fashion::classes, 1 / static_cast<float>(settings_.batch), input(layers_.size(), part),
                       label.place(), input_gradient(layers_.size(), part), buffer("losses", n * sizeof(std::int64_t)));
  }
  for (std::size_t i = layers_.size(); i-- > 0;) {
    for (std::size_t part = 0; part < settings_.parts; ++part) backward(i, part);
    learn(layers_[i].name + ".weights", layers_[i].weights(), rate);
    learn(layers_[i].name + ".bias", layers_[i].shape.out, rate);
  }
}

std::vector<float> RawNetwork::weights() {
  std::vector<float> all;
  for (const fashion::Layer& layer : layers_) {
    for (const auto& [name, count] :
         {std::pair(layer.name + ".weights", layer.weights()), std::pair(layer.name + ".bias", layer.shape.out)}) {
      std::vector<float> values(count);
      memory(name, 0).read(std::as_writable_bytes(std::span(values)));
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

}  // namespace swapmm::test
