// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <swapmm/swapmm.h>
#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/runtime/values/record.hpp>

namespace swapmm::c_interface {

/// A number that this process has not used for a tensor yet, below 2^40. Throws UsageError after that many.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::uint64_t new_tensor_number();
/// The error if a manager has no tensor of that number.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError no_such_tensor(swapmm_tensor tensor, const std::string& where);
/// The error if a manager has as many tensors as the interface allows.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT UsageError too_many_tensors();

/// The tensors of one manager by their numbers. The low bits of a number say where the tensor is in the table, the high
/// bits are never used again, so a number finds its own tensor or none. May be used by several threads.
template <Backend B>
class TensorTable {
 public:
  using Key = runtime::TensorKey<B>;
  static constexpr unsigned position_bits = 24;

  /// Makes room for one more tensor, so that add() does not throw.
  void reserve() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) return;
    if (slots_.size() >> position_bits != 0) throw too_many_tensors();
    if (free_.capacity() <= slots_.size()) free_.reserve(2 * slots_.size() + 16);
    slots_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }

  swapmm_tensor add(std::uint64_t number, const Key& tensor) noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint32_t position = free_.back();
    free_.pop_back();
    const swapmm_tensor id = number << position_bits | position;
    slots_[position] = {id, tensor};
    return id;
  }

  /// Throws UsageError if there is no such tensor. `where` says which argument it is, and is called only then.
  template <class Where>
  [[nodiscard]] Key find(swapmm_tensor id, Where&& where) const {
    const std::lock_guard lock(mutex_);
    const std::size_t position = position_of(id);
    if (position == slots_.size()) throw no_such_tensor(id, where());
    return slots_[position].tensor;
  }

  [[nodiscard]] Key remove(swapmm_tensor id) {
    const std::lock_guard lock(mutex_);
    const std::size_t position = position_of(id);
    if (position == slots_.size()) throw no_such_tensor(id, "swapmm_tensor_destroy()");
    slots_[position].id = 0;
    free_.push_back(static_cast<std::uint32_t>(position));  // it has had room there
    return slots_[position].tensor;
  }

 private:
  struct Slot {
    swapmm_tensor id = 0;  // 0: free
    Key tensor;
  };

  [[nodiscard]] std::size_t position_of(swapmm_tensor id) const {
    const std::size_t position = id & ((std::uint64_t{1} << position_bits) - 1);
    return id != 0 && position < slots_.size() && slots_[position].id == id ? position : slots_.size();
  }

  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;  // has room for all of them
};

}  // namespace swapmm::c_interface
