// SPDX-License-Identifier: Apache-2.0
// Numbers are read and written eight at a time, 16 bytes, and computed in 32 bits. Sums are made in an order that
// depends on the sizes alone, so that the same work gives the same bits.
#include <algorithm>

#include <cuda_bf16.h>

#include "transformer/cuda_kernels.hpp"
#include "transformer/elements.h"

namespace transformer::kernels {
namespace {

constexpr unsigned threads = 256;
constexpr unsigned warp = 32;
constexpr unsigned all_lanes = 0xffffffffU;

// ---- eight numbers

struct Eight {
  float values[8];
};

__device__ Eight load(const Bfloat16* from, std::size_t eight) {
  const uint4 raw = reinterpret_cast<const uint4*>(from)[eight];
  const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
  Eight result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    result.values[2 * i] = __uint_as_float(words[i] << 16U);
    result.values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
  }
  return result;
}

__device__ unsigned bits_of(float value) { return __bfloat16_as_ushort(__float2bfloat16_rn(value)); }

__device__ void store(Bfloat16* to, std::size_t eight, const Eight& numbers) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    words[i] = bits_of(numbers.values[2 * i]) | (bits_of(numbers.values[2 * i + 1]) << 16U);
  }
  reinterpret_cast<uint4*>(to)[eight] = make_uint4(words[0], words[1], words[2], words[3]);
}

// ---- element by element

template <class Work>
__global__ void each_kernel(std::size_t eights, Work work) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < eights; i += step) work(i);
}

template <class Work>
cudaError_t each(cudaStream_t stream, std::size_t count, const Work& work) {
  const std::size_t eights = count / 8;
  const std::size_t blocks = std::min<std::size_t>((eights + threads - 1) / threads, 65535);
  if (blocks > 0) each_kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(eights, work);
  return cudaGetLastError();
}

struct Random {
  std::uint64_t seed;
  float range;
  float middle;
  Bfloat16* x;
  __device__ void operator()(std::size_t i) const {
    Eight numbers;
#pragma unroll
    for (int j = 0; j < 8; ++j) numbers.values[j] = middle + range * random_number(seed, 8 * i + j);
    store(x, i, numbers);
  }
};

struct NormWeights {
  std::size_t width;
  Bfloat16* weights;
  __device__ void operator()(std::size_t i) const {
    Eight numbers;
#pragma unroll
    for (float& value : numbers.values) value = 8 * i < width ? 1.F : 0.F;
    store(weights, i, numbers);
  }
};

struct Gelu {
  const Bfloat16* x;
  Bfloat16* y;
  __device__ void operator()(std::size_t i) const {
    Eight numbers = load(x, i);
#pragma unroll
    for (float& value : numbers.values) value = transformer::gelu(value);
    store(y, i, numbers);
  }
};

struct GeluBackward {
  const Bfloat16* x;
  Bfloat16* gradient;
  __device__ void operator()(std::size_t i) const {
    const Eight in = load(x, i);
    Eight numbers = load(gradient, i);
#pragma unroll
    for (int j = 0; j < 8; ++j) numbers.values[j] *= gelu_slope(in.values[j]);
    store(gradient, i, numbers);
  }
};

struct Learn {
  float rate;
  Bfloat16* value;
  const Bfloat16* gradient;
  __device__ void operator()(std::size_t i) const {
    const Eight slope = load(gradient, i);
    Eight numbers = load(value, i);
#pragma unroll
    for (int j = 0; j < 8; ++j) numbers.values[j] -= rate * slope.values[j];
    store(value, i, numbers);
  }
};

// ---- row by row: a block each

