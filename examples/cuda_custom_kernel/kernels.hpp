// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels as the rest of the program sees them: it is compiled by the host's compiler, and knows no CUDA language.

#include <cuda_runtime_api.h>

#include <swapmm/kernel.h>

void queue_blur(cudaStream_t stream, const float* from, float* to, const swapmm_layout& image);
void queue_blend(cudaStream_t stream, const float* other, float* image, const swapmm_layout& flat, float weight);
