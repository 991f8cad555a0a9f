// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <swapmm/backend/testing/simulated/memory.hpp>

namespace swapmm::simulated {

namespace detail {
class Device;
}

/// A place in a device memory: what an Address and a View refer to.
struct Place {
  const detail::Device* device = nullptr;  ///< whose memory
  detail::BlockId block;                   ///< which memory
  std::byte* data = nullptr;               ///< the first byte
  std::uint64_t size = 0;                  ///< bytes
};

/// Bytes that a kernel reads or writes: a declaration that the checker believes.
struct Touch {
  Place place;              ///< where
  std::uint64_t bytes = 0;  ///< how many, from the start of the place
  bool is_write = false;    ///< false: the kernel only reads them

  /// The kernel reads what a View or an Address refers to.
  template <class Seen>
  [[nodiscard]] static Touch read(const Seen& seen) {
    return {seen.place(), seen.bytes(), false};
  }
  /// The kernel writes what a View or an Address refers to.
  template <class Seen>
  [[nodiscard]] static Touch write(const Seen& seen) {
    return {seen.place(), seen.bytes(), true};
  }
};

}  // namespace swapmm::simulated
