// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/refinement.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include <swapmm/plan/bound.hpp>
#include <swapmm/plan/stalls.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

constexpr double dearer = 2;         // so many times as high is a price the next time
constexpr int most_raises = 6;       // in a row, while the choice stays the same
constexpr double looked_at = 0.9;    // of the stalled time, the longest stalls first
constexpr double negligible = 1e-3;  // stalled time, as a part of the iteration

}  // namespace

BestOptions WayRefinement::quick_options(const WaysOptions& options) {
  constexpr std::size_t quicker = 16;
  BestOptions quick = options.best;
  quick.bound.usual = quick.bound.long_traces = options.rating;
  quick.annealing.work /= quicker;
  quick.annealing.most_tries /= quicker;
  quick.parts.packings = 1;
  quick.places.looks /= quicker;
  quick.others.on = false;
  return quick;
}

std::optional<Candidate> WayRefinement::run(const Candidate& first, double price) {
  if (has_tries()) best_ = plan(first.ways);
  for (const double times : options_.planned.prices) follow_stalls(price * times);
  if (best_ == nullptr) return std::nullopt;
  leave_out();
  return std::move(best_->choice);
}

bool WayRefinement::has_tries() const {
  const std::size_t most = options_.planned.work / std::max<std::size_t>(trace_.operations.size(), 1);
  return tries_ < std::min(most, options_.planned.most_tries) && (!limits_.go_on || limits_.go_on({}));
}

std::unique_ptr<TurnOfBest> WayRefinement::plan(WaysBack ways) {
  Result<WrittenTrace> written = with_ways(trace_, history_, ways);
  if (!written) return nullptr;
  const Result<nanoseconds> relaxed = lower_bound(written->trace, planning_.machine, options_.rating);
  if (!relaxed || (best_ != nullptr && *relaxed >= best_->run->reached())) return nullptr;
  ++tries_;
  auto turn = std::make_unique<TurnOfBest>(Candidate{std::move(ways), *relaxed});
  if (turn->begin(*std::move(written), planning_.machine, quick_, limits_)) return nullptr;
  turn->run->run(1);
  return turn;
}

void WayRefinement::follow_stalls(double price) {
  WayCriteria criteria{.copy_price = price};
  criteria.dearer.assign(trace_.tensors.size(), 1.0);
  WaysBack ways = choice_.choose(criteria);
  while (has_tries()) {
    std::unique_ptr<TurnOfBest> turn = plan(ways);
    if (turn == nullptr) return;
    bool is_other = false;
    for (int raises = 0; !is_other && raises < most_raises && raise_prices(*turn, criteria.dearer); ++raises) {
      WaysBack next = choice_.choose(criteria);
      is_other = next != ways;
      ways = std::move(next);
    }
    if (best_ == nullptr || turn->run->reached() < best_->run->reached()) best_ = std::move(turn);
    if (!is_other) return;
  }
}

bool WayRefinement::raise_prices(const TurnOfBest& turn, std::vector<double>& prices) const {
  const Plan& plan = turn.run->plan();
  const std::vector<Stall> stalls = find_stalls(turn.trace, plan);
  nanoseconds sum{0};
  for (const Stall& stall : stalls) sum += stall.time;
  const auto stalled = static_cast<double>(sum.count());
  if (stalled <= negligible * static_cast<double>(turn.run->reached().count())) return false;
  std::vector<bool> is_raised(prices.size());
  nanoseconds seen{0};
  for (const Stall& stall : stalls) {
    if (static_cast<double>(seen.count()) > looked_at * stalled) break;
    seen += stall.time;
    if (!stall.copy) continue;
    std::size_t tensor = index(plan.commands[index(*stall.copy)].tensor);
    if (tensor >= prices.size()) tensor = index(turn.encoded[tensor - prices.size()].tensor);
    if (!is_raised[tensor]) prices[tensor] *= dearer;
    is_raised[tensor] = true;
  }
  return true;
}

void WayRefinement::leave_out() {
  std::size_t length = (size_of(best_->choice.ways) + 3) / 4;
  for (std::size_t first = 0; length > 0 && has_tries();) {
    const std::size_t size = size_of(best_->choice.ways);
    if (size == 0) return;
    if (first >= size) {
      first = 0;
      length /= 2;
      continue;
    }
    std::unique_ptr<TurnOfBest> turn = plan(without(best_->choice.ways, first, first + length));
    if (turn != nullptr && turn->run->reached() <= best_->run->reached()) {
      best_ = std::move(turn);
    } else {
      first += length;
    }
  }
}

}  // namespace swapmm::planning
