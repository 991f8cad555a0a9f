// SPDX-License-Identifier: Apache-2.0
// Where values are that are away, if there are several stores.
#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include <swapmm/plan/search/timing/away_search.hpp>

namespace swapmm::planning {
namespace {

constexpr int attempts = 200;

}  // namespace

/// Lets a value stay on the device over all its absences. Returns false if there is no room for that.
bool AwaySearch::stay_instead(std::uint32_t kept) {
  for (const std::uint32_t a : timing_.absences_of_kept(kept)) {
    if (timing_.away()[a] == 0) continue;
    if (!timing_.has_room_for(a)) return false;
    timing_.set_away(a, false);
  }
  return !timing_.is_stored(kept);
}

/// Moves values out of stores that are too small, each to a store that has room, or else back to the device. Returns
/// false if there is none.
bool AwaySearch::fit_stores() {
  if (movable_.empty()) return true;
  for (std::uint8_t store = 0; store < timing_.stores(); ++store) {
    while (timing_.store_overrun(store) > 0) {
      const std::uint32_t operation = timing_.overrun_of_store_at(store);
      std::uint32_t chosen = no_absence;
      std::size_t seen = 0;
      for (const std::uint32_t k : movable_) {
        if (timing_.store_of_kept()[k] != store || !timing_.is_stored_at(k, operation)) continue;
        if (random_() % ++seen == 0) chosen = k;
      }
      if (chosen == no_absence) return false;
      bool moved = false;
      for (std::uint8_t other = 0; other < timing_.stores() && !moved; ++other) {
        moved = other != store && timing_.store_has_room(other, chosen);
        if (moved) timing_.set_store(chosen, other);
      }
      if (!moved && !stay_instead(chosen)) return false;
    }
  }
  return true;
}

/// Moves one or two values to other stores. If one is too small then, others leave it.
bool AwaySearch::move_some() {
  const auto one = [&]() -> std::uint32_t {
    for (int i = 0; i < attempts; ++i) {
      const std::uint32_t k = movable_[random_() % movable_.size()];
      if (timing_.is_stored(k)) return k;
    }
    return no_absence;
  };
  for (std::size_t more = 1 + random_() % 2; more > 0; --more) {
    const std::uint32_t k = one();
    if (k == no_absence) return false;
    const std::uint8_t from = timing_.store_of_kept()[k];
    const auto to = static_cast<std::uint8_t>((from + 1 + random_() % (timing_.stores() - 1U)) % timing_.stores());
    if (!timing_.store_has_room(to, k)) {
      // Something that is there at the same time takes its place.
      for (int i = 0; i < attempts && !timing_.store_has_room(to, k); ++i) {
        const std::uint32_t other = movable_[random_() % movable_.size()];
        if (timing_.store_of_kept()[other] == to && timing_.is_stored(other)) timing_.set_store(other, from);
      }
    }
    timing_.set_store(k, to);
  }
  return fit_stores();
}

/// Gives each value the store where the relaxed problem has the most of it, as long as there is room; those that it is
/// surest of come first. Without a wish, the ones with the most traffic for the room that they take come first, and a
/// link has no more than its part of the traffic.
void AwaySearch::choose_stores() {
  if (movable_.empty()) return;
  const LinkedStores& stores = *timing_.ledger().stores;
  const auto last = static_cast<std::uint8_t>(timing_.stores() - 1);
  for (const std::uint32_t k : movable_) timing_.set_store(k, last);
  if (stores.wished.empty()) return share_stores();
  grant_wishes();
}

bool AwaySearch::wishes_for_stores() const { return timing_.has_stores() && !timing_.ledger().stores->wished.empty(); }

/// Lets tensors go where the relaxed problem has more of them than the threshold: all that go to the last store, and as
/// many as there is room for to the others, whose links are fast. The rest of those stays rather than to load the slow
/// link.
void AwaySearch::round_to_stores(double threshold) {
  const std::vector<std::vector<double>>& wished = timing_.ledger().stores->wished;
  const auto last = static_cast<std::uint8_t>(timing_.stores() - 1);
  for (const std::uint32_t k : movable_) timing_.set_store(k, last);
  struct Wish {
    double part = 0;
    std::uint32_t absence = 0;
    std::uint8_t store = 0;
  };
  std::vector<Wish> wishes;
  for (const std::uint32_t a : free_) {
    const auto most = std::max_element(wished[a].begin(), wished[a].end());
    const auto store = static_cast<std::uint8_t>(most - wished[a].begin());
    const bool goes = relaxed_.away[a] > threshold;
    timing_.set_away(a, goes && (store == last || timing_.is_fixed(timing_.kept_of(a))));
    if (goes && store != last && !timing_.is_fixed(timing_.kept_of(a))) wishes.push_back({*most, a, store});
  }
  std::stable_sort(wishes.begin(), wishes.end(), [&](const Wish& a, const Wish& b) {
    // Of those that it is as sure of, the shortest take the least room.
    return std::pair(-a.part, timing_.length(a.absence)) < std::pair(-b.part, timing_.length(b.absence));
  });
  for (const Wish& wish : wishes) {
    const std::uint32_t kept = timing_.kept_of(wish.absence);
    const std::uint8_t before = timing_.store_of_kept()[kept];
    if (before == last && timing_.is_stored(kept)) {
      timing_.set_away(wish.absence, true);  // it is there anyway
      continue;
    }
    timing_.set_store(kept, wish.store);
    timing_.set_away(wish.absence, true);
    if (timing_.store_overrun(wish.store) <= 0) continue;
    timing_.set_away(wish.absence, false);
    timing_.set_store(kept, before);
  }
}

/// Repeats passes in which tensors leave limited stores more room than by the decisions alone, and uses it.
void AwaySearch::try_late_leaving() {
  constexpr int rounds = 4;
  for (const double part : {0.0, 0.4, 1.0}) {
    timing_.set_lateness(part);
    for (int round = 0; round < rounds; ++round) {
      grant_wishes();
      if (!fit_stores()) break;
      offer_after(1);
    }
  }
  timing_.set_lateness(0);
}

/// Begins with decisions for whole values that were rounded together.
void AwaySearch::try_rounded() {
  const auto last = static_cast<std::uint8_t>(timing_.stores() - 1);
  for (const auto& decisions : timing_.ledger().stores->rounded) {
    for (const std::uint32_t k : movable_) timing_.set_store(k, last);
    for (const std::uint32_t a : free_) {
      timing_.set_away(a, decisions[a].has_value());
      if (decisions[a] && !timing_.is_fixed(timing_.kept_of(a))) timing_.set_store(timing_.kept_of(a), *decisions[a]);
    }
    if (!make_room(0) || !fit_stores()) continue;
    timing_.guess(relaxed_.time);
    offer_after(rounding_.passes);
  }
}

/// Tries each store alone, if it is large enough.
void AwaySearch::try_single_stores() {
  if (movable_.empty()) return;
  for (std::uint8_t store = 0; store < timing_.stores(); ++store) {
    for (const std::uint32_t k : movable_) timing_.set_store(k, store);
    for (const std::uint32_t a : free_) timing_.set_away(a, relaxed_.away[a] > 0.5);
    if (!make_room(0) || timing_.overrun_of_stores() > 0) continue;
    timing_.guess(relaxed_.time);
    offer_after(rounding_.passes);
  }
}

/// Moves values from the last store to those where the relaxed problem has them, if there is room by now.
void AwaySearch::grant_wishes() {
  const LinkedStores& stores = *timing_.ledger().stores;
  if (movable_.empty() || stores.wished.empty()) return;
  const auto last = static_cast<std::uint8_t>(timing_.stores() - 1);
  struct Wish {
    double part = 0;
    std::uint32_t kept = 0;
    std::uint8_t store = 0;
  };
  std::vector<Wish> wishes;
  for (const std::uint32_t k : movable_) {
    if (!timing_.is_stored(k)) continue;
    for (std::uint8_t store = 0; store < last; ++store) {
      double here = 0;
      double all = 1e-6;
      for (const std::uint32_t a : timing_.absences_of_kept(k)) {
        if (timing_.away()[a] == 0) continue;
        here += stores.wished[a][store];
        for (const double part : stores.wished[a]) all += part;
      }
      if (here / all > 0.3) wishes.push_back({here / all, k, store});
    }
  }
  std::stable_sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) { return a.part > b.part; });
  for (const Wish& wish : wishes) {
    if (timing_.store_of_kept()[wish.kept] == last && timing_.store_has_room(wish.store, wish.kept)) {
      timing_.set_store(wish.kept, wish.store);
    }
  }
}

