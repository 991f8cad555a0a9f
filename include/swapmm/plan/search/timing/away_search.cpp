// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/timing/away_search.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <tuple>
#include <utility>

namespace swapmm::planning {

AwaySearch::AwaySearch(SwapTiming& timing, const RelaxedSwaps& relaxed, const RoundingOptions& rounding,
                       const AnnealingOptions& annealing)
    : timing_(timing), relaxed_(relaxed), rounding_(rounding), annealing_(annealing), wish_(timing.absences()) {
  for (std::uint32_t a = 0; a < timing.absences(); ++a) {
    if (!timing.is_arrival(a) && timing.length(a) > 0 && timing.size(a) > 0) free_.push_back(a);
  }
  if (timing.has_stores()) {
    for (std::uint32_t k = 0; k < timing.kept_values(); ++k) {
      if (!timing.is_fixed(k) && timing.size_of_kept(k) > 0) movable_.push_back(k);
    }
  }
  const auto n = static_cast<std::uint32_t>(relaxed.time.size());
  by_first_ = free_;
  std::sort(by_first_.begin(), by_first_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(timing.first(a) % n, a) < std::tuple(timing.first(b) % n, b);
  });
}

double AwaySearch::chance() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }

/// Makes room at operations that are over their limits: of the tensors that stay there, those with the largest wish go
/// out. Returns false if that does not suffice.
bool AwaySearch::make_room(double noise) {
  if (timing_.largest_overrun() <= 0) return true;
  const auto n = static_cast<std::uint32_t>(relaxed_.time.size());
  std::priority_queue<std::pair<double, std::uint32_t>> staying;
  const auto consider = [&](std::uint32_t a) {
    if (timing_.away()[a] == 0) staying.emplace(wish_[a] + noise * chance(), a);
  };
  for (const std::uint32_t a : free_) {
    if (timing_.first(a) % n + timing_.length(a) > n) consider(a);  // those that hold room at operation 0
  }
  auto next = by_first_.begin();
  for (std::uint32_t i = 0; i < n; ++i) {
    for (; next != by_first_.end() && timing_.first(*next) % n == i; ++next) consider(*next);
    while (timing_.overrun(i) > 0) {
      if (staying.empty()) return false;
      const std::uint32_t a = staying.top().second;
      staying.pop();
      const std::uint32_t since = (i + n - timing_.first(a) % n) % n;
      if (since < timing_.length(a)) timing_.set_away(a, true);
    }
  }
  return true;
}

/// Lets tensors stay if there is room, first those with the smallest wish.
void AwaySearch::fill_room(double noise) {
  std::vector<std::pair<double, std::uint32_t>> away;
  for (const std::uint32_t a : free_) {
    if (timing_.away()[a] != 0) away.emplace_back(wish_[a] + noise * chance(), a);
  }
  std::sort(away.begin(), away.end());
  for (const auto& [wish, a] : away) {
    if (timing_.has_room_for(a)) timing_.set_away(a, false);
  }
}

/// Runs several passes, each from the ends of the one before. Returns the best time.
double AwaySearch::time_of_decisions(int passes) {
  double best = 0;
  for (int pass = 0; pass < std::max(passes, 1); ++pass) {
    std::vector<double> ends = timing_.ends();
    const double guessed = timing_.iteration();
    const double iteration = timing_.pass();
    if (pass > 0 && iteration >= best) continue;
    best = iteration;
    now_ = {timing_.away(), iteration, std::move(ends), guessed};
    if (timing_.has_stores()) {
      now_.stores = timing_.store_of_kept();
      now_.lateness = timing_.lateness();
      timing_.store_as_passed();
      now_.stored = timing_.times_stored();
      now_.overrun = timing_.overrun_of_stores();
    }
  }
  return best;
}

void AwaySearch::offer() {
  const bool fits_better = now_.overrun < best_.overrun;
  if (best_.away.empty() || fits_better || (now_.overrun == best_.overrun && now_.iteration < best_.iteration - 0.5)) {
    best_ = now_;
  }
}

