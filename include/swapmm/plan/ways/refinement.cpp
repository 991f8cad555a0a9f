// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/refinement.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/ways/changes.hpp>
#include <swapmm/plan/ways/checkpoints.hpp>
#include <swapmm/plan/ways/program/written.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

constexpr double rise = 2;           // a price is so many times as high the next time
constexpr int most_raises = 6;       // in a row, while the choice stays the same
constexpr double looked_at = 0.9;    // of the stalled time, the longest stalls first
constexpr double negligible = 1e-3;  // stalled time, as a part of the iteration
constexpr int most_known = 1000;     // changes in a row that were planned for already

BestOptions quick_options(const WaysOptions& options, bool is_small) {
  constexpr std::size_t quicker = 16;
  BestOptions quick = options.best;
  quick.bound.usual = quick.bound.long_traces = is_small ? options.planned.change_bound : options.close_rating;
  quick.annealing.work /= quicker;
  quick.annealing.most_tries /= quicker;
  quick.parts.packings = 2;
  quick.places.looks /= quicker;
  quick.others.on = false;
  return quick;
}

}  // namespace

WayRefinement::WayRefinement(const Trace& trace, const ValueHistory& history, WayChoice& choice,
                             const PlanningCase& planning, const WayRating& rating, const WaysOptions& options,
                             const PlanningOptions& limits)
    : trace_(trace),
      history_(history),
      choice_(choice),
      planning_(planning),
      rating_(rating),
      options_(options),
      limits_(limits),
      quick_(quick_options(options, changes_of(trace, options.planned) > 0)),
      most_tries_(std::min(options.planned.work / std::max<std::size_t>(trace.operations.size(), 1),
                           options.planned.most_tries)),
      changes_left_(changes_of(trace, options.planned)) {}

std::optional<RefinedWays> WayRefinement::run(const Candidate& first, const WayCriteria& criteria,
                                              std::vector<Candidate> others) {
  if (!has_tries()) return std::nullopt;
  ++tries_;
  best_ = plan(first);
  for (const double factor : options_.planned.price_factors) follow_stalls(criteria, factor);
  if (best_ == nullptr) return std::nullopt;
  plan_others(std::move(others));
  plan_checkpoints();
  change_at_random();
  leave_out();
  return RefinedWays{std::move(best_->choice), best_->run->plan()};
}

std::unique_ptr<TurnOfBest> WayRefinement::plan(Candidate candidate, std::optional<nanoseconds> most) {
  planned_.push_back(candidate.ways);
  Result<WrittenTrace> written = with_ways(trace_, history_, candidate.ways);
  if (!written) return nullptr;
  auto turn = std::make_unique<TurnOfBest>(std::move(candidate));
  if (turn->begin(*std::move(written), planning_.machine, quick_, limits_)) return nullptr;
  turn->choice.relaxed = std::max(turn->choice.relaxed, turn->run->lower_bound());
  turn->choice.is_close = true;
  if (best_ != nullptr && turn->choice.relaxed > best_->run->reached()) return nullptr;
  if (most) turn->run->give_up_above(*most);
  turn->run->run(1);
  return turn;
}

bool WayRefinement::offer(std::unique_ptr<TurnOfBest> turn) {
  if (best_ != nullptr && turn->run->reached() > best_->run->reached()) return false;
  best_ = std::move(turn);
  return true;
}

