// SPDX-License-Identifier: Apache-2.0
#include "neural/cuda_math.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include <swapmm/cuda/status.hpp>

#include "neural/cublas.hpp"
#include "neural/cuda_gemm.hpp"
#include "neural/cuda_kernels.hpp"
#include "neural/cuda_launch.hpp"
#include "neural/cudnn.hpp"

namespace neural {
namespace {

using Place = CudaMath::Place;

float* floats(const Place& place) { return reinterpret_cast<float*>(place.data) + place.first; }

// As the kernels take them: a place is two arguments.
std::tuple<std::byte*, std::size_t> flat(const Place& place) { return {place.data, place.first}; }
template <class Number>
std::tuple<Number> flat(Number number) {
  return {number};
}

template <class Parameter, class Argument>
Parameter as(const Argument& argument) {
  if constexpr (std::is_pointer_v<Parameter>) {
    return reinterpret_cast<Parameter>(argument);
  } else {
    static_assert(std::is_floating_point_v<Parameter> == std::is_floating_point_v<Argument>);
    return static_cast<Parameter>(argument);
  }
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), cudaStream_t stream, const LaunchShape& shape,
            const Arguments&... arguments) {
  std::tuple<Parameters...> values =
      std::apply([](const auto&... flattened) { return std::tuple<Parameters...>(as<Parameters>(flattened)...); },
                 std::tuple_cat(flat(arguments)...));
  auto pointers =
      std::apply([](auto&... value) { return std::array<void*, sizeof...(Parameters)>{&value...}; }, values);
  const dim3 grid(shape.grid[0], shape.grid[1], shape.grid[2]);
  const dim3 block(shape.block[0], shape.block[1], shape.block[2]);
  const cudaError_t status =
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers.data(), 0, stream);
  if (status != cudaSuccess) throw swapmm::cuda::error_of(status, "cudaLaunchKernel", std::string(" of ") + name);
}
// One thread for each of `count` items; for none, nothing.
template <class Kernel, class... Arguments>
void launch_over(std::size_t count, const char* name, Kernel kernel, cudaStream_t stream,
                 const Arguments&... arguments) {
  if (count != 0) launch(name, kernel, stream, launch_shape(count), arguments...);
}
// The kernel with its name.
#define NEURAL_NAMED(kernel) #kernel, kernel

void make_current(int device) { swapmm::cuda::check(cudaSetDevice(device), "cudaSetDevice"); }

}  // namespace

CudaMath::CudaMath(Backend backend, Convolutions convolutions) : backend_(std::move(backend)) {
  make_current(backend_.device());
  cublas_ = std::make_unique<Cublas>();
  if (convolutions == Convolutions::gemm) {
    why_no_cudnn_ = "convolutions by matrix products, as asked for";
    return;
  }
  try {
    cudnn_ = std::make_unique<CudnnConvolutions>();
  } catch (const std::exception& error) {
    if (convolutions == Convolutions::cudnn) throw;
    const std::string text = error.what();
    why_no_cudnn_ = "convolutions by matrix products: " + text.substr(0, text.find('\n'));
  }
}

CudaMath::~CudaMath() = default;

std::string CudaMath::libraries() const {
  return cublas_->library().file() + ", " + (cudnn_ != nullptr ? cudnn_->file() : why_no_cudnn_);
}

// ---- libraries

std::size_t CudaMath::gemm_work(const Gemm& g) const { return gemm_work_bytes(g, cublas_->recommended_work()); }

void CudaMath::gemm(Queue queue, const Gemm& g, Place a, Place b, float beta, Place c, Place area) {
  cublas_->gemm(queue, g, floats(a), floats(b), beta, floats(c), floats(area), gemm_work(g));
}

std::optional<std::size_t> CudaMath::convolution_work(ConvolutionPass pass, const Convolution& c) {
  if (cudnn_ == nullptr || c.size == 1) return std::nullopt;  // of size 1 it is a matrix product already
  const std::optional<std::size_t> bytes = cudnn_->work(pass, c);
  // Work areas are part of a bundle: none that is larger than all the rest of it.
  if (bytes && *bytes > c.pixels() * (c.in + c.out) * sizeof(float)) return std::nullopt;
  return bytes;
}

void CudaMath::convolution(Queue queue, const Convolution& c, Place x, Place weights, Place y, Place area) {
  cudnn_->forward(queue, c, floats(x), floats(weights), floats(y), floats(area));
}

void CudaMath::convolution_weights(Queue queue, const Convolution& c, Place x, Place y_gradient, Place weights_gradient,
                                   Place area) {
  cudnn_->weights_gradient(queue, c, floats(x), floats(y_gradient), floats(weights_gradient), floats(area));
}

void CudaMath::convolution_input(Queue queue, const Convolution& c, Place y_gradient, Place weights, Place x_gradient,
                                 Place area) {
  cudnn_->input_gradient(queue, c, floats(y_gradient), floats(weights), floats(x_gradient), floats(area));
}

// ---- kernels
// A grid is low in y and z. Where there are more rows or images than it takes, several launches share them: each works
// on a part of the memories, as if that were all.

void CudaMath::transpose(Queue queue, std::size_t rows, std::size_t columns, Place from, Place to) {
  const std::size_t block = launch_shape(rows, 1).block[1];
  in_whole_blocks(columns, most_y(rows), block, [&](std::size_t first, std::size_t count) {
    launch(NEURAL_NAMED(neural_transpose), queue, launch_shape(rows, count), from.at(first), to.at(first * rows), rows,
           columns);
  });
}

void CudaMath::fill(Queue queue, std::size_t count, Place y, float value) {
  launch_over(count, NEURAL_NAMED(neural_fill), queue, y, count, value);
}

