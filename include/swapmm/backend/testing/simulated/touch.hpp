// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <swapmm/backend/testing/simulated/memory.hpp>

namespace swapmm::simulated {

namespace detail {
class Device;
}

/// A place in a device memory. An Address and a View refer to one.
struct Place {
  const detail::Device* device = nullptr;  ///< device of the memory
  detail::BlockId block;                   ///< the memory
  std::byte* data = nullptr;               ///< the first byte
  std::uint64_t size = 0;                  ///< size in bytes
};

/// Declares bytes that a kernel reads or writes. The checker relies on it.
struct Touch {
  Place place;              ///< the place
  std::uint64_t bytes = 0;  ///< number of bytes from the start of the place
  bool is_write = false;    ///< false: the kernel only reads them

  /// Declares that the kernel reads the bytes of a View or an Address.
  template <class Seen>
  [[nodiscard]] static Touch read(const Seen& seen) {
    return {seen.place(), seen.bytes(), false};
  }
  /// Declares that the kernel writes the bytes of a View or an Address.
  template <class Seen>
  [[nodiscard]] static Touch write(const Seen& seen) {
    return {seen.place(), seen.bytes(), true};
  }
};

}  // namespace swapmm::simulated
