// SPDX-License-Identifier: Apache-2.0
// Products so large that a library wants a work area, and convolutions of a library's own: the area lies in the
// operation's scratch, beside what else is there.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "fashion_mnist/layer.hpp"
#include "neural/device.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using Operations = fashion::LayerOperations<test::Math>;
using LayerFloats = Operations::Floats;

struct Passes {
  std::vector<float> y, weights_gradient, bias_gradient, x_gradient;
};

// One layer of 3 x 3 from all sides: forward, and both ways back.
Passes run(test::Math& math, const neural::Convolution& shape, const std::vector<float>& x,
           const std::vector<float>& y_gradient, const std::vector<float>& weights) {
  MemoryManager manager(test::shared_backend(), {.device_budget = 256_MiB});
  Operations layer(math, manager, {"layer", shape, false, false}, weights);
  const Shape in{shape.images, shape.side, shape.side, shape.in};
  auto on_x = manager.tensor<float>(in, "x");
  auto on_gradient = manager.tensor<float>({y_gradient.size()}, "gradient");
  on_x.upload(x);
  on_gradient.upload(y_gradient);
  const test::DeviceCalls calls;
  const auto y = layer.forward(0, on_x);
  const LayerFloats weights_gradient = layer.weights().new_gradient();
  const LayerFloats bias_gradient = layer.bias().new_gradient();
  layer.weights_backward(0, false, on_x, on_gradient, weights_gradient, bias_gradient);
  const LayerFloats x_gradient = layer.input_backward(0, on_gradient, in, "x.gradient");
  manager.synchronize();
  calls.check_no_bytes();
  return {y->download(), weights_gradient.download(), bias_gradient.download(), x_gradient.download()};
}

}  // namespace

TEST_CASE("where products want work areas, they are in the bundles, and results are right") {
  const neural::Convolution shape = test::large_convolution;
  REQUIRE(neural::chunk_images<test::Math>(shape) < shape.images);
  test::require_work_areas({neural::forward_work(test::math(), shape).gemm,
                            neural::weights_work(test::math(), shape).gemm,
                            neural::input_work(test::math(), shape).gemm});

  // All zero but for few places, which makes the results exact, and easy to know.
  const std::size_t pixels = shape.side * shape.side;
  std::vector<float> x(shape.pixels() * shape.in);
  std::vector<float> y_gradient(shape.pixels() * shape.out);
  const std::vector<float> weights = test::numbers(shape.columns() * shape.out, 1);
  const auto pixel = [&](std::size_t image, std::size_t row, std::size_t column) {
    return image * pixels + row * shape.side + column;
  };
  x[pixel(1, 3, 27) * shape.in + 5] = 2;
  y_gradient[pixel(1, 4, 26) * shape.out + 7] = 3;

  std::vector<float> y(shape.pixels() * shape.out);
  std::vector<float> weights_gradient(weights.size());
  std::vector<float> bias_gradient(shape.out);
  std::vector<float> x_gradient(x.size());
  for (std::size_t dy = 0; dy < 3; ++dy) {
    for (std::size_t dx = 0; dx < 3; ++dx) {
      const std::size_t tap = (dy * 3 + dx) * shape.in;
      // The pixel whose neighbour (dy, dx) is the one of x.
      if (27 + 1 - dx < shape.side) {
        for (std::size_t out = 0; out < shape.out; ++out) {
          y[pixel(1, 3 + 1 - dy, 27 + 1 - dx) * shape.out + out] = 2 * weights[(tap + 5) * shape.out + out];
        }
      }
      if (4 + dy - 1 == 3 && 26 + dx - 1 == 27) weights_gradient[(tap + 5) * shape.out + 7] = 6;
      for (std::size_t in = 0; in < shape.in; ++in) {
        x_gradient[pixel(1, 4 + dy - 1, 26 + dx - 1) * shape.in + in] = 3 * weights[(tap + in) * shape.out + 7];
      }
    }
  }
  bias_gradient[7] = 3;
  for (test::Math* const math : test::maths()) {
    const Passes passes = run(*math, shape, x, y_gradient, weights);
    CHECK(passes.y == y);
    CHECK(passes.weights_gradient == weights_gradient);
    CHECK(passes.bias_gradient == bias_gradient);
    CHECK(passes.x_gradient == x_gradient);
  }
}
