// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace random_opencl {

/// A generator of random numbers that gives the same numbers on every machine (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
  }
  /// Less than `limit`, which is not 0.
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }
  /// From `first` to `last`, both included.
  std::size_t between(std::size_t first, std::size_t last) { return first + below(last - first + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class Value>
  const Value& one_of(const std::vector<Value>& values) {
    return values[below(values.size())];
  }

 private:
  std::uint64_t state_;
};

/// What the kernels call hash(), too.
inline std::uint32_t hash_of(std::uint32_t value) {
  value ^= value >> 16U;
  value *= 0x7feb352dU;
  value ^= value >> 15U;
  value *= 0x846ca68bU;
  value ^= value >> 16U;
  return value;
}

/// `size` bytes that depend on the seed alone.
inline std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  Random random(seed);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i != size; ++i) {
    word = i % 8 == 0 ? random.next() : word >> 8U;
    bytes[i] = static_cast<std::uint8_t>(word);
  }
  return bytes;
}

}  // namespace random_opencl
