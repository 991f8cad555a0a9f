// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program that repeats itself, as training does: layers forward, then back, each one changing its weights. Once on a
// manager of any backend for which there is a run_affine() and so on, and once as plain loops.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "support/numbers.hpp"

namespace swapmm::test {

inline constexpr std::size_t chain_length = 1024;  ///< numbers of a tensor
inline constexpr Bytes chain_tensor{chain_length * sizeof(Number)};
/// Of all tensors of a chain.
[[nodiscard]] constexpr Bytes chain_bytes(std::size_t layers) { return Bytes{(2 * layers + 2) * chain_tensor.value}; }

/// As plain loops on the host.
struct ChainModel {
  explicit ChainModel(std::size_t layers) : hidden(layers + 1, Numbers(chain_length)) {
    for (std::size_t i = 0; i < layers; ++i) weights.push_back(numbers(chain_length, static_cast<Number>(100 + i)));
  }
  void forward(Number seed) {
    affine(numbers(chain_length, seed), hidden[0], 1);
    for (std::size_t i = 0; i < weights.size(); ++i) blend(hidden[i], weights[i], hidden[i + 1]);
  }
  void backward() {
    for (std::size_t i = weights.size(); i-- > 0;) grow(hidden[i], weights[i]);
  }
  void iterate(Number seed) {
    forward(seed);
    backward();
  }
  [[nodiscard]] const Numbers& output() const { return hidden.back(); }

  std::vector<Numbers> weights;
  std::vector<Numbers> hidden;
};

template <Backend B>
struct Chain {
  Chain(MemoryManager<B>& manager_, std::size_t layers, Form form_ = Form::plain)
      : manager(manager_), form(form_), input(manager.template tensor<Number>({chain_length}, "x")) {
    for (std::size_t i = 0; i < layers; ++i) {
      weights.push_back(manager.template tensor<Number>({chain_length}, "w" + std::to_string(i)));
      weights.back().upload(numbers(chain_length, static_cast<Number>(100 + i)));
    }
    for (std::size_t i = 0; i <= layers; ++i) {
      // The last one is the result: tests read it where no observed iteration did.
      hidden.push_back(
          manager.template tensor<Number>({chain_length}, "h" + std::to_string(i), i < layers ? persistent : kept));
    }
  }

  void forward(Number seed) {
    input.upload(numbers(chain_length, seed));
    run_affine(manager, form, "input", input, hidden[0], 1);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      run_blend(manager, form, "forward" + std::to_string(i), hidden[i], weights[i], hidden[i + 1]);
    }
  }
  void backward() {
    for (std::size_t i = weights.size(); i-- > 0;) {
      run_grow(manager, form, "backward" + std::to_string(i), hidden[i], weights[i]);
    }
  }
  void iterate(Number seed, std::string_view name = "train") {
    const auto iteration = manager.iteration(name);
    forward(seed);
    backward();
  }
  [[nodiscard]] const Tensor<Number, B>& output() const { return hidden.back(); }

  MemoryManager<B>& manager;
  Form form;
  Tensor<Number, B> input;
  std::vector<Tensor<Number, B>> weights;
  std::vector<Tensor<Number, B>> hidden;
};

/// All weights are what the model's are, bit for bit.
template <Backend B>
bool same_weights(const Chain<B>& chain, const ChainModel& model) {
  bool same = chain.weights.size() == model.weights.size();
  for (std::size_t i = 0; same && i < chain.weights.size(); ++i) same = chain.weights[i].download() == model.weights[i];
  return same;
}

}  // namespace swapmm::test
