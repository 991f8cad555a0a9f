// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include <swapmm/plan/v2/long_run/turn.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>

namespace swapmm::v2::explaining {

/// How copies share capacities in a turn.
class Sharing {
 public:
  Sharing(const Machine& machine, const std::vector<simulation::Element>& elements, const long_run::Turn& turn);

  /// Time in which copies use all of each capacity, in the whole turn.
  [[nodiscard]] const std::vector<simulation::Time>& full() const { return full_; }
  /// The capacity that limits an element's copies for the longest time; none if none ever does.
  [[nodiscard]] std::optional<CapacityId> limit_of(std::uint32_t element) const;

 private:
  struct Limited {
    CapacityId capacity{};
    simulation::Time time = 0;
  };
  void add(const std::vector<std::uint32_t>& flowing, const std::vector<LinkId>& links,
           const std::vector<std::uint64_t>& rates, simulation::Time time);

  const Machine& machine_;
  std::vector<simulation::Time> full_;
  std::unordered_map<std::uint32_t, std::vector<Limited>> limited_;  // by element
  struct Load {
    std::uint64_t rate = 0;     // of all its copies
    std::uint64_t fastest = 0;  // of one of them
    std::uint64_t copies = 0;
  };
  std::vector<Load> loads_;  // of each capacity; 0 between calls of add()
};

/// How long a copy takes that shares nothing.
[[nodiscard]] simulation::Time time_alone(const Machine& machine, const simulation::Element& copy);

}  // namespace swapmm::v2::explaining
