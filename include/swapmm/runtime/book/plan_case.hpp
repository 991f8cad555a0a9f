// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

namespace swapmm::runtime {

/// One cycle of iterations that has a plan, what was measured of it, and which way is the faster one. A *round* is one
/// run of the cycle.
struct PlanCase {
  std::vector<std::uint64_t> members;  ///< sequences of the cycle
  FollowablePtr plan;                  ///< the newest, or the one that was gone back to
  PlanState state = PlanState::settled;
  RoundTimes times;                       ///< of plan; where it was left, those of then
  std::chrono::nanoseconds predicted{0};  ///< of plan, by what is known now

  // While plan is on trial.
  FollowablePtr before;     ///< what is followed again if it loses; null: on demand
  RoundTimes before_times;  ///< of that
  std::chrono::nanoseconds before_predicted{0};

  bool checking = false;  ///< the program runs on demand for some rounds, to know what that takes

  FollowablePtr lost;  ///< the plan that lost a trial last

  // When to measure.
  std::size_t rounds = 0;           ///< of the trial, or since the last sample
  std::size_t members_sampled = 0;  ///< on demand: members of the cycle that were observed since it was due

  // When to plan anew: at most once in `patience` samples, a number that doubles while that wins nothing.
  std::size_t samples = 0;  ///< since the last time
  std::size_t patience = 1;

  /// What is to be followed; null: nothing.
  [[nodiscard]] FollowablePtr choice() const { return state == PlanState::left || checking ? nullptr : plan; }
  [[nodiscard]] bool knows(const FollowablePtr& other) const {
    return other != nullptr && (other == plan || other == before || other == lost);
  }

  /// Another plan takes the place of this one; `trial`: if it is the faster one.
  void try_out(FollowablePtr next, bool trial) {
    before = choice();
    before_times = times;
    before_predicted = predicted;
    if (before == nullptr) before_times.clear();
    predicted = next->plan.predicted.iteration;
    plan = std::move(next);
    state = trial ? PlanState::on_trial : PlanState::settled;
    if (!trial) before = nullptr;
    checking = false;
    times.clear();
    rounds = 0;
  }
  void keep() {
    state = PlanState::settled;
    before = nullptr;
    checking = false;
    rounds = 0;
  }
  /// Back to what was before.
  void go_back() {
    lost = plan;
    checking = false;
    rounds = 0;
    members_sampled = 0;
    if (before == nullptr) {
      state = PlanState::left;
      return;
    }
    plan = std::move(before);
    before = nullptr;
    times = before_times;
    predicted = before_predicted;
    state = PlanState::settled;
  }
};

/// What is known for one budget.
struct PlanSet {
  struct Cycle {
    std::vector<std::uint64_t> members;  ///< sequence ids; it has a plan, or none could be made or followed
    std::string refusal{};               ///< why none is followed; empty: it has or had a plan, or waits for one
  };
  Bytes budget;
  std::vector<PlanCase> cases;  ///< last used first
  std::vector<Cycle> cycles;
};

/// More than noise apart: `time` is above `other` by more than 1 %.
[[nodiscard]] constexpr bool slower(std::chrono::nanoseconds time, std::chrono::nanoseconds other) {
  return static_cast<double>(time.count()) > 1.01 * static_cast<double>(other.count());
}

}  // namespace swapmm::runtime
