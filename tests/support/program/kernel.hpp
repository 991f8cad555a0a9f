// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/backend/testing/simulated/pattern.hpp>

#include "support/program/model.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// The first thing that was wrong in the kernels of a run. Some devices run them on threads of their own.
class KernelFailure {
 public:
  [[nodiscard]] bool any() const { return any_.load(std::memory_order_acquire); }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  /// Later ones change nothing.
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    if (any()) return;
    text_ = std::move(text);
    any_.store(true, std::memory_order_release);
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  std::atomic<bool> any_ = false;
};

/// Of the pattern in work areas; the version is the number of the action.
inline constexpr std::uint64_t scratch_id = std::uint64_t{1} << 40U;

/// How long an operation takes, on a clock that is virtual.
[[nodiscard]] inline std::chrono::nanoseconds kernel_duration(std::string_view name) {
  return std::chrono::nanoseconds{100 + 50 * static_cast<std::int64_t>(name.back() % 8)};
}

/// What one operation of a program does on the device, whenever the device comes to it.
struct Kernel {
  struct Operand {
    std::byte* data = nullptr;  ///< where its first slice begins, for read() and write()
    SlicedBytes layout;
    SliceRange range;
    Access access = Access::read;
    SliceVersions versions{};  ///< before the operation
  };
  std::size_t number = 0;
  KernelFailure* failure = nullptr;
  std::atomic<std::size_t>* finished = nullptr;  ///< kernels of the run so far
  std::array<Operand, most_parts> parts;
  std::size_t part_count = 0;
  std::byte* scratch = nullptr;
  std::uint32_t scratch_bytes = 0;

  /// Checks what it needs, and puts a pattern into its work area.
  void read() const;
  /// Checks that inputs and work area are still the same, and writes the next versions.
  void write() const;
};

[[nodiscard]] std::string text_of(const SlicedBytes& tensor, const simulated::Finding& finding);

}  // namespace swapmm::test
