// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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
