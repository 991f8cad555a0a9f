// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is computed of single numbers: the same text for the host and for CUDA's compiler.

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define TRANSFORMER_ELEMENT __host__ __device__ inline
#else
#define TRANSFORMER_ELEMENT inline
#endif

namespace transformer {

/// Of LayerNorm, added to the variance.
inline constexpr float epsilon = 1e-5F;

/// GELU by the tanh formula (Hendrycks and Gimpel, 2016).
template <class Number>
TRANSFORMER_ELEMENT Number gelu(Number x) {
  const auto root = static_cast<Number>(0.7978845608028654);  // sqrt(2 / pi)
  const auto cubic = static_cast<Number>(0.044715);
  const auto half = static_cast<Number>(0.5);
  return half * x * (1 + std::tanh(root * (x + cubic * x * x * x)));
}

/// Its derivative.
template <class Number>
TRANSFORMER_ELEMENT Number gelu_slope(Number x) {
  const auto root = static_cast<Number>(0.7978845608028654);
  const auto cubic = static_cast<Number>(0.044715);
  const auto half = static_cast<Number>(0.5);
  const Number t = std::tanh(root * (x + cubic * x * x * x));
  return half * (1 + t) + half * x * (1 - t * t) * root * (1 + 3 * cubic * x * x);
}

/// 64 bits of which each depends on each of `x`: the end of splitmix64 (Steele, Lea and Flood, 2014).
TRANSFORMER_ELEMENT std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// A number from -1 to 1: the one at that place of the sequence that the seed names.
TRANSFORMER_ELEMENT float random_number(std::uint64_t seed, std::uint64_t place) {
  const auto bits = static_cast<std::int32_t>(mixed(mixed(seed) + place) >> 40U);  // 24 of them
  return static_cast<float>(bits - 8388608) / 8388608.0F;
}

/// The share of one element in a digest: the sum, in any order, of all of them modulo 2^64. `salt` tells tensors apart.
TRANSFORMER_ELEMENT std::uint64_t digest_share(std::uint64_t salt, std::uint64_t place, std::uint64_t bits) {
  return mixed(mixed(mixed(salt) + place) ^ bits);
}

}  // namespace transformer
