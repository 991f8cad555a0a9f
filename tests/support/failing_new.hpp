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

}  // namespace swapmm::test