void AwaySearch::offer_after(int passes) {
  (void)time_of_decisions(passes);
  offer();
}

void AwaySearch::adopt(const AwayDecision& decision) {
  timing_.set_away(decision.away);
  if (!timing_.has_stores()) return;
  timing_.set_stores(decision.stores);
  timing_.set_lateness(decision.lateness);
  timing_.set_times_stored(decision.stored);
}

double AwaySearch::repeat_best() {
  adopt(best_);
  timing_.guess(best_.ends, best_.guessed_iteration);
  return timing_.pass();
}

bool AwaySearch::round_relaxed() {
  for (const std::uint32_t a : free_) {
    // If the relaxed solution treats two absences alike, the longer one goes first.
    const double part = static_cast<double>(timing_.length(a)) / static_cast<double>(relaxed_.time.size());
    wish_[a] = relaxed_.away[a] + rounding_.longer_first * part;
  }
  if (timing_.largest_overrun() <= 0) {  // no tensor is away yet, and none needs to be
    timing_.guess(relaxed_.time);
    offer_after(rounding_.passes);
    return true;
  }
  for (const double threshold : rounding_.thresholds) {
    if (wishes_for_stores()) {
      round_to_stores(threshold);
    } else {
      for (const std::uint32_t a : free_) timing_.set_away(a, relaxed_.away[a] > threshold);
    }
    if (!make_room(0)) return false;
    if (!wishes_for_stores()) choose_stores();
    if (!fit_stores()) continue;
    timing_.guess(relaxed_.time);
    offer_after(rounding_.passes);
    if (timing_.has_stores()) try_late_leaving();
  }
  if (timing_.has_stores()) {
    try_rounded();
    try_single_stores();
  }
  return !best_.away.empty();
}

bool AwaySearch::fit_again() {
  adopt(best_);
  if (!make_room(0) || !fit_stores()) return false;
  timing_.guess(best_.ends, best_.guessed_iteration);
  best_.away.clear();  // it was for other limits
  offer_after(rounding_.passes);
  return true;
}

std::uint32_t AwaySearch::one_that_is(bool away) {
  constexpr int tries = 200;
  for (int i = 0; i < tries; ++i) {
    const std::uint32_t a = free_[random_() % free_.size()];
    if ((timing_.away()[a] != 0) == away) return a;
  }
  return no_absence;
}

/// Sets the wishes by the relaxed solution, with a weight that lets chance overrule it.
void AwaySearch::wish_as_relaxed() {
  for (const std::uint32_t a : free_) wish_[a] = annealing_.relaxed_weight * relaxed_.away[a];
}

bool AwaySearch::change_some() {
  if (!movable_.empty()) {
    constexpr std::array<double, 4> late{0, 0.1, 0.4, 1};
    if (random_() % 32 == 0) timing_.set_lateness(late[random_() % late.size()]);
    if (timing_.stores() > 1 && random_() % 2 == 0) return move_some();
  }
  const bool to_stay = random_() % 2 == 0;
  std::vector<std::pair<std::uint32_t, double>> changed;
  bool fits = true;
  for (std::size_t more = 1 + random_() % 2; fits && more > 0; --more) {
    const std::uint32_t a = one_that_is(to_stay);
    if (a == no_absence) return false;
    timing_.set_away(a, !to_stay);
    constexpr double never = 1e9;  // so that nothing undoes the change
    changed.emplace_back(a, std::exchange(wish_[a], to_stay ? -never : never));
    fits = make_room(1);
  }
  // Only rarely: room that is left free lets tensors return early, and packs more easily.
  if (fits && annealing_.fills_one_in > 0 && random_() % annealing_.fills_one_in == 0) fill_room(1);
  for (const auto& [a, wish] : changed) wish_[a] = wish;
  return fits && fit_stores();
}

