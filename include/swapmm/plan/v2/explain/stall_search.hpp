// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/long_run/turn.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/waits.hpp>

namespace swapmm::v2::explaining {

/// Finds what the elements of engines wait for.
class StallSearch {
 public:
  /// Keeps references to all of them. The elements are those of a plan: operations, commands, the end of the iteration.
  StallSearch(const Plan& plan, const std::vector<simulation::Element>& elements, const simulation::Waits& waits,
              const long_run::Turn& turn);

  struct Cause {
    const simulation::ElementRun* run = nullptr;
    std::optional<std::uint32_t> room;  ///< the `release` that waits for the run
  };
  /// What ends when this run starts: a run that takes time, on another engine than `run`. Follows what takes no time.
  /// None if it is not in the turn, or if more than 10,000 elements are on the ways to it.
  [[nodiscard]] std::optional<Cause> cause_of(const simulation::ElementRun& run) const;

 private:
  [[nodiscard]] bool releases(std::uint32_t element) const;
  [[nodiscard]] const simulation::ElementRun* find(std::uint32_t element, std::size_t iteration) const;

  const Plan& plan_;
  const std::vector<simulation::Element>& elements_;
  const simulation::Waits& waits_;
  std::map<std::pair<std::uint32_t, std::size_t>, const simulation::ElementRun*> runs_;
};

}  // namespace swapmm::v2::explaining
