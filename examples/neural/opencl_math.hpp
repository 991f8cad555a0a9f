// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a neural network computes, on OpenCL: matrix products by CLBlast, the rest by the kernels of kernels.h. The
// layers know nothing of it but this interface; another API's class with the same functions can take its place.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include <swapmm/opencl/backend.hpp>
#include <swapmm/opencl/program.hpp>

#include "neural/shapes.hpp"

namespace neural {

/// The text of kernels.h, for swapmm::opencl::Program.
extern const std::string_view kernels;

/// Every function but the constructor and gemm_work() queues its work and returns; all of them together make no buffer.
/// What is queued in the same order gives the same bits in every run.
class OpenclMath {
 public:
  using Backend = swapmm::opencl::Backend;
  using Queue = cl_command_queue;

  /// Where numbers begin on the device: in a memory, that many elements (of what the function takes) behind its begin.
  struct Place {
    Place() = default;
    template <class T>
    Place(const swapmm::opencl::View<T>& view) : buffer(view.buffer()) {}  // NOLINT(*-explicit-*): op[tensor]
    explicit Place(cl_mem memory) : buffer(memory) {}
    [[nodiscard]] Place at(std::size_t elements) const {
      Place place = *this;
      place.first += elements;
      return place;
    }

    cl_mem buffer = nullptr;
    std::size_t first = 0;
  };

  /// Compiles the kernels, and sets CLBlast's parameters where the device is a CPU.
  explicit OpenclMath(Backend backend);
  /// The device it was compiled for.
  [[nodiscard]] Backend& backend() { return backend_; }

  /// Bytes that this product needs as its work area, wherever its matrices begin. 0: none.
  [[nodiscard]] std::size_t gemm_work(const Gemm& g) const;
  /// c = a * b + beta * c. `area`: a memory of gemm_work() bytes or more, from its begin; unused where those are 0.
  void gemm(Queue queue, const Gemm& g, Place a, Place b, float beta, Place c, Place area);

  /// `to`: columns x rows.
  void transpose(Queue queue, std::size_t rows, std::size_t columns, Place from, Place to);
  void fill(Queue queue, std::size_t count, Place y, float value);
  /// y += bias, for each pixel; where `relu` says so, what is below 0 becomes 0.
  void bias_relu(Queue queue, std::size_t pixels, std::size_t channels, bool relu, Place y, Place bias);
  /// The gradient becomes 0 where y is.
  void relu_backward(Queue queue, std::size_t count, Place y, Place gradient);
  /// For each block of pixels the sum of each channel: ceil(pixels / block) rows of `channels`.
  void column_sums(Queue queue, std::size_t pixels, std::size_t channels, std::size_t block, Place gradient,
                   Place sums);
  /// total = the sum of `parts` rows of `count`; with `keep`, added to what is there.
  void add_parts(Queue queue, std::size_t count, std::size_t parts, Place rows, bool keep, Place total);
  /// For each pixel of x, of that shape, the 3 x 3 around it: a row of 9 * channels.
  void im2col(Queue queue, const Images& shape, Place x, Place columns);
  /// x, of that shape = for each number the sum of all places that im2col() copies it to.
  void col2im(Queue queue, const Images& shape, Place columns, Place x);
  /// y, of that shape, is half as wide and high as x: the largest of 2 x 2, and in `map` (bytes) which of them that
  /// was.
  void max_pool(Queue queue, const Images& shape, Place x, Place y, Place map);
  /// Also through the ReLU that made x: no gradient where y is 0.
  void max_pool_backward(Queue queue, const Images& shape, Place y, Place map, Place y_gradient, Place x_gradient);
  /// The loss of each image, 64-bit numbers in units of loss_unit, and the gradient of the logits times `scale`. Labels
  /// are bytes.
  void softmax_loss(Queue queue, std::size_t images, std::size_t classes, float scale, Place logits, Place labels,
                    Place gradient, Place losses);
  /// For each image 1 where the largest logit is the label's, else 0: 64-bit numbers.
  void right_answers(Queue queue, std::size_t images, std::size_t classes, Place logits, Place labels, Place right);
  /// total = the sum of all; with `keep`, added to what is there. 64-bit numbers.
  void add_counts(Queue queue, std::size_t count, Place counts, bool keep, Place total);
  /// velocity = momentum * velocity + gradient; value -= rate * velocity.
  void momentum_step(Queue queue, std::size_t count, float rate, float momentum, Place value, Place velocity,
                     Place gradient);
  /// One step of an LSTM on `rows` rows: `gates` (4 * hidden per row: input, forget, candidate, output) come as sums
  /// without the bias and become the gates; from the cells before to the cells and the output (hidden per row).
  void lstm(Queue queue, std::size_t rows, std::size_t hidden, Place gates, Place bias, Place before, Place cells,
            Place out);
  /// The way back: the gates become the gradients of their sums, the cells' gradient that of the cells before.
  void lstm_backward(Queue queue, std::size_t rows, std::size_t hidden, Place gates, Place before, Place cells,
                     Place out_gradient, Place cells_gradient);

 private:
  using Kernel = swapmm::opencl::Kernel;
  template <class Items, class... Arguments>
  void run(Queue queue, Kernel& kernel, const Items& items, const Arguments&... arguments);

  mutable Backend backend_;
  swapmm::opencl::Program program_;
  Kernel transpose_ = program_.kernel("neural_transpose");
  Kernel fill_ = program_.kernel("neural_fill");
  Kernel bias_relu_ = program_.kernel("neural_bias_relu");
  Kernel relu_backward_ = program_.kernel("neural_relu_backward");
  Kernel column_sums_ = program_.kernel("neural_column_sums");
  Kernel add_parts_ = program_.kernel("neural_add_parts");
  Kernel im2col_ = program_.kernel("neural_im2col");
  Kernel col2im_ = program_.kernel("neural_col2im");
  Kernel max_pool_ = program_.kernel("neural_max_pool");
  Kernel max_pool_backward_ = program_.kernel("neural_max_pool_backward");
  Kernel softmax_loss_ = program_.kernel("neural_softmax_loss");
  Kernel right_answers_ = program_.kernel("neural_right_answers");
  Kernel add_counts_ = program_.kernel("neural_add_counts");
  Kernel momentum_step_ = program_.kernel("neural_momentum_step");
  Kernel lstm_ = program_.kernel("neural_lstm");
  Kernel lstm_backward_ = program_.kernel("neural_lstm_backward");
};

}  // namespace neural
