// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace swapmm::planning {

/// Collects changes of the bytes that ranges of operations hold, and makes them all at once.
class HeldChanges {
 public:
  explicit HeldChanges(std::vector<std::int64_t>& held) : held_(held), change_(2 * held.size() + 1) {}

  /// Operations from n on belong to the next iteration; `end` is at most 2n.
  void add(std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
    change_[first] += bytes;
    change_[end] -= bytes;
  }
  void make() {
    std::int64_t more = 0;
    for (std::size_t slot = 0; slot < 2 * held_.size(); ++slot) {
      more += change_[slot];
      held_[slot % held_.size()] += more;
    }
  }

 private:
  std::vector<std::int64_t>& held_;
  std::vector<std::int64_t> change_;
};

}  // namespace swapmm::planning