void WayRefinement::follow_stalls(WayCriteria criteria, double factor) {
  // Some tries are left for what comes afterwards.
  const std::size_t end = tries_ + std::max<std::size_t>(2, most_tries_ / 6);
  criteria.copy_price *= factor;
  criteria.dearer.assign(trace_.tensors.size(), 1.0);
  WaysBack ways = choice_.choose(criteria);
  while (tries_ < end && has_tries()) {
    std::vector<TensorId> waited;
    if (best_ != nullptr && ways == best_->choice.ways) {
      waited = waited_for(*best_);
    } else {
      if (std::ranges::find(planned_, ways) != planned_.end()) return;
      const nanoseconds relaxed = rating_.quick(ways);
      if (best_ != nullptr && relaxed >= best_->run->reached()) return;
      ++tries_;
      std::unique_ptr<TurnOfBest> turn = plan({ways, relaxed});
      if (turn == nullptr) return;
      waited = waited_for(*turn);
      offer(std::move(turn));
    }
    const WaysBack before = ways;
    for (int raises = 0; !waited.empty() && raises < most_raises && ways == before; ++raises) {
      for (const TensorId tensor : waited) criteria.dearer[index(tensor)] *= rise;
      ways = choice_.choose(criteria);
    }
    if (ways == before) return;
  }
}

std::vector<TensorId> WayRefinement::waited_for(const TurnOfBest& turn) const {
  const Plan& plan = turn.run->plan();
  const std::vector<Stall> stalls = find_stalls(turn.trace, plan);
  nanoseconds sum{0};
  for (const Stall& stall : stalls) sum += stall.time;
  const auto stalled = static_cast<double>(sum.count());
  std::vector<TensorId> tensors;
  if (stalled <= negligible * static_cast<double>(turn.run->reached().count())) return tensors;
  nanoseconds seen{0};
  for (const Stall& stall : stalls) {
    if (static_cast<double>(seen.count()) > looked_at * stalled) break;
    seen += stall.time;
    if (!stall.copy) continue;
    TensorId tensor = plan.commands[index(*stall.copy)].tensor;
    if (index(tensor) >= trace_.tensors.size()) tensor = turn.encoded[index(tensor) - trace_.tensors.size()].tensor;
    if (std::ranges::find(tensors, tensor) == tensors.end()) tensors.push_back(tensor);
  }
  return tensors;
}

bool WayRefinement::goes_on_changing() const {
  return changes_left_ > 0 &&
         (!limits_.go_on || limits_.go_on(PlanningProgress{.part = options_.planned.changes_within}));
}

void WayRefinement::plan_others(std::vector<Candidate> others) {
  std::ranges::stable_sort(others, {}, &Candidate::relaxed);
  for (Candidate& other : others) {
    if (!goes_on_changing()) return;
    if (other.relaxed <= best_->run->reached()) try_ways(std::move(other));
  }
}

void WayRefinement::plan_checkpoints() {
  if (changes_left_ == 0) return;
  const CheckpointChoice choice(trace_, history_, planning_, options_.planned.most_kept);
  for (std::size_t kept = 0; kept <= choice.most_kept() && goes_on_changing(); ++kept) {
    try_ways({{choice.choose(kept), {}, {}}});
  }
}

void WayRefinement::change_at_random() {
  WayChanges changes(trace_, history_, planning_);
  if (changes.empty()) return;
  for (int known = 0; known < most_known && goes_on_changing(); ++known) {
    WaysBack changed = changes.change(best_->choice.ways);
    if (std::ranges::find(planned_, changed) != planned_.end()) continue;
    known = 0;
    try_ways({std::move(changed)});
  }
}

void WayRefinement::try_ways(Candidate candidate) {
  if (std::ranges::find(planned_, candidate.ways) != planned_.end()) return;
  --changes_left_;
  std::unique_ptr<TurnOfBest> turn = plan(std::move(candidate), best_->run->reached());
  if (turn != nullptr) offer(std::move(turn));
}

void WayRefinement::leave_out() {
  int ratings = 0;
  leave_ways_out(
      best_->choice.ways, [&] { return ratings++ < options_.omissions && has_tries(); },
      [&](const WaysBack& fewer) {
        const nanoseconds relaxed = rating_.quick(fewer);
        if (relaxed > best_->run->reached()) return false;
        ++tries_;
        std::unique_ptr<TurnOfBest> turn = plan({fewer, relaxed});
        return turn != nullptr && offer(std::move(turn));
      });
}

}  // namespace swapmm::planning
