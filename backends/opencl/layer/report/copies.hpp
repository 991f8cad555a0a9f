// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "numbers.hpp"

namespace swapmm::opencl::layer {

static_assert(std::is_trivially_copyable_v<DeviceNumbers> && sizeof(DeviceNumbers) % sizeof(std::uint64_t) == 0 &&
              alignof(DeviceNumbers) == alignof(std::uint64_t));

/// Copies word by word, so that another thread may do so with the same numbers. Such a copy may be of old and new
/// words.
inline void copy_words(DeviceNumbers& to, const DeviceNumbers& from) {
  auto* const targets = reinterpret_cast<std::uint64_t*>(&to);
  // An atomic_ref of something constant is not to be had before C++26. Nothing is written there.
  auto* const sources = reinterpret_cast<std::uint64_t*>(const_cast<DeviceNumbers*>(&from));
  for (std::size_t i = 0; i < sizeof(DeviceNumbers) / sizeof(std::uint64_t); ++i) {
    const std::uint64_t word = std::atomic_ref(sources[i]).load(std::memory_order_relaxed);
    std::atomic_ref(targets[i]).store(word, std::memory_order_relaxed);
  }
}

}  // namespace swapmm::opencl::layer
