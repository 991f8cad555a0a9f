// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <swapmm/plan/packing.hpp>

namespace swapmm::planning::packing {

/// The remaining effort of the searches of one packing, and the function that may end them.
class Budget {
 public:
  explicit Budget(const PackingEffort& effort)
      : go_on_(effort.ejection_steps > 0 ? effort.go_on : nullptr),
        steps_left_(is_unlimited(effort) ? unlimited : effort.ejection_steps),
        work_left_(is_unlimited(effort) ? unlimited : effort.ejection_steps * most_work_per_step) {}

  [[nodiscard]] bool is_spent() const { return steps_left_ == 0 || work_left_ == 0; }
  [[nodiscard]] std::uint64_t steps_left() const { return steps_left_; }

  /// Counts a step that examined `work` elements, a few nanoseconds each.
  void spend(std::uint64_t work) {
    --steps_left_;
    spend_work(work);
  }
  void spend_work(std::uint64_t work) {
    work_left_ -= std::min(work, work_left_);
    if (!go_on_) return;
    until_asked_ -= std::min(work, until_asked_);
    if (until_asked_ > 0) return;
    until_asked_ = work_between_questions;
    if (!(*go_on_)()) steps_left_ = 0;
  }

 private:
  [[nodiscard]] static bool is_unlimited(const PackingEffort& effort) {
    return effort.ejection_steps > 0 && effort.go_on && !effort.keeps_to_steps;
  }
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max() / 2;
  static constexpr std::uint64_t most_work_per_step = 2048;
  static constexpr std::uint64_t work_between_questions = 200'000;

  const std::function<bool()>* go_on_;
  std::uint64_t steps_left_;
  std::uint64_t work_left_;
  std::uint64_t until_asked_ = work_between_questions;
};

}  // namespace swapmm::planning::packing
