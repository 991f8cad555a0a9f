// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/fair_rates.hpp>

namespace swapmm::v2::simulation {

/// The copies that flow, and what is left of them.
class Flows {
 public:
  explicit Flows(const Machine& machine) : rates_of_(machine) {}

  /// The element's copy begins to flow. `bytes` are above 0. settle() gives it a rate.
  void begin(std::uint32_t element, LinkId link, Bytes bytes);
  /// Adds the copies that end at `now` to `ended`, and forgets them. `now` is not above next_end().
  void take_ended(Time now, std::vector<std::uint32_t>& ended);
  /// Makes the rates new if a copy has begun or ended. To be called when everything at time `now` has happened.
  void settle(Time now);

  /// When the next copy ends; none if no copy flows. Valid after settle().
  [[nodiscard]] std::optional<Time> next_end() const { return next_end_; }

  /// Calls visit(element, work that is left) for each copy that flows. Valid after settle(now).
  template <class Visit>
  void for_each_left(Time now, Visit visit) const {
    for (std::size_t i = 0; i < copies_.size(); ++i) visit(copies_[i].element, left_at(i, now));
  }

 private:
  struct Copy {
    std::uint32_t element;
    Work left;  // at time since_
  };

  [[nodiscard]] Work left_at(std::size_t copy, Time now) const;
  void go_on_to(Time now);

  FairRates rates_of_;
  std::vector<Copy> copies_;
  std::vector<LinkId> links_;         // of each copy
  std::vector<std::uint64_t> rates_;  // of each copy; 0 before the first settle()
  Time since_ = 0;
  std::optional<Time> next_end_;
  bool changed_ = false;
};

}  // namespace swapmm::v2::simulation
