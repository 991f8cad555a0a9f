// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <swapmm/base/ids.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// What may leave each memory, in an order that changes as tensors are used: the smallest key leaves first. Each change
/// takes the logarithm of what is there, for each memory where the tensor is.
class Victims {
 public:
  Victims(std::size_t tensors, std::size_t memories) : keys_(tensors, 0), by_key_(memories) {}

  void add(TensorId tensor, MemoryId memory) { by_key_[index(memory)].emplace(keys_[index(tensor)], tensor); }
  void remove(TensorId tensor, MemoryId memory) { by_key_[index(memory)].erase({keys_[index(tensor)], tensor}); }
  void set_key(TensorId tensor, std::uint64_t key) {
    std::uint64_t& known = keys_[index(tensor)];
    for (std::set<Entry>& entries : by_key_) {
      if (entries.erase({known, tensor}) > 0) entries.emplace(key, tensor);
    }
    known = key;
  }
  /// The first one that `may_leave`; none if no one may.
  template <class MayLeave>
  [[nodiscard]] std::optional<TensorId> first(MemoryId memory, MayLeave&& may_leave) const {
    for (const auto& [key, tensor] : by_key_[index(memory)]) {
      if (may_leave(tensor)) return tensor;
    }
    return std::nullopt;
  }

 private:
  using Entry = std::pair<std::uint64_t, TensorId>;

  std::vector<std::uint64_t> keys_;      // of each tensor
  std::vector<std::set<Entry>> by_key_;  // of each memory
};

}  // namespace swapmm::v2::planning
