// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace swapmm::test {

/// Allocations by operator new in this thread since it began.
[[nodiscard]] std::uint64_t allocations();

/// Lets the n-th allocation of this thread from now on fail, counted from 1, and only that one; nothing fails once it
/// ends. Scopes do not nest.
class FailingNew {
 public:
  explicit FailingNew(std::uint64_t n);
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  ~FailingNew();

  [[nodiscard]] bool fired() const;
};

/// Numbers the allocations of this thread that are made between start() and stop(), from 1, over all such times, and
/// keeps the numbers of the first few of each kind: of those to which the same calls led. Slow: it looks at the stack.
class AllocationSites {
 public:
  explicit AllocationSites(std::size_t of_each) : of_each_(of_each) {}
  AllocationSites(const AllocationSites&) = delete;
  AllocationSites& operator=(const AllocationSites&) = delete;
  ~AllocationSites() { stop(); }

  void start();
  void stop();
  [[nodiscard]] const std::vector<std::uint64_t>& numbers() const { return numbers_; }

  void note();  ///< of operator new

 private:
  std::size_t of_each_;
  std::uint64_t made_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> seen_;  // by hash of the stack
  std::vector<std::uint64_t> numbers_;
};

/// How many bytes this thread holds, at most, of what it has allocated by operator new since this began. Of a block
/// that may lie on pages of its own (64 KiB and more) only those that were written to count, from its front: the others
/// cost nothing. Scopes do not nest.
class PeakMemory {
 public:
  PeakMemory();
  PeakMemory(const PeakMemory&) = delete;
  PeakMemory& operator=(const PeakMemory&) = delete;
  ~PeakMemory();

  [[nodiscard]] std::uint64_t bytes() const;
};

}  // namespace swapmm::test
