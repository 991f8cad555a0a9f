// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <swapmm/base/bytes.hpp>

namespace swapmm::runtime {

/// A limit on host memory that several managers share, and how much of it is in use. Exact, for any thread.
class HostLedger {
 public:
  explicit HostLedger(Bytes limit) : limit_(limit) {}

  [[nodiscard]] Bytes limit() const { return limit_; }
  [[nodiscard]] Bytes in_use() const { return Bytes{in_use_.load(std::memory_order_relaxed)}; }
  /// The most that was taken at a time.
  [[nodiscard]] Bytes peak() const { return Bytes{peak_.load(std::memory_order_relaxed)}; }
  /// What may still be taken. Another thread may take it first.
  [[nodiscard]] Bytes room() const { return limit_ - in_use(); }

  /// Takes all of `size`, or nothing.
  [[nodiscard]] bool take(Bytes size) noexcept {
    std::uint64_t used = in_use_.load(std::memory_order_relaxed);
    do {
      if (size > limit_ - Bytes{used}) return false;
    } while (!in_use_.compare_exchange_weak(used, used + size.value, std::memory_order_relaxed));
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < used + size.value &&
           !peak_.compare_exchange_weak(peak, used + size.value, std::memory_order_relaxed)) {
    }
    return true;
  }
  void give_back(Bytes size) noexcept { in_use_.fetch_sub(size.value, std::memory_order_relaxed); }

 private:
  Bytes limit_;
  std::atomic<std::uint64_t> in_use_{0};
  std::atomic<std::uint64_t> peak_{0};
};

}  // namespace swapmm::runtime