void AwaySearch::improve(std::size_t tries, const std::function<bool()>& is_enough) {
  if (free_.empty()) return;
  wish_as_relaxed();
  AwayDecision current = best_;
  adopt(current);
  for (std::size_t i = 0; i < tries; ++i) {
    constexpr std::size_t between_questions = 16;
    if (i % between_questions == between_questions - 1 && is_enough()) return;
    const double left = static_cast<double>(tries - i) / static_cast<double>(tries);
    const double worse = annealing_.warmth * best_.iteration * left * -std::log(1 - chance());
    timing_.guess(current.ends, current.guessed_iteration);
    if (change_some() && time_of_decisions(1) <= current.iteration + worse && now_.overrun <= current.overrun) {
      offer();
      current = now_;
      // The next pass begins where this one ended.
      current.ends = timing_.ends();
      current.guessed_iteration = timing_.iteration();
    } else {
      adopt(current);
    }
  }
}

/// Of tensors that would take the same room, those that stay over few operations save as many bytes with less.
void AwaySearch::wish_for_few_bytes() {
  const std::vector<Absence>& absences = timing_.ledger().absences;
  for (const std::uint32_t a : free_) {
    const double copies = absences[a].version == no_version || absences[a].lingers ? 1 : 2;
    wish_[a] = timing_.length(a) / copies;
  }
}

std::int64_t AwaySearch::bytes_copied() const {
  const std::vector<Absence>& absences = timing_.ledger().absences;
  std::int64_t bytes = 0;
  std::vector<char> is_copied(timing_.ledger().versions.size());
  for (const std::uint32_t a : free_) {
    if (timing_.away()[a] == 0) continue;
    if (!absences[a].lingers) bytes += timing_.size(a);
    const std::uint32_t version = absences[a].version;
    if (version != no_version && std::exchange(is_copied[version], 1) == 0) bytes += timing_.size(a);
  }
  return bytes;
}

void AwaySearch::spare_bytes(double fast_enough, std::size_t tries, const std::function<bool()>& is_enough) {
  if (free_.empty() || best_.away.empty() || best_.iteration > fast_enough) return;
  wish_for_few_bytes();
  adopt(best_);
  std::int64_t least = bytes_copied();
  const auto take_if_leaner = [&](int passes) {
    const std::int64_t bytes = bytes_copied();
    if (bytes >= least || !fit_stores() || time_of_decisions(passes) > fast_enough) return false;
    least = bytes;
    best_ = now_;
    return true;
  };
  // As few bytes as there is room for. If copies then come late, with some room left for early returns.
  const std::vector<std::int64_t> limits = timing_.limits();
  for (const double part : {1.0, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6}) {
    if (is_enough()) return;
    for (const std::uint32_t a : free_) timing_.set_away(a, true);
    set_limits(limits, part);
    fill_room(0);
    set_limits(limits, 1);
    timing_.guess(best_.ends, best_.guessed_iteration);
    if (take_if_leaner(rounding_.passes)) break;
  }
  const auto longest = static_cast<double>(relaxed_.time.size());
  for (std::size_t i = 0; i < tries; ++i) {
    constexpr std::size_t between_questions = 16;
    if (i % between_questions == between_questions - 1 && is_enough()) return;
    adopt(best_);
    const std::uint32_t a = one_that_is(true);
    if (a == no_absence) return;
    timing_.set_away(a, false);
    const double wish = std::exchange(wish_[a], -2 * longest);
    if (make_room(longest * chance() * chance())) {
      timing_.guess(best_.ends, best_.guessed_iteration);
      (void)take_if_leaner(1);
    }
    wish_[a] = wish;
  }
}

/// Lets each operation hold a part of what it may hold, but its bundle in any case.
void AwaySearch::set_limits(const std::vector<std::int64_t>& limits, double part) {
  for (std::uint32_t i = 0; i < limits.size(); ++i) {
    timing_.set_limit(i, std::max(static_cast<std::int64_t>(static_cast<double>(limits[i]) * part), timing_.bundle(i)));
  }
}

}  // namespace swapmm::planning
