// SPDX-License-Identifier: Apache-2.0
// The best responses of values that operations write.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <swapmm/plan/v2/relaxation/store_prices.hpp>

namespace swapmm::v2::planning {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

}  // namespace

/// The best for a value that goes to one store. It is copied once, before the first window over which it is away, or in
/// it. From then on it is in the store until it returns for the last time.
StorePricing::Choice StorePricing::best_of_store(const WrittenValue& value, std::size_t store) {
  const Window* const windows = model_.swaps.dirty.data() + value.first_window;
  const std::vector<Asked>& asked = asked_[store];
  const std::uint32_t count = value.windows;
  // For each window: the gain from there on if the value is in the store already.
  std::vector<double> rest(count + 1, never);
  enum class Here : std::uint8_t { last, middle, skip };
  std::vector<Here> here(count, Here::last);
  const auto until_next = [&](std::uint32_t i) {
    return i + 1 < count ? space(store, windows[i].last_part + 1, windows[i + 1].first_boundary - 1) : 0;
  };
  const auto base = [&](std::uint32_t i) { return room_[windows[i].first_boundary - 1]; };
  const auto gain_last = [&](std::uint32_t i) {
    return asked[i].away.back_at == Tree::nowhere
               ? never
               : asked[i].away.back - base(i) + space_[store][windows[i].first_boundary - 1];
  };
  const auto gain_middle = [&](std::uint32_t i) {
    return asked[i].held.back_at == Tree::nowhere
               ? never
               : asked[i].held.back - base(i) - space(store, windows[i].first_boundary, windows[i].last_part);
  };
  for (std::uint32_t i = count; i-- > 0;) {
    rest[i] = gain_last(i);
    if (i + 1 == count) continue;
    const double after = rest[i + 1] - until_next(i);
    const double skip = windows[i].is_empty() ? 0 : -space(store, windows[i].first_boundary, windows[i].last_part);
    if (gain_middle(i) + after > rest[i]) {
      rest[i] = gain_middle(i) + after;
      here[i] = Here::middle;
    }
    if (skip + after > rest[i]) {
      rest[i] = skip + after;
      here[i] = Here::skip;
    }
  }

  enum class Start : std::uint8_t { none, before, before_middle, pair, pair_middle };
  double best = 0;
  Start start = Start::none;
  std::uint32_t first = 0;
  std::uint32_t out_part = 0;
  std::uint32_t from = value.write_part;
  Tree::Answer cheapest;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (windows[i].is_empty()) continue;
    if (from <= windows[i].first_boundary - 1) {
      const Tree::Answer more = outs_[store].ask(from, windows[i].first_boundary - 1);
      if (more.leave < cheapest.leave) cheapest = more;
      from = windows[i].first_boundary;
    }
    const double after = i + 1 < count ? rest[i + 1] - until_next(i) : never;
    const auto offer = [&](double gain, Start how, std::uint32_t part) {
      if (!(gain > best)) return;
      best = gain;
      start = how;
      first = i;
      out_part = part;
    };
    if (cheapest.leave_at != Tree::nowhere) {
      offer(gain_last(i) - cheapest.leave, Start::before, cheapest.leave_at);
      offer(gain_middle(i) + after - cheapest.leave, Start::before_middle, cheapest.leave_at);
    }
    if (asked[i].away.both_back_at != Tree::nowhere) {
      offer(asked[i].away.both, Start::pair, asked[i].away.both_leave_at);
    }
    if (asked[i].held.both_back_at != Tree::nowhere) {
      offer(asked[i].held.both - space_[store][windows[i].last_part] + after, Start::pair_middle,
            asked[i].held.both_leave_at);
    }
  }
  Choice choice;
  if (start == Start::none) return choice;
  choice.gain = best;
  choice.outs.push_back({store, out_part});
  const bool is_pair = start == Start::pair || start == Start::pair_middle;
  bool goes_on = start == Start::before_middle || start == Start::pair_middle;
  const std::uint32_t away_from = is_pair ? out_part + 1 : windows[first].first_boundary;
  const std::uint32_t back = is_pair ? (goes_on ? asked[first].held.both_back_at : asked[first].away.both_back_at)
                                     : (goes_on ? asked[first].held.back_at : asked[first].away.back_at);
  choice.absences.push_back({first, store, away_from, back, away_from,
                             goes_on ? (first + 1 < count ? windows[first + 1].first_boundary - 1 : back) : back});
  for (std::uint32_t i = first + 1; goes_on && i < count; ++i) {
    goes_on = here[i] != Here::last;
    const std::uint32_t until = goes_on && i + 1 < count ? windows[i + 1].first_boundary - 1 : windows[i].last_part;
    if (here[i] == Here::skip) {
      choice.absences.back().last = until;
      continue;
    }
    const std::uint32_t in = goes_on ? asked[i].held.back_at : asked[i].away.back_at;
    choice.absences.push_back(
        {i, store, windows[i].first_boundary, in, windows[i].first_boundary, goes_on ? until : in});
  }
  return choice;
}

