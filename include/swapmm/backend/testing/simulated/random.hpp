// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace swapmm::simulated::detail {

/// One step of SplitMix64 (Steele, Lea, Flood 2014): a bijection that spreads each input bit over all output bits.
[[nodiscard]] constexpr std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

/// A small generator that gives the same numbers on every platform. The distributions of <random> do not guarantee
/// this.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) : state_(scramble(seed)) {}

  constexpr std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    return scramble(state_);
  }
  /// A number below `limit`, which must be above 0 and small, so that the bias of the remainder does not matter.
  constexpr std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((next() >> 32U) % limit); }

 private:
  std::uint64_t state_;
};

}  // namespace swapmm::simulated::detail
