// SPDX-License-Identifier: Apache-2.0
#pragma once

// The networks' layers as loops over memory, forward and backward. Matrices are row-major. Each result is summed in one
// fixed order, so the same inputs give the same bits wherever the loops run. What is called by_a is the gradient of the
// loss by a.

#include <cstddef>
#include <span>
#include <vector>

namespace interpreter {

using Floats = std::span<float>;
using ConstFloats = std::span<const float>;

void clear(Floats values);

/// A layer that combines all inputs of a row. Its weights have a row for each input, and one for the bias.
struct Dense {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  bool is_rectified = false;  ///< what is negative becomes 0
  [[nodiscard]] std::size_t weights() const { return (inputs + 1) * outputs; }
};
void dense(const Dense& layer, std::size_t rows, ConstFloats x, ConstFloats weights, Floats y);
void dense_backward_x(const Dense& layer, std::size_t rows, ConstFloats y, ConstFloats by_y, ConstFloats weights,
                      Floats by_x);
/// Adds to `by_weights`.
void dense_backward_weights(const Dense& layer, std::size_t rows, ConstFloats x, ConstFloats y, ConstFloats by_y,
                            Floats by_weights);

/// Outputs that are several choices: the first of `choices` is one of that many values, and so on.
using Choices = std::vector<std::size_t>;
[[nodiscard]] std::size_t outputs_of(const Choices& choices);
/// For each choice in a row, the value with the largest output.
[[nodiscard]] std::vector<std::size_t> chosen(const Choices& choices, ConstFloats outputs);
/// The gradient of the cross entropy by the outputs. `right` has the right value of each choice in each row, or a
/// negative number if it does not matter. `totals`: the cross entropy, the choices, and those that are right, are
/// added.
void judge(const Choices& choices, std::size_t rows, ConstFloats outputs, ConstFloats right, Floats by_outputs,
           Floats totals);

/// The sizes of an LSTM whose input is an encoded observation and the embedding of a program.
struct Lstm {
  std::size_t encoded = 0;
  std::size_t embedded = 0;
  std::size_t width = 0;  ///< of its hidden state, its cells and each of its gates
  /// The rows of its weights: encoded observation, embedding, hidden state, bias.
  [[nodiscard]] std::size_t inputs() const { return encoded + embedded + width + 1; }
  [[nodiscard]] std::size_t gates() const { return 4 * width; }
  [[nodiscard]] std::size_t weights() const { return inputs() * gates(); }
};
/// One step, from the state before to the one after, which may be in the same place. Gates: input, forget, output,
/// candidate.
void lstm_step(const Lstm& sizes, ConstFloats encoded, ConstFloats embedding, ConstFloats weights, ConstFloats hidden,
               ConstFloats cells, Floats gates, Floats hidden_after, Floats cells_after);
/// All steps of a call. Row 0 of `hidden` and `cells` becomes 0, and row i + 1 is the state after step i.
void lstm(const Lstm& sizes, std::size_t steps, ConstFloats encoded, ConstFloats embedding, ConstFloats weights,
          Floats gates, Floats hidden, Floats cells);
/// Adds to `by_weights` and `by_embedding`.
void lstm_backward(const Lstm& sizes, std::size_t steps, ConstFloats encoded, ConstFloats embedding,
                   ConstFloats weights, ConstFloats gates, ConstFloats hidden, ConstFloats cells, ConstFloats by_hidden,
                   Floats by_encoded, Floats by_weights, Floats by_embedding);

/// One step of Adam (Kingma and Ba, 2015). `step` counts from 1.
void adam(float rate, std::size_t step, ConstFloats gradient, Floats mean, Floats square, Floats weights);

}  // namespace interpreter