/// An upper bound for what a value gains that goes to several stores: to each before the first window after which it
/// returns from there, or in it. Space counts only while it is away.
StorePricing::Choice StorePricing::best_of_stores(const WrittenValue& value) {
  const Window* const windows = model_.swaps.dirty.data() + value.first_window;
  const std::size_t stores = model_.stores.size();
  const std::size_t masks = std::size_t{1} << stores;
  const std::uint32_t count = value.windows;
  struct Way {
    double gain = never;
    std::uint32_t before = 0;  // the stores that it went to before
    std::optional<Absence> absence{};
    std::optional<CopyOut> out{};
  };
  std::vector<Way> ways((count + 1) * masks);  // after so many windows, with so many stores
  ways[0].gain = 0;
  std::vector<Tree::Answer> cheapest(stores);
  std::uint32_t from = value.write_part;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::size_t mask = 0; mask < masks; ++mask) {
      ways[(i + 1) * masks + mask] = {ways[i * masks + mask].gain, static_cast<std::uint32_t>(mask), {}, {}};
    }
    if (windows[i].is_empty()) continue;
    const std::uint32_t first = windows[i].first_boundary;
    if (from <= first - 1) {
      for (std::size_t s = 0; s < stores; ++s) {
        const Tree::Answer more = outs_[s].ask(from, first - 1);
        if (more.leave < cheapest[s].leave) cheapest[s] = more;
      }
      from = first;
    }
    for (std::size_t s = 0; s < stores; ++s) {
      const Tree::Answer& away = asked_[s][i].away;
      const bool returns = away.back_at != Tree::nowhere;
      const double later = returns ? away.back - room_[first - 1] + space_[s][first - 1] : never;
      const Absence whole{i, s, first, away.back_at, first, away.back_at};
      double gain = never;
      Way way;
      if (returns && cheapest[s].leave_at != Tree::nowhere) {
        gain = later - cheapest[s].leave;
        way.absence = whole;
        way.out = CopyOut{s, cheapest[s].leave_at};
      }
      if (away.both_back_at != Tree::nowhere && away.both > gain) {
        gain = away.both;
        const std::uint32_t leaves = away.both_leave_at + 1;
        way.absence = Absence{i, s, leaves, away.both_back_at, leaves, away.both_back_at};
        way.out = CopyOut{s, away.both_leave_at};
      }
      for (std::size_t mask = 0; mask < masks; ++mask) {
        const double before = ways[i * masks + mask].gain;
        const bool is_there = (mask >> s & 1U) != 0;
        Way& after = ways[(i + 1) * masks + (mask | std::size_t{1} << s)];
        const double total = before + (is_there ? later : gain);
        if (!(total > after.gain)) continue;
        after = is_there ? Way{total, static_cast<std::uint32_t>(mask), whole, {}} : way;
        after.gain = total;
        after.before = static_cast<std::uint32_t>(mask);
      }
    }
  }
  Choice choice;
  std::size_t best = 0;
  for (std::size_t mask = 0; mask < masks; ++mask) {
    const bool is_one = (mask & (mask - 1)) == 0;  // or none
    if (is_one || !(ways[count * masks + mask].gain > choice.gain)) continue;
    choice.gain = ways[count * masks + mask].gain;
    best = mask;
  }
  if (best == 0) return choice;
  for (std::uint32_t i = count; i-- > 0;) {
    const Way& way = ways[(i + 1) * masks + best];
    if (way.absence) choice.absences.push_back(*way.absence);
    if (way.out) choice.outs.push_back(*way.out);
    best = way.before;
  }
  return choice;
}

}  // namespace swapmm::v2::planning
