// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <swapmm/plan/ways/choices.hpp>
#include <swapmm/plan/ways/history.hpp>
#include <swapmm/plan/ways/turn.hpp>

namespace swapmm::planning {

/// Improves a choice of ways by plans for it: a quick round of `best` each.
///
/// The relaxed problem rates ways as if values could go in parts and found room everywhere. Where few large tensors
/// have room, its plans wait for copies that it does not see. So the prices of the values that a plan waits for rise,
/// until it waits for none, or has no other way for them. Then ways are left out whose absence makes the plan no
/// slower.
class WayRefinement {
 public:
  /// Refers to all arguments.
  WayRefinement(const Trace& trace, const ValueHistory& history, WayChoice& choice, const PlanningCase& planning,
                const WaysOptions& options, const PlanningOptions& limits)
      : trace_(trace),
        history_(history),
        choice_(choice),
        planning_(planning),
        options_(options),
        limits_(limits),
        quick_(quick_options(options)) {}

  /// Begins with `first`, with `price` per byte for all values, and with parts and multiples of that price. Returns the
  /// choice with the fastest plan; none if there is no plan, or no time.
  [[nodiscard]] std::optional<Candidate> run(const Candidate& first, double price);

 private:
  [[nodiscard]] static BestOptions quick_options(const WaysOptions& options);
  /// A plan for the ways, which counts as a try. Null if there is none that can be faster than the fastest one.
  [[nodiscard]] std::unique_ptr<TurnOfBest> plan(WaysBack ways);
  [[nodiscard]] bool has_tries() const;
  void follow_stalls(double price);
  void leave_out();
  /// Raises the prices of what the plan waits for. Returns false if it waits for nothing that counts.
  [[nodiscard]] bool raise_prices(const TurnOfBest& turn, std::vector<double>& prices) const;

  const Trace& trace_;
  const ValueHistory& history_;
  WayChoice& choice_;
  const PlanningCase& planning_;
  const WaysOptions& options_;
  const PlanningOptions& limits_;
  BestOptions quick_;
  std::size_t tries_ = 0;
  std::unique_ptr<TurnOfBest> best_;
};

}  // namespace swapmm::planning
