// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a neural network computes, on CUDA: matrix products by cuBLAS, convolutions by cuDNN where it is installed, the
// rest by the kernels of kernels.h. The same functions as OpenclMath has, so that layers know no difference.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <swapmm/cuda/backend.hpp>

#include "neural/shapes.hpp"

namespace neural {

class Cublas;
class CudnnConvolutions;

/// Who computes convolutions of 3 x 3.
enum class Convolutions : std::uint8_t {
  automatic,  ///< cuDNN where it is installed and takes their shape, else matrix products
  gemm,       ///< matrix products, as in OpenclMath
  cudnn       ///< cuDNN where it takes their shape; it must be there
};

/// Every function but the constructor, gemm_work() and convolution_work() queues its work and returns; all of them
/// together take no memory of the device, but for what the libraries keep for themselves. What is queued in the same
/// order gives the same bits in every run. In every call the backend's device is the thread's current one, as it is in
/// the operations of a manager.
class CudaMath {
 public:
  using Backend = swapmm::cuda::Backend;
  using Queue = cudaStream_t;

  /// Where numbers begin on the device: in a memory, that many elements (of what the function takes) behind its begin.
  struct Place {
    Place() = default;
    template <class T>
    Place(const swapmm::cuda::View<T>& view)  // NOLINT(*-explicit-*): op[tensor]
        : data(reinterpret_cast<std::byte*>(view.data())) {}
    explicit Place(void* memory) : data(static_cast<std::byte*>(memory)) {}
    [[nodiscard]] Place at(std::size_t elements) const {
      Place place = *this;
      place.first += elements;
      return place;
    }

    std::byte* data = nullptr;
    std::size_t first = 0;
  };

  /// The columns of a chunk of images, see steps.hpp, are to stay in the device's cache; and they are part of a bundle.
  static constexpr std::size_t columns_in_cache = std::size_t{8} << 20U;

  /// Loads the libraries, and makes the backend's device the thread's current one. Throws std::runtime_error where
  /// cuBLAS, or cuDNN that was asked for, is not installed.
  explicit CudaMath(Backend backend, Convolutions convolutions = Convolutions::automatic);
  ~CudaMath();
  CudaMath(const CudaMath&) = delete;
  CudaMath& operator=(const CudaMath&) = delete;
  /// The device it was made for.
  [[nodiscard]] Backend& backend() { return backend_; }
  /// One line: the libraries in use, and why cuDNN is not.
  [[nodiscard]] std::string libraries() const;

  /// Bytes that this product needs as its work area, wherever its matrices begin.
  [[nodiscard]] std::size_t gemm_work(const Gemm& g) const;
  /// c = a * b + beta * c. `area`: a memory of gemm_work() bytes or more, from its begin.
  void gemm(Queue queue, const Gemm& g, Place a, Place b, float beta, Place c, Place area);

  /// @{
  /// What steps.hpp says of a library's own convolutions.
  [[nodiscard]] std::optional<std::size_t> convolution_work(ConvolutionPass pass, const Convolution& c);
  void convolution(Queue queue, const Convolution& c, Place x, Place weights, Place y, Place area);
  void convolution_weights(Queue queue, const Convolution& c, Place x, Place y_gradient, Place weights_gradient,
                           Place area);
  void convolution_input(Queue queue, const Convolution& c, Place y_gradient, Place weights, Place x_gradient,
                         Place area);
  /// @}

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
  Backend backend_;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<CudnnConvolutions> cudnn_;  // none: matrix products
  std::string why_no_cudnn_;
};

}  // namespace neural
