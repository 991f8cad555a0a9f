// SPDX-License-Identifier: Apache-2.0
#pragma once

// The kernels of kernels.h as CUDA has them. To the host's compiler each is a function whose address cudaLaunchKernel()
// takes; nvcc sees these declarations beside the definitions, and refuses any that differs.

#include <swapmm/kernel.h>

#ifdef __CUDACC__
#define NEURAL_CUDA_KERNEL extern "C" __global__
#else
#define NEURAL_CUDA_KERNEL extern "C"
#endif

NEURAL_CUDA_KERNEL void neural_transpose(const float* from, swapmm_index from_first, float* to, swapmm_index to_first,
                                         swapmm_index rows, swapmm_index columns);
NEURAL_CUDA_KERNEL void neural_fill(float* y, swapmm_index y_first, swapmm_index count, float value);
NEURAL_CUDA_KERNEL void neural_bias_relu(float* y, swapmm_index y_first, const float* bias, swapmm_index bias_first,
                                         swapmm_index channels, swapmm_index pixels, float floor);
NEURAL_CUDA_KERNEL void neural_relu_backward(const float* y, swapmm_index y_first, float* gradient,
                                             swapmm_index gradient_first, swapmm_index count);
NEURAL_CUDA_KERNEL void neural_column_sums(const float* gradient, swapmm_index gradient_first, float* sums,
                                           swapmm_index sums_first, swapmm_index channels, swapmm_index pixels,
                                           swapmm_index pixels_per_block);
NEURAL_CUDA_KERNEL void neural_add_parts(const float* rows, swapmm_index rows_first, float* total,
                                         swapmm_index total_first, swapmm_index count, swapmm_index parts,
                                         swapmm_index keep);
NEURAL_CUDA_KERNEL void neural_im2col(const float* x, swapmm_index x_first, float* columns, swapmm_index columns_first,
                                      swapmm_index channels, swapmm_index side, swapmm_index images);
NEURAL_CUDA_KERNEL void neural_col2im(const float* columns, swapmm_index columns_first, float* x, swapmm_index x_first,
                                      swapmm_index channels, swapmm_index side, swapmm_index images);
NEURAL_CUDA_KERNEL void neural_max_pool(const float* x, swapmm_index x_first, float* y, swapmm_index y_first,
                                        unsigned char* map, swapmm_index map_first, swapmm_index channels,
                                        swapmm_index side, swapmm_index images);
NEURAL_CUDA_KERNEL void neural_max_pool_backward(const float* y, swapmm_index y_first, const unsigned char* map,
                                                 swapmm_index map_first, const float* y_gradient,
                                                 swapmm_index y_gradient_first, float* x_gradient,
                                                 swapmm_index x_gradient_first, swapmm_index channels,
                                                 swapmm_index side, swapmm_index images);
NEURAL_CUDA_KERNEL void neural_softmax_loss(const float* logits, swapmm_index logits_first, const unsigned char* labels,
                                            swapmm_index labels_first, float* gradient, swapmm_index gradient_first,
                                            swapmm_index* losses, swapmm_index losses_first, swapmm_index classes,
                                            swapmm_index images, float scale);
NEURAL_CUDA_KERNEL void neural_right_answers(const float* logits, swapmm_index logits_first,
                                             const unsigned char* labels, swapmm_index labels_first,
                                             swapmm_index* right, swapmm_index right_first, swapmm_index classes,
                                             swapmm_index images);
NEURAL_CUDA_KERNEL void neural_add_counts(const swapmm_index* counts, swapmm_index counts_first, swapmm_index* total,
                                          swapmm_index total_first, swapmm_index count, swapmm_index keep);
NEURAL_CUDA_KERNEL void neural_momentum_step(float* value, swapmm_index value_first, float* velocity,
                                             swapmm_index velocity_first, const float* gradient,
                                             swapmm_index gradient_first, swapmm_index count, float rate,
                                             float momentum);
NEURAL_CUDA_KERNEL void neural_lstm(float* gates, swapmm_index gates_first, const float* bias, swapmm_index bias_first,
                                    const float* before, swapmm_index before_first, float* cells,
                                    swapmm_index cells_first, float* out, swapmm_index out_first, swapmm_index hidden,
                                    swapmm_index rows);
NEURAL_CUDA_KERNEL void neural_lstm_backward(float* gates, swapmm_index gates_first, const float* before,
                                             swapmm_index before_first, const float* cells, swapmm_index cells_first,
                                             const float* out_gradient, swapmm_index out_gradient_first,
                                             float* cells_gradient, swapmm_index cells_gradient_first,
                                             swapmm_index hidden, swapmm_index rows);
