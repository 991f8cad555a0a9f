// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simulated_networks/products.hpp"

namespace interpreter {
namespace {

using networks::add_outer_product;
using networks::add_product;
using networks::add_transposed_product;

template <class T>
std::span<T> row(std::span<T> matrix, std::size_t number, std::size_t width) {
  return matrix.subspan(number * width, width);
}

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

/// The gradient by what a layer's rectifier gets.
std::vector<float> before_rectifier(const Dense& layer, ConstFloats y, ConstFloats by_y) {
  std::vector<float> by_sum(by_y.begin(), by_y.end());
  for (std::size_t j = 0; layer.is_rectified && j < by_sum.size(); ++j) {
    if (y[j] <= 0) by_sum[j] = 0;
  }
  return by_sum;
}

std::size_t largest(ConstFloats values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

/// The gradient of one choice's cross entropy: probabilities, less 1 for the right value. Returns the cross entropy.
float softmax_error(ConstFloats outputs, std::size_t right, Floats by_outputs) {
  const float most = outputs[largest(outputs)];
  float sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) sum += by_outputs[i] = std::exp(outputs[i] - most);
  for (float& value : by_outputs) value /= sum;
  const float error = -std::log(std::max(by_outputs[right], 1e-20F));
  by_outputs[right] -= 1;
  return error;
}

/// The blocks of an LSTM's weights, or of their gradient.
template <class T>
struct LstmBlocks {
  std::span<T> encoded, embedding, hidden, bias;
  LstmBlocks(const Lstm& sizes, std::span<T> weights)
      : encoded(weights.first(sizes.encoded * sizes.gates())),
        embedding(weights.subspan(encoded.size(), sizes.embedded * sizes.gates())),
        hidden(weights.subspan(encoded.size() + embedding.size(), sizes.width * sizes.gates())),
        bias(weights.last(sizes.gates())) {}
};

}  // namespace

void clear(Floats values) { std::ranges::fill(values, 0.0F); }

void dense(const Dense& layer, std::size_t rows, ConstFloats x, ConstFloats weights, Floats y) {
  for (std::size_t i = 0; i < rows; ++i) {
    const auto out = row(y, i, layer.outputs);
    std::ranges::copy(weights.last(layer.outputs), out.begin());  // the bias
    add_product(row(x, i, layer.inputs), weights, out);
    for (std::size_t j = 0; layer.is_rectified && j < out.size(); ++j) out[j] = std::max(out[j], 0.0F);
  }
}

void dense_backward_x(const Dense& layer, std::size_t rows, ConstFloats y, ConstFloats by_y, ConstFloats weights,
                      Floats by_x) {
  clear(by_x);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto by_sum = before_rectifier(layer, row(y, i, layer.outputs), row(by_y, i, layer.outputs));
    add_transposed_product(by_sum, weights, row(by_x, i, layer.inputs));
  }
}

void dense_backward_weights(const Dense& layer, std::size_t rows, ConstFloats x, ConstFloats y, ConstFloats by_y,
                            Floats by_weights) {
  const auto by_bias = by_weights.last(layer.outputs);
  for (std::size_t i = 0; i < rows; ++i) {
    const auto by_sum = before_rectifier(layer, row(y, i, layer.outputs), row(by_y, i, layer.outputs));
    add_outer_product(row(x, i, layer.inputs), by_sum, by_weights);
    for (std::size_t j = 0; j < by_sum.size(); ++j) by_bias[j] += by_sum[j];
  }
}

std::size_t outputs_of(const Choices& choices) { return std::reduce(choices.begin(), choices.end()); }

std::vector<std::size_t> chosen(const Choices& choices, ConstFloats outputs) {
  std::vector<std::size_t> values;
  std::size_t first = 0;
  for (const std::size_t count : choices) {
    values.push_back(largest(outputs.subspan(first, count)));
    first += count;
  }
  return values;
}

void judge(const Choices& choices, std::size_t rows, ConstFloats outputs, ConstFloats right, Floats by_outputs,
           Floats totals) {
  clear(by_outputs);
  std::size_t first = 0;
  for (std::size_t i = 0; i < rows * choices.size(); ++i) {
    const std::size_t count = choices[i % choices.size()];
    if (right[i] >= 0) {
      const auto value = static_cast<std::size_t>(right[i]);
      totals[0] += softmax_error(outputs.subspan(first, count), value, by_outputs.subspan(first, count));
      totals[1] += 1;
      totals[2] += largest(outputs.subspan(first, count)) == value ? 1.0F : 0.0F;
    }
    first += count;
  }
}

