// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a stack of transformer blocks computes, on CUDA: 16-bit numbers (bfloat16), products by cuBLAS with sums of 32
// bits, the rest by the kernels of cuda_kernels.cu.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <swapmm/cuda/backend.hpp>

#include "transformer/bfloat16.h"
#include "transformer/shapes.hpp"

namespace transformer {

/// Throws std::invalid_argument for sizes that the kernels do not take: width and sequence are multiples of 8.
void check_for_cuda(const Settings& settings);

/// The functions of tests/transformer/host_math.hpp, which says what each computes. All of them queue their work and
/// return; what is queued in the same order gives the same bits in every run. In every call the backend's device is the
/// thread's current one, as it is in the operations of a manager.
class CudaMath {
 public:
  using Backend = swapmm::cuda::Backend;
  using Queue = cudaStream_t;
  using Number = Bfloat16;
  using Sum = float;

  /// The work area of an operation.
  struct Area {
    Area() = default;
    explicit Area(const swapmm::cuda::View<std::byte>& view) : data(view.data()), bytes(view.size()) {}
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };

  /// Loads cuBLAS, and makes the backend's device the thread's current one. Throws std::runtime_error where it is not
  /// installed.
  explicit CudaMath(const Backend& backend);
  ~CudaMath();
  CudaMath(const CudaMath&) = delete;
  CudaMath& operator=(const CudaMath&) = delete;

  [[nodiscard]] std::size_t product_work(const Product& p) const;
  void product(Queue queue, const Product& p, const Number* a, const Number* b, Number* c, const Area& area);

  void random(Queue queue, std::size_t count, std::uint64_t seed, float range, float middle, Number* x);
  void norm_weights(Queue queue, std::size_t width, Number* weights);
  void copy(Queue queue, std::size_t count, const Number* from, Number* to);
  void layer_norm(Queue queue, std::size_t rows, std::size_t width, const Number* x, const Number* weights, Number* out,
                  Sum* statistics);
  [[nodiscard]] std::size_t norm_work(std::size_t rows, std::size_t width) const;
  void layer_norm_backward(Queue queue, std::size_t rows, std::size_t width, const Number* x, const Sum* statistics,
                           const Number* weights, const Number* out_gradient, Number* x_gradient,
                           Number* weights_gradient, const Area& area);
  void softmax(Queue queue, std::size_t rows, std::size_t columns, Number* x);
  void softmax_backward(Queue queue, std::size_t rows, std::size_t columns, const Number* probabilities,
                        Number* gradient);
  void gelu(Queue queue, std::size_t count, const Number* x, Number* y);
  void gelu_backward(Queue queue, std::size_t count, const Number* x, Number* gradient);
  [[nodiscard]] std::size_t mean_square_work(std::size_t count) const;
  void mean_square(Queue queue, std::size_t count, const Number* x, Number* gradient, double* loss, const Area& area);
  void learn(Queue queue, std::size_t count, float rate, Number* value, const Number* gradient);
  void digest(Queue queue, std::size_t count, std::uint64_t salt, const Number* x, std::uint64_t* digest);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace transformer