// The same sum in every thread.
template <class Number, class Combine>
__device__ Number over_block(Number value, Combine combine) {
  __shared__ Number parts[threads / warp];
  for (unsigned distance = warp / 2; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(all_lanes, value, static_cast<int>(distance)));
  }
  __syncthreads();  // the parts of the sum before were read
  if (threadIdx.x % warp == 0) parts[threadIdx.x / warp] = value;
  __syncthreads();
  Number result = parts[0];
  for (unsigned i = 1; i < blockDim.x / warp; ++i) result = combine(result, parts[i]);
  return result;
}
struct Plus {
  template <class Number>
  __device__ Number operator()(Number a, Number b) const {
    return a + b;
  }
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
template <class Number>
__device__ Number sum_over_block(Number value) {
  return over_block(value, Plus());
}

unsigned threads_for(std::size_t eights) {
  const std::size_t whole = (eights + warp - 1) / warp * warp;
  return static_cast<unsigned>(std::clamp<std::size_t>(whole, warp, threads));
}

template <class... Parameters, class... Arguments>
cudaError_t each_row(void (*kernel)(std::size_t, Parameters...), cudaStream_t stream, std::size_t rows,
                     std::size_t length, const Arguments&... arguments) {
  if (rows > 0x7fffffffU) return cudaErrorInvalidValue;
  kernel<<<static_cast<unsigned>(rows), threads_for(length / 8), 0, stream>>>(length / 8, arguments...);
  return cudaGetLastError();
}

__global__ void layer_norm_kernel(std::size_t eights, const Bfloat16* x, const Bfloat16* weights, Bfloat16* out,
                                  float2* statistics) {
  const std::size_t first = blockIdx.x * eights;
  const float width = static_cast<float>(8 * eights);
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight in = load(x, first + i);
    for (const float value : in.values) sum += value;
  }
  const float mean = sum_over_block(sum) / width;
  float squares = 0;
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight in = load(x, first + i);
    for (const float value : in.values) squares += (value - mean) * (value - mean);
  }
  const float inverse = 1 / sqrtf(sum_over_block(squares) / width + epsilon);
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    Eight numbers = load(x, first + i);
    const Eight scale = load(weights, i);
    const Eight shift = load(weights, eights + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      numbers.values[j] = (numbers.values[j] - mean) * inverse * scale.values[j] + shift.values[j];
    }
    store(out, first + i, numbers);
  }
  if (threadIdx.x == 0) statistics[blockIdx.x] = make_float2(mean, inverse);
}

__global__ void layer_norm_input_kernel(std::size_t eights, const Bfloat16* x, const float2* statistics,
                                        const Bfloat16* weights, const Bfloat16* out_gradient, Bfloat16* x_gradient) {
  const std::size_t first = blockIdx.x * eights;
  const float width = static_cast<float>(8 * eights);
  const float mean = statistics[blockIdx.x].x;
  const float inverse = statistics[blockIdx.x].y;
  float sum = 0;
  float product = 0;
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight in = load(x, first + i);
    const Eight slope = load(out_gradient, first + i);
    const Eight scale = load(weights, i);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float scaled = slope.values[j] * scale.values[j];
      sum += scaled;
      product += scaled * (in.values[j] - mean) * inverse;
    }
  }
  sum = sum_over_block(sum) / width;
  product = sum_over_block(product) / width;
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight in = load(x, first + i);
    const Eight slope = load(out_gradient, first + i);
    const Eight scale = load(weights, i);
    Eight numbers = load(x_gradient, first + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float normal = (in.values[j] - mean) * inverse;
      numbers.values[j] += inverse * (slope.values[j] * scale.values[j] - sum - normal * product);
    }
    store(x_gradient, first + i, numbers);
  }
}

__global__ void softmax_kernel(std::size_t eights, Bfloat16* x) {
  const std::size_t first = blockIdx.x * eights;
  float most = -INFINITY;
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight in = load(x, first + i);
    for (const float value : in.values) most = fmaxf(most, value);
  }
  most = over_block(most, Largest());
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight in = load(x, first + i);
    for (const float value : in.values) sum += expf(value - most);
  }
  const float inverse = 1 / sum_over_block(sum);
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    Eight numbers = load(x, first + i);
#pragma unroll
    for (float& value : numbers.values) value = expf(value - most) * inverse;
    store(x, first + i, numbers);
  }
}

