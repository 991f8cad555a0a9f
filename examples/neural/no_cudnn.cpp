// SPDX-License-Identifier: Apache-2.0
// In place of cudnn.cpp, where the build knows no cuDNN.
#include <stdexcept>

#include "neural/cudnn.hpp"

namespace neural {

class CudnnConvolutions::Api {};

CudnnConvolutions::CudnnConvolutions() { throw std::runtime_error("this program was built without cuDNN"); }
CudnnConvolutions::~CudnnConvolutions() = default;

std::optional<std::size_t> CudnnConvolutions::work(ConvolutionPass, const Convolution&) { return std::nullopt; }
void CudnnConvolutions::forward(cudaStream_t, const Convolution&, const float*, const float*, float*, void*) {}
void CudnnConvolutions::weights_gradient(cudaStream_t, const Convolution&, const float*, const float*, float*, void*) {}
void CudnnConvolutions::input_gradient(cudaStream_t, const Convolution&, const float*, const float*, float*, void*) {}

}  // namespace neural
