// SPDX-License-Identifier: Apache-2.0
#include <swapmm/c_interface/tensor_table.hpp>

#include <atomic>

namespace swapmm::c_interface {

std::uint64_t new_tensor_number() {
  static std::atomic<std::uint64_t> used{0};
  const std::uint64_t number = used.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number >> 40U != 0) throw UsageError("this process has made 2^40 tensors, as many as there are numbers");
  return number;
}

UsageError no_such_tensor(swapmm_tensor tensor, const std::string& where) {
  const std::string which = tensor == 0 ? "tensor 0 is no tensor"
                                        : "this manager has no tensor " + std::to_string(tensor) +
                                              ": it was destroyed, or belongs to another manager";
  return UsageError(where + ": " + which);
}

UsageError too_many_tensors() { return UsageError("a manager has at most 2^24 tensors at the same time"); }

}  // namespace swapmm::c_interface