void AwaySearch::share_stores() {
  const LinkedStores& stores = *timing_.ledger().stores;
  const auto last = static_cast<std::uint8_t>(timing_.stores() - 1);
  std::vector<std::pair<double, std::uint32_t>> order;
  double traffic = 0;
  const auto copies_of = [&](std::uint32_t k) {
    return static_cast<double>(timing_.size_of_kept(k)) * timing_.copies_of_kept(k);
  };
  for (const std::uint32_t k : movable_) {
    if (!timing_.is_stored(k)) continue;
    traffic += copies_of(k);
    order.emplace_back(-timing_.copies_of_kept(k) / std::max(timing_.length_of_kept(k), 1.0), k);
  }
  std::sort(order.begin(), order.end());
  double rates = 0;
  for (const LinkedStore& store : stores.list) rates += static_cast<double>(store.in.bytes_per_second);
  std::vector<double> left;
  for (const LinkedStore& store : stores.list) {
    left.push_back(traffic * static_cast<double>(store.in.bytes_per_second) / rates);
  }
  for (const auto& [wish, k] : order) {
    for (std::uint8_t store = 0; store < last; ++store) {
      if (left[store] <= 0 || !timing_.store_has_room(store, k)) continue;
      timing_.set_store(k, store);
      left[store] -= copies_of(k);
      break;
    }
  }
}

}  // namespace swapmm::planning
