// SPDX-License-Identifier: Apache-2.0
#include "neural/cudnn.hpp"

#include <array>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <vector>

#include <cudnn.h>

#include "neural/shared_library.hpp"

namespace neural {
namespace {

// Of those for images with channels last, the ones that add up in a fixed order.
constexpr auto forward_algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
constexpr auto weights_algorithm = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
constexpr auto input_algorithm = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;

constexpr float one = 1;
constexpr float zero = 0;

auto key(const Convolution& c) { return std::tuple(c.images, c.side, c.in, c.out, c.size); }

}  // namespace

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name
#define NEURAL_CUDNN(name) decltype(&::name) name = library.function<decltype(::name)>(#name)

// cuDNN's functions, its handle, and what it knows of the shapes so far.
class CudnnConvolutions::Api {
 public:
  Api() { check(cudnnCreate(&handle_), "cudnnCreate"); }
  ~Api() {
    shapes_.clear();
    (void)cudnnDestroy(handle_);
  }
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // A shape's descriptions, and the work areas of its passes.
  struct Shape {
    explicit Shape(const Api& owner) : api(owner) {}
    ~Shape() {  // of null: nothing
      (void)api.cudnnDestroyTensorDescriptor(x);
      (void)api.cudnnDestroyTensorDescriptor(y);
      (void)api.cudnnDestroyFilterDescriptor(weights);
      (void)api.cudnnDestroyConvolutionDescriptor(convolution);
    }
    Shape(const Shape&) = delete;
    Shape& operator=(const Shape&) = delete;

    [[nodiscard]] std::optional<std::size_t>& work_of(ConvolutionPass pass) {
      return work[static_cast<std::size_t>(pass)];
    }

    const Api& api;
    Convolution of;
    cudnnTensorDescriptor_t x = nullptr;
    cudnnTensorDescriptor_t y = nullptr;
    cudnnFilterDescriptor_t weights = nullptr;
    cudnnConvolutionDescriptor_t convolution = nullptr;
    std::array<std::optional<std::size_t>, 3> work;  // by pass; none: cuDNN does not do it
  };

  [[nodiscard]] Shape& shape(const Convolution& c) {
    for (const auto& known : shapes_) {
      if (key(known->of) == key(c)) return *known;
    }
    shapes_.push_back(described(c));
    return *shapes_.back();
  }

  // The handle, with its next work on that stream.
  [[nodiscard]] cudnnHandle_t handle_for(cudaStream_t stream) {
    check(cudnnSetStream(handle_, stream), "cudnnSetStream");
    return handle_;
  }

  void check(cudnnStatus_t status, std::string_view call) const {
    if (status == CUDNN_STATUS_SUCCESS) return;
    throw std::runtime_error("cuDNN (" + library.file() + "): " + std::string(call) + " gives " +
                             cudnnGetErrorString(status));
  }

