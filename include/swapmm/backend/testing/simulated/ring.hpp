// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace swapmm::simulated::detail {

/// A FIFO queue that keeps and reuses its memory. Elements are numbered from the first one ever pushed.
template <class T>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] std::uint64_t head() const { return head_; }  ///< elements popped so far
  [[nodiscard]] std::uint64_t tail() const { return tail_; }  ///< elements pushed so far
  [[nodiscard]] T& front() { return slots_[head_ & mask()]; }

  /// Reserves memory for one more element, so that the next push_slot() does not throw.
  void reserve_one() {
    if (tail_ - head_ == slots_.size()) grow();
  }
  /// Adds an element and returns its slot, with the content of its last use. Call reserve_one() first.
  T& push_slot() noexcept { return slots_[tail_++ & mask()]; }
  void pop() noexcept { ++head_; }
  /// Removes the newest elements, back to an earlier tail().
  void truncate(std::uint64_t tail) noexcept { tail_ = tail; }

 private:
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

  void grow() {
    std::vector<T> larger(slots_.empty() ? 16 : slots_.size() * 2);
    for (std::uint64_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = std::move(slots_[i & mask()]);
    slots_ = std::move(larger);
  }

  std::vector<T> slots_;  // size is a power of two
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
};

}  // namespace swapmm::simulated::detail