__global__ void softmax_backward_kernel(std::size_t eights, const Bfloat16* probabilities, Bfloat16* gradient) {
  const std::size_t first = blockIdx.x * eights;
  float sum = 0;
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight p = load(probabilities, first + i);
    const Eight slope = load(gradient, first + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += p.values[j] * slope.values[j];
  }
  sum = sum_over_block(sum);
  for (std::size_t i = threadIdx.x; i < eights; i += blockDim.x) {
    const Eight p = load(probabilities, first + i);
    Eight numbers = load(gradient, first + i);
#pragma unroll
    for (int j = 0; j < 8; ++j) numbers.values[j] = p.values[j] * (numbers.values[j] - sum);
    store(gradient, first + i, numbers);
  }
}

// ---- sums over rows: groups of rows first, and their sums in a second kernel

constexpr std::size_t most_groups = 128;

std::size_t groups_of(std::size_t rows) { return std::min(rows, most_groups); }

// Two columns a thread. Of each group a row of the scales' sums, and one of the shifts'.
__global__ void norm_columns_kernel(std::size_t rows, std::size_t width, std::size_t rows_per_group,
                                    const __nv_bfloat162* x, const float2* statistics,
                                    const __nv_bfloat162* out_gradient, float2* sums) {
  const std::size_t pairs = width / 2;
  const std::size_t pair = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (pair >= pairs) return;
  const std::size_t first = blockIdx.y * rows_per_group;
  const std::size_t end = min(first + rows_per_group, rows);
  float2 scale = make_float2(0, 0);
  float2 shift = make_float2(0, 0);
  for (std::size_t row = first; row < end; ++row) {
    const float2 in = __bfloat1622float2(x[row * pairs + pair]);
    const float2 slope = __bfloat1622float2(out_gradient[row * pairs + pair]);
    const float2 of = statistics[row];
    scale.x += slope.x * (in.x - of.x) * of.y;
    scale.y += slope.y * (in.y - of.x) * of.y;
    shift.x += slope.x;
    shift.y += slope.y;
  }
  sums[blockIdx.y * width + pair] = scale;
  sums[blockIdx.y * width + pairs + pair] = shift;
}

__global__ void add_groups_kernel(std::size_t count, std::size_t groups, const float* sums, Bfloat16* total) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (std::size_t group = 0; group < groups; ++group) sum += sums[group * count + i];
  total[i].bits = static_cast<std::uint16_t>(bits_of(sum));
}

// ---- sums over everything

constexpr unsigned sum_blocks = 512;

__global__ void mean_square_kernel(std::size_t eights, float scale, const Bfloat16* x, Bfloat16* gradient,
                                   double* parts) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  double sum = 0;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < eights; i += step) {
    Eight numbers = load(x, i);
    float squares = 0;
#pragma unroll
    for (float& value : numbers.values) {
      squares += value * value;
      value *= scale;
    }
    sum += squares;
    store(gradient, i, numbers);
  }
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void add_parts_kernel(const double* parts, double count, double* mean) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < sum_blocks; i += blockDim.x) sum += parts[i];
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) *mean = sum / count;
}

// Sums of whole numbers are the same in any order.
__global__ void digest_kernel(std::size_t eights, std::uint64_t salt, const Bfloat16* x, unsigned long long* digest) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  unsigned long long sum = 0;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < eights; i += step) {
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += digest_share(salt, 8 * i + j, x[8 * i + j].bits);
  }
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) atomicAdd(digest, sum);
}

const __nv_bfloat162* pairs(const Bfloat16* numbers) { return reinterpret_cast<const __nv_bfloat162*>(numbers); }

}  // namespace

cudaError_t random(cudaStream_t stream, std::size_t count, std::uint64_t seed, float range, float middle, Bfloat16* x) {
  return each(stream, count, Random{seed, range, middle, x});
}
cudaError_t norm_weights(cudaStream_t stream, std::size_t width, Bfloat16* weights) {
  return each(stream, 2 * width, NormWeights{width, weights});
}