void CudaMath::bias_relu(Queue queue, std::size_t pixels, std::size_t channels, bool relu, Place y, Place bias) {
  const float floor = relu ? 0.0F : -std::numeric_limits<float>::infinity();
  in_parts(pixels, most_y(channels), [&](std::size_t first, std::size_t count) {
    launch(NEURAL_NAMED(neural_bias_relu), queue, launch_shape(channels, count), y.at(first * channels), bias, channels,
           count, floor);
  });
}

void CudaMath::relu_backward(Queue queue, std::size_t count, Place y, Place gradient) {
  launch_over(count, NEURAL_NAMED(neural_relu_backward), queue, y, gradient, count);
}

void CudaMath::column_sums(Queue queue, std::size_t pixels, std::size_t channels, std::size_t block, Place gradient,
                           Place sums) {
  const std::size_t blocks = (pixels + block - 1) / block;
  in_parts(blocks, most_y(channels), [&](std::size_t first, std::size_t count) {
    const std::size_t part = std::min(count * block, pixels - first * block);
    launch(NEURAL_NAMED(neural_column_sums), queue, launch_shape(channels, count),
           gradient.at(first * block * channels), sums.at(first * channels), channels, part, block);
  });
}

void CudaMath::add_parts(Queue queue, std::size_t count, std::size_t parts, Place rows, bool keep, Place total) {
  launch_over(count, NEURAL_NAMED(neural_add_parts), queue, rows, total, count, parts, keep);
}

void CudaMath::im2col(Queue queue, const Images& shape, Place x, Place columns) {
  const std::size_t image = shape.side * shape.side * shape.channels;
  in_parts(shape.count, most_images(shape.side), [&](std::size_t first, std::size_t count) {
    launch(NEURAL_NAMED(neural_im2col), queue, launch_shape(shape.channels, shape.side, count * shape.side),
           x.at(first * image), columns.at(first * image * 9), shape.channels, shape.side, count);
  });
}

void CudaMath::col2im(Queue queue, const Images& shape, Place columns, Place x) {
  const std::size_t image = shape.side * shape.side * shape.channels;
  in_parts(shape.count, most_images(shape.side), [&](std::size_t first, std::size_t count) {
    launch(NEURAL_NAMED(neural_col2im), queue, launch_shape(shape.channels, shape.side, count * shape.side),
           columns.at(first * image * 9), x.at(first * image), shape.channels, shape.side, count);
  });
}

void CudaMath::max_pool(Queue queue, const Images& shape, Place x, Place y, Place map) {
  const std::size_t image = shape.side * shape.side * shape.channels;
  in_parts(shape.count, most_images(shape.side), [&](std::size_t first, std::size_t count) {
    launch(NEURAL_NAMED(neural_max_pool), queue, launch_shape(shape.channels, shape.side, count * shape.side),
           x.at(first * image * 4), y.at(first * image), map.at(first * image), shape.channels, shape.side, count);
  });
}

void CudaMath::max_pool_backward(Queue queue, const Images& shape, Place y, Place map, Place y_gradient,
                                 Place x_gradient) {
  const std::size_t image = shape.side * shape.side * shape.channels;
  in_parts(shape.count, most_images(shape.side), [&](std::size_t first, std::size_t count) {
    launch(NEURAL_NAMED(neural_max_pool_backward), queue, launch_shape(shape.channels, shape.side, count * shape.side),
           y.at(first * image), map.at(first * image), y_gradient.at(first * image), x_gradient.at(first * image * 4),
           shape.channels, shape.side, count);
  });
}

void CudaMath::softmax_loss(Queue queue, std::size_t images, std::size_t classes, float scale, Place logits,
                            Place labels, Place gradient, Place losses) {
  launch_over(images, NEURAL_NAMED(neural_softmax_loss), queue, logits, labels, gradient, losses, classes, images,
              scale);
}

void CudaMath::right_answers(Queue queue, std::size_t images, std::size_t classes, Place logits, Place labels,
                             Place right) {
  launch_over(images, NEURAL_NAMED(neural_right_answers), queue, logits, labels, right, classes, images);
}

void CudaMath::add_counts(Queue queue, std::size_t count, Place counts, bool keep, Place total) {
  launch_over(1, NEURAL_NAMED(neural_add_counts), queue, counts, total, count, keep);
}

void CudaMath::momentum_step(Queue queue, std::size_t count, float rate, float momentum, Place value, Place velocity,
                             Place gradient) {
  launch_over(count, NEURAL_NAMED(neural_momentum_step), queue, value, velocity, gradient, count, rate, momentum);
}

void CudaMath::lstm(Queue queue, std::size_t rows, std::size_t hidden, Place gates, Place bias, Place before,
                    Place cells, Place out) {
  in_parts(rows, most_y(hidden), [&](std::size_t first, std::size_t count) {
    const std::size_t skipped = first * hidden;
    launch(NEURAL_NAMED(neural_lstm), queue, launch_shape(hidden, count), gates.at(4 * skipped), bias,
           before.at(skipped), cells.at(skipped), out.at(skipped), hidden, count);
  });
}

void CudaMath::lstm_backward(Queue queue, std::size_t rows, std::size_t hidden, Place gates, Place before, Place cells,
                             Place out_gradient, Place cells_gradient) {
  in_parts(rows, most_y(hidden), [&](std::size_t first, std::size_t count) {
    const std::size_t skipped = first * hidden;
    launch(NEURAL_NAMED(neural_lstm_backward), queue, launch_shape(hidden, count), gates.at(4 * skipped),
           before.at(skipped), cells.at(skipped), out_gradient.at(skipped), cells_gradient.at(skipped), hidden, count);
  });
}

}  // namespace neural
