// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of a stack of blocks on CUDA, for a compiler that knows no kernels. Each function queues its work and
// returns what the launch gave. All memory begins at a multiple of 16 bytes; all counts, and the lengths of rows, are
// multiples of 8. What each computes, tests/transformer/host_math.hpp says.

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "transformer/bfloat16.h"

namespace transformer::kernels {

cudaError_t random(cudaStream_t stream, std::size_t count, std::uint64_t seed, float range, float middle, Bfloat16* x);
cudaError_t norm_weights(cudaStream_t stream, std::size_t width, Bfloat16* weights);
cudaError_t layer_norm(cudaStream_t stream, std::size_t rows, std::size_t width, const Bfloat16* x,
                       const Bfloat16* weights, Bfloat16* out, float* statistics);
/// Bytes that `area` has.
std::size_t layer_norm_backward_area(std::size_t rows, std::size_t width);
cudaError_t layer_norm_backward(cudaStream_t stream, std::size_t rows, std::size_t width, const Bfloat16* x,
                                const float* statistics, const Bfloat16* weights, const Bfloat16* out_gradient,
                                Bfloat16* x_gradient, Bfloat16* weights_gradient, void* area);
cudaError_t softmax(cudaStream_t stream, std::size_t rows, std::size_t columns, Bfloat16* x);
cudaError_t softmax_backward(cudaStream_t stream, std::size_t rows, std::size_t columns, const Bfloat16* probabilities,
                             Bfloat16* gradient);
cudaError_t gelu(cudaStream_t stream, std::size_t count, const Bfloat16* x, Bfloat16* y);
cudaError_t gelu_backward(cudaStream_t stream, std::size_t count, const Bfloat16* x, Bfloat16* gradient);
/// Bytes that `area` has.
std::size_t mean_square_area();
cudaError_t mean_square(cudaStream_t stream, std::size_t count, const Bfloat16* x, Bfloat16* gradient, double* loss,
                        void* area);
cudaError_t learn(cudaStream_t stream, std::size_t count, float rate, Bfloat16* value, const Bfloat16* gradient);
cudaError_t digest(cudaStream_t stream, std::size_t count, std::uint64_t salt, const Bfloat16* x,
                   std::uint64_t* digest);

}  // namespace transformer::kernels
