// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/values/address_book.hpp>

namespace swapmm::runtime {

/// Tells when a followed plan must be left so that addresses can be forgotten: its operations use parts of tensors in
/// ever new places, such as a cache that grows, and each has an address.
template <Backend B>
class PlanAddresses {
 public:
  explicit PlanAddresses(AddressBook<B>& book) : book_(book) {}

  /// A plan has started, and has all addresses of its own.
  void plan_started() noexcept {
    book_.allow_for(std::max(book_.size(), allowed_));
    iterations_ = 0;
  }
  /// Called between two iterations. If it is true, the plan is left and unused addresses are forgotten.
  [[nodiscard]] bool are_too_many() noexcept {
    ++iterations_;
    if (!book_.is_crowded()) return false;
    // Those of a few iterations may be all that there are: the plan may have twice as many next time.
    allowed_ = iterations_ < few_iterations ? book_.size() : 0;
    return true;
  }

 private:
  static constexpr std::size_t few_iterations = 64;

  AddressBook<B>& book_;
  std::size_t iterations_ = 0;  // since the plan started
  std::size_t allowed_ = 0;     // not yet too many
};

}  // namespace swapmm::runtime
