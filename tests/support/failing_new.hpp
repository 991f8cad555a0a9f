// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace swapmm::test {

/// Allocations by operator new in this thread since it began.
[[nodiscard]] std::uint64_t allocations();

/// Lets the n-th allocation of this thread from now on fail, counted from 1; nothing fails once it ends. Scopes do not
/// nest.
class FailingNew {
 public:
  /// Called where an allocation fails; may allocate. How many allocations later the next one fails; 0: none does.
  using Next = std::uint64_t (*)(void* context);

  /// Without `next` only that one fails.
  explicit FailingNew(std::uint64_t n, Next next = nullptr, void* context = nullptr);
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  ~FailingNew();

  /// In place of what was to fail: the n-th one from now on; 0: none.
  static void fail_in(std::uint64_t n);
  [[nodiscard]] bool fired() const;
};

/// For as long as it lives, allocations of this thread do not count and do not fail: those of a test amid the
/// library's.
class UncountedAllocations {
 public:
  UncountedAllocations();
  UncountedAllocations(const UncountedAllocations&) = delete;
  UncountedAllocations& operator=(const UncountedAllocations&) = delete;
  ~UncountedAllocations();

 private:
  bool before_;
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
