// SPDX-License-Identifier: Apache-2.0
// CudaMath between the libraries: who computes what, and what is said where one refuses. On the host.
#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/error.hpp>

#include "neural/cuda/host_runtime.hpp"
#include "neural/device.hpp"
#include "neural/shapes.hpp"
#include "neural/steps.hpp"

namespace {

using namespace swapmm::test;
using neural::Convolution;
using neural::ConvolutionPass;
using Floats = Memory<float>;

constexpr ConvolutionPass passes[] = {ConvolutionPass::forward, ConvolutionPass::weights, ConvolutionPass::input};

Math& by_cudnn() {
  REQUIRE(maths().size() == 2);
  return *maths()[1];
}

// The convolution alone, without bias.
std::vector<float> convolved(Math& math, const Convolution& c, const std::vector<float>& x,
                             const std::vector<float>& weights) {
  const Floats on_x(x);
  const Floats on_weights(weights);
  const Floats bias(std::vector<float>(c.out));
  const Floats y(c.pixels() * c.out);
  const neural::WorkArea work = neural::forward_work(math, c);
  const DeviceBytes area(work.bytes());
  cudaStream_t stream = queue();
  neural::convolve(math, stream, c, false, on_x.place(), on_weights.place(), bias.place(), y.place(), work,
                   area.place());
  return y.values();
}

}  // namespace

TEST_CASE("cuDNN gets convolutions of 3 x 3 that it takes, and matrix products the others") {
  const Convolution small{.images = 2, .side = 5, .in = 3, .out = 4, .size = 3};
  Convolution single = small;
  single.size = 1;
  Convolution wide = small;
  wide.in = most_channels + 1;
  for (const ConvolutionPass pass : passes) {
    CHECK(by_cudnn().convolution_work(pass, small).has_value());
    CHECK(!by_cudnn().convolution_work(pass, single).has_value());
    CHECK(!by_cudnn().convolution_work(pass, wide).has_value());
    CHECK(!math().convolution_work(pass, small).has_value());
  }
  // A work area that is larger than all the rest of the bundle is not worth it.
  const Convolution tiny{.images = 1, .side = 1, .in = 1, .out = 1, .size = 3};
  CHECK(!by_cudnn().convolution_work(ConvolutionPass::forward, tiny).has_value());

  for (const Convolution& c : {small, single, wide}) {
    const std::vector<float> x = numbers(c.pixels() * c.in, 1);
    const std::vector<float> weights = numbers(c.weights(), 2);
    CHECK(convolved(by_cudnn(), c, x, weights) == convolved(math(), c, x, weights));
  }
}

TEST_CASE("it is said which libraries compute") {
  CHECK(math().libraries() == "cuBLAS, convolutions by matrix products, as asked for");
  CHECK(by_cudnn().libraries().find("cuBLAS, cuDNN (") == 0);
}

TEST_CASE("a launch that fails names its kernel") {
  const Floats y(3);
  fail_next_launch(cudaErrorInvalidConfiguration);
  CHECK_THROWS_WITH_AS(math().fill(queue(), 3, y.place(), 1),
                       "cudaLaunchKernel of neural_fill: cudaError (9): an error", swapmm::BackendError);
  math().fill(queue(), 3, y.place(), 1);
  CHECK(y.values() == std::vector<float>{1, 1, 1});
}

TEST_CASE("what cuBLAS refuses is named, with its status") {
  const Floats a(1);
  const DeviceBytes area(1 << 20U);
  CHECK_THROWS_WITH_AS(math().gemm(queue(), {}, a.place(), a.place(), 0, a.place(), area.place().at(1)),
                       "cuBLAS (cuBLAS): cublasSetWorkspace gives status 7", std::runtime_error);
}