  SharedLibrary library{"cuDNN", {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"}};
  NEURAL_CUDNN(cudnnGetVersion);
  NEURAL_CUDNN(cudnnGetErrorString);
  NEURAL_CUDNN(cudnnCreate);
  NEURAL_CUDNN(cudnnDestroy);
  NEURAL_CUDNN(cudnnSetStream);
  NEURAL_CUDNN(cudnnCreateTensorDescriptor);
  NEURAL_CUDNN(cudnnDestroyTensorDescriptor);
  NEURAL_CUDNN(cudnnSetTensor4dDescriptor);
  NEURAL_CUDNN(cudnnCreateFilterDescriptor);
  NEURAL_CUDNN(cudnnDestroyFilterDescriptor);
  NEURAL_CUDNN(cudnnSetFilter4dDescriptor);
  NEURAL_CUDNN(cudnnCreateConvolutionDescriptor);
  NEURAL_CUDNN(cudnnDestroyConvolutionDescriptor);
  NEURAL_CUDNN(cudnnSetConvolution2dDescriptor);
  NEURAL_CUDNN(cudnnSetConvolutionMathType);
  NEURAL_CUDNN(cudnnGetConvolutionForwardWorkspaceSize);
  NEURAL_CUDNN(cudnnGetConvolutionBackwardFilterWorkspaceSize);
  NEURAL_CUDNN(cudnnGetConvolutionBackwardDataWorkspaceSize);
  NEURAL_CUDNN(cudnnConvolutionForward);
  NEURAL_CUDNN(cudnnConvolutionBackwardFilter);
  NEURAL_CUDNN(cudnnConvolutionBackwardData);

 private:
  [[nodiscard]] std::unique_ptr<Shape> described(const Convolution& c) const {
    const auto narrow = [](std::size_t count) {
      if (count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw std::length_error("an extent of " + std::to_string(count) + " is more than cuDNN counts");
      }
      return static_cast<int>(count);
    };
    const int images = narrow(c.images);
    const int side = narrow(c.side);
    const int size = narrow(c.size);
    auto made = std::make_unique<Shape>(*this);
    Shape& s = *made;
    s.of = c;
    check(cudnnCreateTensorDescriptor(&s.x), "cudnnCreateTensorDescriptor");
    check(cudnnCreateTensorDescriptor(&s.y), "cudnnCreateTensorDescriptor");
    check(cudnnCreateFilterDescriptor(&s.weights), "cudnnCreateFilterDescriptor");
    check(cudnnCreateConvolutionDescriptor(&s.convolution), "cudnnCreateConvolutionDescriptor");
    check(cudnnSetTensor4dDescriptor(s.x, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, images, narrow(c.in), side, side),
          "cudnnSetTensor4dDescriptor");
    check(cudnnSetTensor4dDescriptor(s.y, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, images, narrow(c.out), side, side),
          "cudnnSetTensor4dDescriptor");
    check(cudnnSetFilter4dDescriptor(s.weights, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, narrow(c.out), narrow(c.in), size,
                                     size),
          "cudnnSetFilter4dDescriptor");
    const int border = size / 2;
    check(cudnnSetConvolution2dDescriptor(s.convolution, border, border, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    // Without it cuDNN rounds what it multiplies to TensorFloat-32.
    check(cudnnSetConvolutionMathType(s.convolution, CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");

    std::size_t bytes = 0;
    const auto answer = [&](cudnnStatus_t status) {
      return status == CUDNN_STATUS_SUCCESS ? std::optional(bytes) : std::nullopt;
    };
    s.work_of(ConvolutionPass::forward) = answer(cudnnGetConvolutionForwardWorkspaceSize(
        handle_, s.x, s.weights, s.convolution, s.y, forward_algorithm, &bytes));
    s.work_of(ConvolutionPass::weights) = answer(cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle_, s.x, s.y, s.convolution, s.weights, weights_algorithm, &bytes));
    s.work_of(ConvolutionPass::input) = answer(cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle_, s.weights, s.y, s.convolution, s.x, input_algorithm, &bytes));
    return made;
  }

  cudnnHandle_t handle_ = nullptr;
  std::vector<std::unique_ptr<Shape>> shapes_;  // few: a program's layers
};

CudnnConvolutions::CudnnConvolutions() : api_(std::make_unique<Api>()) {
  const std::size_t version = api_->cudnnGetVersion();
  const std::size_t major = version >= 90000 ? 10000 : 1000;  // 8.9.7 is 8907, 9.1.0 is 90100
  file_ = api_->library.file() + " (" + std::to_string(version / major) + "." + std::to_string(version % major / 100) +
          "." + std::to_string(version % 100) + ")";
}

CudnnConvolutions::~CudnnConvolutions() = default;

std::optional<std::size_t> CudnnConvolutions::work(ConvolutionPass pass, const Convolution& c) {
  return api_->shape(c).work_of(pass);
}

void CudnnConvolutions::forward(cudaStream_t stream, const Convolution& c, const float* x, const float* weights,
                                float* y, void* area) {
  Api::Shape& s = api_->shape(c);
  api_->check(api_->cudnnConvolutionForward(api_->handle_for(stream), &one, s.x, x, s.weights, weights, s.convolution,
                                            forward_algorithm, area, s.work_of(ConvolutionPass::forward).value(), &zero,
                                            s.y, y),
              "cudnnConvolutionForward");
}

void CudnnConvolutions::weights_gradient(cudaStream_t stream, const Convolution& c, const float* x,
                                         const float* y_gradient, float* gradient, void* area) {
  Api::Shape& s = api_->shape(c);
  api_->check(api_->cudnnConvolutionBackwardFilter(
                  api_->handle_for(stream), &one, s.x, x, s.y, y_gradient, s.convolution, weights_algorithm, area,
                  s.work_of(ConvolutionPass::weights).value(), &zero, s.weights, gradient),
              "cudnnConvolutionBackwardFilter");
}

void CudnnConvolutions::input_gradient(cudaStream_t stream, const Convolution& c, const float* y_gradient,
                                       const float* weights, float* gradient, void* area) {
  Api::Shape& s = api_->shape(c);
  api_->check(api_->cudnnConvolutionBackwardData(api_->handle_for(stream), &one, s.weights, weights, s.y, y_gradient,
                                                 s.convolution, input_algorithm, area,
                                                 s.work_of(ConvolutionPass::input).value(), &zero, s.x, gradient),
              "cudnnConvolutionBackwardData");
}

}  // namespace neural
