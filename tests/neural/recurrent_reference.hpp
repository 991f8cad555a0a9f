// SPDX-License-Identifier: Apache-2.0
#pragma once

// The recurrent network of examples/sequence as plain loops in double.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace swapmm::test {

/// (f(x + step) - f(x - step)) / (2 * step), for f() that reads x.
template <class Function>
double slope(Function&& f, double& x) {
  constexpr double step = 1e-5;
  const double here = x;
  x = here + step;
  const double above = f();
  x = here - step;
  const double below = f();
  x = here;
  return (above - below) / (2 * step);
}

/// One sequence's way through one step of an LSTM.
struct LstmState {
  std::vector<double> cells;
  std::vector<double> out;
};
/// From the gates' sums, bias included: input, forget, candidate, output.
[[nodiscard]] LstmState lstm(std::span<const double> sums, std::span<const double> cells_before);

/// Its parameters are those of sequence::Recurrent::weights(), in the same order.
class RecurrentReference {
 public:
  explicit RecurrentReference(std::size_t hidden) : hidden_(hidden) {}

  /// Of one image, a number per class.
  [[nodiscard]] std::vector<double> logits(std::span<const double> parameters, std::span<const float> image) const;
  /// Softmax cross-entropy, mean of all images.
  [[nodiscard]] double loss(std::span<const double> parameters, std::span<const float> images,
                            std::span<const std::uint8_t> labels) const;
  /// Where each of the parameters' tensors begins, and the end of the last.
  [[nodiscard]] std::vector<std::size_t> begins() const;

 private:
  std::size_t hidden_;
};

}  // namespace swapmm::test