void lstm_step(const Lstm& sizes, ConstFloats encoded, ConstFloats embedding, ConstFloats weights, ConstFloats hidden,
               ConstFloats cells, Floats gates, Floats hidden_after, Floats cells_after) {
  const std::size_t width = sizes.width;
  const LstmBlocks<const float> block(sizes, weights);
  std::ranges::copy(block.bias, gates.begin());
  add_product(encoded, block.encoded, gates);
  add_product(embedding, block.embedding, gates);
  add_product(hidden, block.hidden, gates);
  for (std::size_t j = 0; j < width; ++j) {
    for (std::size_t gate = 0; gate < 3; ++gate) gates[gate * width + j] = sigmoid(gates[gate * width + j]);
    gates[3 * width + j] = std::tanh(gates[3 * width + j]);
    cells_after[j] = gates[width + j] * cells[j] + gates[j] * gates[3 * width + j];
    hidden_after[j] = gates[2 * width + j] * std::tanh(cells_after[j]);
  }
}

void lstm(const Lstm& sizes, std::size_t steps, ConstFloats encoded, ConstFloats embedding, ConstFloats weights,
          Floats gates, Floats hidden, Floats cells) {
  const std::size_t width = sizes.width;
  clear(hidden);
  clear(cells);
  for (std::size_t i = 0; i < steps; ++i) {
    lstm_step(sizes, row(encoded, i, sizes.encoded), embedding, weights, row(hidden, i, width), row(cells, i, width),
              row(gates, i, sizes.gates()), row(hidden, i + 1, width), row(cells, i + 1, width));
  }
}

void lstm_backward(const Lstm& sizes, std::size_t steps, ConstFloats encoded, ConstFloats embedding,
                   ConstFloats weights, ConstFloats gates, ConstFloats hidden, ConstFloats cells, ConstFloats by_hidden,
                   Floats by_encoded, Floats by_weights, Floats by_embedding) {
  const std::size_t width = sizes.width;
  const LstmBlocks<const float> block(sizes, weights);
  const LstmBlocks<float> by_block(sizes, by_weights);
  clear(by_encoded);
  std::vector<float> by_state(width);  // by the hidden state, from the step after
  std::vector<float> by_cells(width);
  std::vector<float> by_sums(sizes.gates());  // before the gates' sigmoid and tanh
  for (std::size_t i = steps; i-- > 0;) {
    const auto gate = row(gates, i, sizes.gates());
    for (std::size_t j = 0; j < width; ++j) {
      const float in = gate[j];
      const float forget = gate[width + j];
      const float out = gate[2 * width + j];
      const float candidate = gate[3 * width + j];
      const float cell = std::tanh(cells[(i + 1) * width + j]);
      const float by_out = by_state[j] + by_hidden[i * width + j];
      by_cells[j] += by_out * out * (1 - cell * cell);
      by_sums[j] = by_cells[j] * candidate * in * (1 - in);
      by_sums[width + j] = by_cells[j] * cells[i * width + j] * forget * (1 - forget);
      by_sums[2 * width + j] = by_out * cell * out * (1 - out);
      by_sums[3 * width + j] = by_cells[j] * in * (1 - candidate * candidate);
      by_cells[j] *= forget;
    }
    add_outer_product(row(encoded, i, sizes.encoded), by_sums, by_block.encoded);
    add_outer_product(embedding, by_sums, by_block.embedding);
    add_outer_product(row(hidden, i, width), by_sums, by_block.hidden);
    for (std::size_t j = 0; j < by_sums.size(); ++j) by_block.bias[j] += by_sums[j];
    add_transposed_product(by_sums, block.encoded, row(by_encoded, i, sizes.encoded));
    add_transposed_product(by_sums, block.embedding, by_embedding);
    clear(by_state);
    add_transposed_product(by_sums, block.hidden, by_state);
  }
}

void adam(float rate, std::size_t step, ConstFloats gradient, Floats mean, Floats square, Floats weights) {
  constexpr float keep_mean = 0.9F;
  constexpr float keep_square = 0.999F;
  const auto part = [&](float keep) { return 1 - static_cast<float>(std::pow(keep, static_cast<double>(step))); };
  const float mean_part = part(keep_mean);
  const float square_part = part(keep_square);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    mean[i] = keep_mean * mean[i] + (1 - keep_mean) * gradient[i];
    square[i] = keep_square * square[i] + (1 - keep_square) * gradient[i] * gradient[i];
    weights[i] -= rate * (mean[i] / mean_part) / (std::sqrt(square[i] / square_part) + 1e-8F);
  }
}

}  // namespace interpreter
