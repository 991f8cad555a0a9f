// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/timing/round_times.hpp>

namespace swapmm::runtime {

/// A cycle of iterations that has a plan, with its measurements and the choice between the plan and its alternatives. A
/// *round* is one run of the cycle.
struct PlanCase {
  std::vector<std::uint64_t> members;  ///< sequence ids of the cycle
  FollowablePtr plan;                  ///< the newest plan, or the one that was returned to
  PlanState state = PlanState::settled;
  RoundTimes times;                       ///< measured with `plan`; kept if `plan` was left
  std::chrono::nanoseconds predicted{0};  ///< for `plan`, by the durations and links known now

  // Used while `plan` is on trial.
  FollowablePtr before;     ///< the plan to return to if `plan` loses; null: on demand
  RoundTimes before_times;  ///< measured with `before`
  std::chrono::nanoseconds before_predicted{0};

  /// What copies of the trace's tensors seem to move by the last sample, if their values are encoded; empty: as
  /// observed.
  std::vector<std::optional<Bytes>> copied{};

  bool measured_again = false;  ///< its rounds are timed, to compare a joint plan with it
  bool checking = false;        ///< the program runs on demand for some rounds, to measure how long that takes

  FollowablePtr lost;  ///< the plan that lost the last trial

  // Used to decide when to measure.
  std::size_t rounds = 0;           ///< rounds of the trial, or since the last sample
  std::size_t members_sampled = 0;  ///< on demand: members of the cycle observed since a sample was due

  // Used to decide when to plan again: at most once in `patience` samples. `patience` doubles each time that gains
  // nothing.
  std::size_t samples = 0;  ///< since the plan was last remade
  std::size_t patience = 1;

  // Used to notice that the program has changed into one with the same beginning.
  bool started = false;          ///< the plan was started, and no round with it has ended since
  std::size_t false_starts = 0;  ///< how often in a row the program diverged in the first round

  // Used to notice that its starts do not pay: see ProgramBook::left().
  std::chrono::nanoseconds start_cost{0};  ///< of the last start: of copies that would not have been made on demand
  std::size_t since_start = 0;             ///< iterations that followed the plan since then
  std::size_t unpaid_starts = 0;           ///< so many starts in a row cost more than was saved by following the plan

  // Used where programs branch: see ProgramBook::diverged().
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  std::size_t awaited = 0;  ///< how often its cycle must be seen before it is offered, in iterations; or never
  std::size_t seen = 0;     ///< iterations with which its cycle was seen since the plan was made
  bool trusted = false;     ///< it is not awaited: it was given, or a plan of its cycle has won a trial before

  /// Whether that sequence is part of the cycle.
  [[nodiscard]] bool has(std::uint64_t sequence) const {
    return std::find(members.begin(), members.end(), sequence) != members.end();
  }
  /// The plan to follow; null: none.
  [[nodiscard]] FollowablePtr choice() const { return state == PlanState::left || checking ? nullptr : plan; }
  /// The plan to start if an iteration begins like its cycle; null: none. A plan whose last two starts were false is
  /// not offered, nor one whose cycle must be seen more often before.
  [[nodiscard]] FollowablePtr offered() const { return false_starts < 2 && awaited == 0 ? choice() : nullptr; }

  /// Replaces the plan by `next`. If `trial` is set, `next` is on trial: it is kept only if it is not slower.
  void try_out(FollowablePtr next, bool trial) {
    before = choice();
    before_times = times;
    before_predicted = predicted;
    predicted = next->plan.predicted.iteration;
    plan = std::move(next);
    copied.clear();
    state = trial ? PlanState::on_trial : PlanState::settled;
    if (!trial) before = nullptr;
    measured_again = false;
    checking = false;
    times.clear();
    rounds = 0;
  }
  void keep() {
    state = PlanState::settled;
    awaited = 0;
    before = nullptr;
    checking = false;
    rounds = 0;
  }
  /// Keeps a plan that took so long on trial. If that is no gain over the time before, the next plan is made later.
  void keep(std::chrono::nanoseconds took, std::optional<std::chrono::nanoseconds> time_before) {
    if (time_before && !slower(*time_before, took)) {
      lose_patience();
    } else {
      patience = 1;
    }
    keep();
  }
  /// The next plan is made later.
  void lose_patience() {
    constexpr std::size_t most = std::size_t{1} << 20U;
    patience = std::min(2 * patience, most);
  }
  /// Returns to the previous plan, or to on demand if there is none.
  void go_back() {
    lost = plan;
    checking = false;
    rounds = 0;
    members_sampled = 0;
    if (before == nullptr) {
      state = PlanState::left;
      return;
    }
    plan = std::exchange(before, nullptr);
    copied.clear();
    times = before_times;
    predicted = before_predicted;
    state = PlanState::settled;
  }
};

/// True if `a` is a rotation of `b`: a cycle has no fixed first member.
[[nodiscard]] inline bool same_cycle(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t turn = 0; turn < a.size(); ++turn) {
    bool same = true;
    for (std::size_t i = 0; i < a.size(); ++i) same = same && a[(i + turn) % a.size()] == b[i];
    if (same) return true;
  }
  return false;
}

/// The memory that plans are made for.
struct PlanBudget {
  PlanBudget(Bytes on_device, const NeighbourBytes& on_neighbours = {})  // NOLINT(google-explicit-constructor)
      : device(on_device), neighbours(on_neighbours) {}
  Bytes device;
  NeighbourBytes neighbours;

  friend bool operator==(const PlanBudget&, const PlanBudget&) = default;
};

/// The plans and cycles known for one budget.
struct PlanSet {
  struct Cycle {
    std::vector<std::uint64_t> members;  ///< sequence ids; the cycle has a plan, or none could be made or followed
    std::string refusal{};               ///< why no plan is followed; empty: it has or had a plan, or waits for one
  };
  /// A cycle that was looked for in the plan store. Its key can change with what the host reads.
  struct Lookup {
    std::vector<std::uint64_t> members;
    std::string key;
  };
  PlanBudget budget{Bytes{}};
  std::vector<PlanCase> cases;  ///< last used first
  std::vector<Cycle> cycles;
  std::vector<Lookup> lookups{};  ///< newest last

  [[nodiscard]] bool has_cycle(std::span<const std::uint64_t> members) const {
    return std::any_of(cycles.begin(), cycles.end(),
                       [&](const Cycle& cycle) { return same_cycle(cycle.members, members); });
  }
  [[nodiscard]] bool was_looked_for(std::span<const std::uint64_t> members) const {
    return std::any_of(lookups.begin(), lookups.end(), [&](const Lookup& lookup) {
      return std::equal(lookup.members.begin(), lookup.members.end(), members.begin(), members.end());
    });
  }
};

}  // namespace swapmm::runtime
