// SPDX-License-Identifier: Apache-2.0
#include "neural/opencl_math.hpp"

#include <clblast.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <swapmm/opencl/status.hpp>

namespace neural {
namespace {

using clblast::Layout;
using clblast::StatusCode;
using clblast::Transpose;

void check(StatusCode status, const char* call, const Gemm& g) {
  if (status == StatusCode::kSuccess) return;
  throw std::runtime_error(std::string("CLBlast: ") + call + " of " + std::to_string(g.m) + " x " +
                           std::to_string(g.n) + " x " + std::to_string(g.k) + " gives status " +
                           std::to_string(static_cast<int>(status)));
}

Transpose transposed(bool yes) { return yes ? Transpose::kYes : Transpose::kNo; }
// Numbers per row, as the matrices lie in memory.
std::size_t row_a(const Gemm& g) { return g.transpose_a ? g.m : g.k; }
std::size_t row_b(const Gemm& g) { return g.transpose_b ? g.k : g.n; }

// CLBlast has no parameters tuned for recent CPUs; with those it falls back on, products of the shapes that layers have
// take three times as long on PoCL. With these, neighbouring work items compute neighbouring numbers of a row, which
// becomes vector instructions, and each computes 16 rows of them in registers. More per item would be a little faster
// and take twice as long to compile.
void set_parameters_for_cpu(cl_device_id device) {
  cl_device_type type = 0;
  swapmm::opencl::check(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr), "clGetDeviceInfo");
  if ((type & CL_DEVICE_TYPE_CPU) == 0) return;
  const StatusCode status = clblast::OverrideParameters(device, "XgemmDirect", clblast::Precision::kSingle,
                                                        {{"WGD", 32},
                                                         {"MDIMCD", 32},
                                                         {"NDIMCD", 2},
                                                         {"MDIMAD", 8},
                                                         {"NDIMBD", 8},
                                                         {"KWID", 1},
                                                         {"VWMD", 1},
                                                         {"VWND", 4},
                                                         {"PADA", 0},
                                                         {"PADB", 0}});
  if (status != StatusCode::kSuccess) {
    throw std::runtime_error("CLBlast: OverrideParameters gives status " + std::to_string(static_cast<int>(status)));
  }
}

constexpr std::size_t group_size = 256;  // a number that all GPUs take
constexpr std::size_t widest_row = 64;
std::size_t rounded_up(std::size_t count, std::size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// As the kernels take them: a place is two arguments, and whole numbers have 64 bits.
auto flat(const OpenclMath::Place& place) { return std::tuple(place.buffer, static_cast<std::int64_t>(place.first)); }
auto flat(float value) { return std::tuple(value); }
template <class Integer>
  requires std::is_integral_v<Integer>
auto flat(Integer value) { return std::tuple(static_cast<std::int64_t>(value)); }

// Work items in groups of whole rows of channels, as far as they fit: neighbours touch neighbouring numbers. Left to
// the driver, the groups would be others for each size of a tensor, and some drivers compile a kernel for each anew.
struct Launch {
  swapmm::opencl::Range items;
  swapmm::opencl::Range group;
};
Launch launch(std::size_t x) { return {{rounded_up(x, group_size)}, {group_size}}; }
Launch launch(std::size_t x, std::size_t y) {
  const std::size_t width = std::min(x, widest_row);
  const std::size_t height = group_size / width;
  return {{rounded_up(x, width), rounded_up(y, height)}, {width, height}};
}
Launch launch(std::size_t x, std::size_t y, std::size_t z) {
  const std::size_t width = std::min(x, widest_row);
  const std::size_t height = std::min(y, group_size / width);
  return {{rounded_up(x, width), rounded_up(y, height), z}, {width, height, 1}};
}

}  // namespace

OpenclMath::OpenclMath(Backend backend) : backend_(std::move(backend)), program_(backend_, kernels) {
  set_parameters_for_cpu(backend_.device());
}

std::size_t OpenclMath::gemm_work(const Gemm& g) const {
  // Offsets other than 0 ask for the most: without them CLBlast saves the copy of a matrix that it can use as it is.
  constexpr std::size_t any = 1;
  std::size_t bytes = 0;
  cl_command_queue queue = backend_.queue();  // for its device
  check(clblast::GemmTempBufferSize<float>(Layout::kRowMajor, transposed(g.transpose_a), transposed(g.transpose_b), g.m,
                                           g.n, g.k, any, row_a(g), any, row_b(g), any, g.n, &queue, bytes),
        "GemmTempBufferSize", g);
  return bytes;
}

void OpenclMath::gemm(Queue queue, const Gemm& g, Place a, Place b, float beta, Place c, Place area) {
  check(clblast::Gemm<float>(Layout::kRowMajor, transposed(g.transpose_a), transposed(g.transpose_b), g.m, g.n, g.k,
                             1.0F, a.buffer, a.first, row_a(g), b.buffer, b.first, row_b(g), beta, c.buffer, c.first,
                             g.n, &queue, nullptr, area.buffer),
        "Gemm", g);
}

template <class Items, class... Arguments>
void OpenclMath::run(Queue queue, Kernel& kernel, const Items& items, const Arguments&... arguments) {
  std::apply([&](const auto&... flattened) { kernel.set(flattened...); }, std::tuple_cat(flat(arguments)...));
  const auto [global, group] = std::apply([](auto... sizes) { return launch(sizes...); }, items);
  kernel.enqueue(queue, global, group);
}

void OpenclMath::transpose(Queue queue, std::size_t rows, std::size_t columns, Place from, Place to) {
  run(queue, transpose_, std::tuple(rows, columns), from, to, rows, columns);
}

void OpenclMath::fill(Queue queue, std::size_t count, Place y, float value) {
  run(queue, fill_, std::tuple(count), y, count, value);
}

void OpenclMath::bias_relu(Queue queue, std::size_t pixels, std::size_t channels, bool relu, Place y, Place bias) {
  const float floor = relu ? 0.0F : -std::numeric_limits<float>::infinity();
  run(queue, bias_relu_, std::tuple(channels, pixels), y, bias, channels, pixels, floor);
}

void OpenclMath::relu_backward(Queue queue, std::size_t count, Place y, Place gradient) {
  run(queue, relu_backward_, std::tuple(count), y, gradient, count);
}

void OpenclMath::column_sums(Queue queue, std::size_t pixels, std::size_t channels, std::size_t block, Place gradient,
                             Place sums) {
  const std::size_t blocks = (pixels + block - 1) / block;
  run(queue, column_sums_, std::tuple(channels, blocks), gradient, sums, channels, pixels, block);
}

void OpenclMath::add_parts(Queue queue, std::size_t count, std::size_t parts, Place rows, bool keep, Place total) {
  run(queue, add_parts_, std::tuple(count), rows, total, count, parts, keep);
}

void OpenclMath::im2col(Queue queue, const Images& shape, Place x, Place columns) {
  run(queue, im2col_, std::tuple(shape.channels, shape.side, shape.count * shape.side), x, columns, shape.channels,
      shape.side, shape.count);
}

void OpenclMath::col2im(Queue queue, const Images& shape, Place columns, Place x) {
  run(queue, col2im_, std::tuple(shape.channels, shape.side, shape.count * shape.side), columns, x, shape.channels,
      shape.side, shape.count);
}

void OpenclMath::max_pool(Queue queue, const Images& shape, Place x, Place y, Place map) {
  run(queue, max_pool_, std::tuple(shape.channels, shape.side, shape.count * shape.side), x, y, map, shape.channels,
      shape.side, shape.count);
}

void OpenclMath::max_pool_backward(Queue queue, const Images& shape, Place y, Place map, Place y_gradient,
                                   Place x_gradient) {
  run(queue, max_pool_backward_, std::tuple(shape.channels, shape.side, shape.count * shape.side), y, map, y_gradient,
      x_gradient, shape.channels, shape.side, shape.count);
}

void OpenclMath::softmax_loss(Queue queue, std::size_t images, std::size_t classes, float scale, Place logits,
                              Place labels, Place gradient, Place losses) {
  run(queue, softmax_loss_, std::tuple(images), logits, labels, gradient, losses, classes, images, scale);
}

void OpenclMath::right_answers(Queue queue, std::size_t images, std::size_t classes, Place logits, Place labels,
                               Place right) {
  run(queue, right_answers_, std::tuple(images), logits, labels, right, classes, images);
}

void OpenclMath::add_counts(Queue queue, std::size_t count, Place counts, bool keep, Place total) {
  run(queue, add_counts_, std::tuple(std::size_t{1}), counts, total, count, keep);
}

void OpenclMath::momentum_step(Queue queue, std::size_t count, float rate, float momentum, Place value, Place velocity,
                               Place gradient) {
  run(queue, momentum_step_, std::tuple(count), value, velocity, gradient, count, rate, momentum);
}

void OpenclMath::lstm(Queue queue, std::size_t rows, std::size_t hidden, Place gates, Place bias, Place before,
                      Place cells, Place out) {
  run(queue, lstm_, std::tuple(hidden, rows), gates, bias, before, cells, out, hidden, rows);
}

void OpenclMath::lstm_backward(Queue queue, std::size_t rows, std::size_t hidden, Place gates, Place before,
                               Place cells, Place out_gradient, Place cells_gradient) {
  run(queue, lstm_backward_, std::tuple(hidden, rows), gates, before, cells, out_gradient, cells_gradient, hidden,
      rows);
}

}  // namespace neural