cudaError_t layer_norm(cudaStream_t stream, std::size_t rows, std::size_t width, const Bfloat16* x,
                       const Bfloat16* weights, Bfloat16* out, float* statistics) {
  return each_row(layer_norm_kernel, stream, rows, width, x, weights, out, reinterpret_cast<float2*>(statistics));
}

std::size_t layer_norm_backward_area(std::size_t rows, std::size_t width) {
  return groups_of(rows) * 2 * width * sizeof(float);
}
cudaError_t layer_norm_backward(cudaStream_t stream, std::size_t rows, std::size_t width, const Bfloat16* x,
                                const float* statistics, const Bfloat16* weights, const Bfloat16* out_gradient,
                                Bfloat16* x_gradient, Bfloat16* weights_gradient, void* area) {
  const auto* const means = reinterpret_cast<const float2*>(statistics);
  const cudaError_t status = each_row(layer_norm_input_kernel, stream, rows, width, x, means, weights, out_gradient,
                                      x_gradient);
  if (status != cudaSuccess) return status;
  const std::size_t rows_per_group = (rows + groups_of(rows) - 1) / groups_of(rows);
  const std::size_t groups = (rows + rows_per_group - 1) / rows_per_group;
  constexpr unsigned columns = 128;
  const auto blocks = static_cast<unsigned>((width / 2 + columns - 1) / columns);
  norm_columns_kernel<<<dim3(blocks, static_cast<unsigned>(groups)), columns, 0, stream>>>(
      rows, width, rows_per_group, pairs(x), means, pairs(out_gradient), static_cast<float2*>(area));
  const auto sum_blocks_needed = static_cast<unsigned>((2 * width + threads - 1) / threads);
  add_groups_kernel<<<sum_blocks_needed, threads, 0, stream>>>(2 * width, groups, static_cast<const float*>(area),
                                                               weights_gradient);
  return cudaGetLastError();
}

cudaError_t softmax(cudaStream_t stream, std::size_t rows, std::size_t columns, Bfloat16* x) {
  return each_row(softmax_kernel, stream, rows, columns, x);
}
cudaError_t softmax_backward(cudaStream_t stream, std::size_t rows, std::size_t columns, const Bfloat16* probabilities,
                             Bfloat16* gradient) {
  return each_row(softmax_backward_kernel, stream, rows, columns, probabilities, gradient);
}

cudaError_t gelu(cudaStream_t stream, std::size_t count, const Bfloat16* x, Bfloat16* y) {
  return each(stream, count, Gelu{x, y});
}
cudaError_t gelu_backward(cudaStream_t stream, std::size_t count, const Bfloat16* x, Bfloat16* gradient) {
  return each(stream, count, GeluBackward{x, gradient});
}

std::size_t mean_square_area() { return sum_blocks * sizeof(double); }
cudaError_t mean_square(cudaStream_t stream, std::size_t count, const Bfloat16* x, Bfloat16* gradient, double* loss,
                        void* area) {
  auto* const parts = static_cast<double*>(area);
  mean_square_kernel<<<sum_blocks, threads, 0, stream>>>(count / 8, 2 / static_cast<float>(count), x, gradient, parts);
  add_parts_kernel<<<1, threads, 0, stream>>>(parts, static_cast<double>(count), loss);
  return cudaGetLastError();
}

cudaError_t learn(cudaStream_t stream, std::size_t count, float rate, Bfloat16* value, const Bfloat16* gradient) {
  return each(stream, count, Learn{rate, value, gradient});
}

cudaError_t digest(cudaStream_t stream, std::size_t count, std::uint64_t salt, const Bfloat16* x,
                   std::uint64_t* digest) {
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  digest_kernel<<<sum_blocks, threads, 0, stream>>>(count / 8, salt, x, reinterpret_cast<unsigned long long*>(digest));
  return cudaGetLastError();
}

}  // namespace transformer::kernels
