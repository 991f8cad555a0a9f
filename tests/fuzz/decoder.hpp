// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace swapmm::fuzz {

/// Numbers from the bytes of an input, from its front; zeros where it has ended.
class Decoder {
 public:
  explicit Decoder(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  /// From 0 to count - 1.
  std::size_t one_of(std::size_t count) { return byte() % count; }
  /// From 1 to 256.
  std::uint64_t small() { return std::uint64_t{byte()} + 1; }
  /// Small numbers, and with one more bit of the first byte also such as 3 x 2^40.
  std::uint64_t any_size() {
    const std::uint8_t shape = byte();
    const std::uint64_t value = byte();
    return (shape & 1U) == 0 ? value : value << (shape / 2 % 54U);
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace swapmm::fuzz
