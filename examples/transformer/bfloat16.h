// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

namespace transformer {

/// The upper half of a 32-bit number: what activations and weights are on the device. The host only looks at them.
struct Bfloat16 {
  std::uint16_t bits = 0;

  [[nodiscard]] float value() const {
    const std::uint32_t whole = std::uint32_t{bits} << 16U;
    float value = 0;
    std::memcpy(&value, &whole, sizeof value);
    return value;
  }
  /// The nearest one; of two as near, the one whose last bit is 0.
  [[nodiscard]] static Bfloat16 nearest(float value) {
    std::uint32_t whole = 0;
    std::memcpy(&whole, &value, sizeof whole);
    if (value != value) return {static_cast<std::uint16_t>((whole >> 16U) | 0x40U)};
    whole += 0x7fffU + ((whole >> 16U) & 1U);
    return {static_cast<std::uint16_t>(whole >> 16U)};
  }
};

}  // namespace transformer
