// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <cuda_runtime_api.h>

#include "neural/shapes.hpp"

namespace neural {

/// Convolutions of 3 x 3 by cuDNN, loaded while the program runs: for images as they lie here, weights as out rows of
/// columns() numbers, sums of 32-bit products, and by algorithms alone that give the same bits in every run. For one
/// thread at a time, which has the device of the constructor's call as its current one.
class CudnnConvolutions {
 public:
  /// On the current device. Throws std::runtime_error where cuDNN is not installed, refuses to work, or was unknown to
  /// the build of this program.
  CudnnConvolutions();
  ~CudnnConvolutions();
  CudnnConvolutions(const CudnnConvolutions&) = delete;
  CudnnConvolutions& operator=(const CudnnConvolutions&) = delete;

  /// The file that was loaded, and its version.
  [[nodiscard]] const std::string& file() const { return file_; }
  /// The bytes of work area that the pass takes; none where cuDNN does not do that one. Asks cuDNN at the first time.
  [[nodiscard]] std::optional<std::size_t> work(ConvolutionPass pass, const Convolution& c);

  /// @{
  /// For shapes that work() gives bytes for; `area` has as many.
  void forward(cudaStream_t stream, const Convolution& c, const float* x, const float* weights, float* y, void* area);
  void weights_gradient(cudaStream_t stream, const Convolution& c, const float* x, const float* y_gradient,
                        float* gradient, void* area);
  void input_gradient(cudaStream_t stream, const Convolution& c, const float* y_gradient, const float* weights,
                      float* gradient, void* area);
  /// @}

 private:
  class Api;
  std::unique_ptr<Api> api_;
  std::string file_;
};

}  // namespace neural
