// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "layers.hpp"
#include "memory.hpp"
#include "simulated_networks/random.hpp"

namespace interpreter {

/// The learning rate of a step, counted from 0: it falls to 0, so that the last steps do not undo what was right.
[[nodiscard]] inline float rate_of(std::size_t step, std::size_t steps) {
  return 0.01F * static_cast<float>(steps - step) / static_cast<float>(steps);
}

/// Weights with what Adam keeps for them.
template <class Memory>
struct Parameter {
  using Array = typename Memory::Array;

  /// Random weights, the smaller the more inputs there are (Glorot and Bengio, 2010).
  Parameter(Memory& memory, const std::string& name, std::size_t size, std::size_t inputs, std::mt19937_64& random)
      : count(size),
        weights(memory.array(count, name, Needed::always)),
        gradient(memory.array(count, name + ".gradient", Needed::within_iteration)),
        mean(memory.array(count, name + ".mean", Needed::always)),
        square(memory.array(count, name + ".square", Needed::always)) {
    memory.upload(weights, networks::random_weights(count, 1.0F / std::sqrt(static_cast<float>(inputs)), random));
    memory.upload(mean, std::vector<float>(count, 0.0F));
    memory.upload(square, std::vector<float>(count, 0.0F));
  }

  /// Before the operations that add to the gradient.
  void clear_gradient(Memory& memory) const {
    memory.run("clear", 0, from(), to(gradient), in_place(), [](Floats values) { clear(values); });
  }
  /// One step of Adam. `step` counts from 1.
  void learn(Memory& memory, float rate, std::size_t step) const {
    memory.run("adam", 4 * count, from(gradient), to(), in_place(mean, square, weights),
               [rate, step](ConstFloats by_weights, Floats means, Floats squares, Floats values) {
                 adam(rate, step, by_weights, means, squares, values);
               });
  }

  std::size_t count = 0;
  Array weights;
  Array gradient;
  Array mean;
  Array square;
};

}  // namespace interpreter
