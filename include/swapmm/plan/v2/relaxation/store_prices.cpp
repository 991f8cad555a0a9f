// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/store_prices.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace swapmm::v2::planning {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

StorePricing::StorePricing(const StoreModel& model)
    : model_(model),
      parts_(model.swaps.parts()),
      turns_(2 * std::size_t{parts_} + 1),
      room_(turns_),
      space_(model.stores.size(), std::vector<double>(turns_)),
      in_cost_(model.stores.size(), std::vector<double>(parts_)),
      out_cost_(model.stores.size(), std::vector<double>(parts_)),
      cheapest_out_(model.stores.size()),
      asked_(model.stores.size()),
      away_change_(turns_ + 1),
      space_change_(model.stores.size(), std::vector<double>(turns_ + 1)) {
  for (const StoreOfModel& store : model.stores) {
    held_trees_.emplace_back(turns_);
    away_trees_.emplace_back(store.space ? turns_ : 1);
    outs_.emplace_back(turns_);
  }
}

void StorePricing::make_valid(StorePrices& prices) const {
  const auto positive = [](std::vector<double>& values) {
    for (double& value : values) value = std::max(0.0, value);  // also for values that are not numbers
  };
  positive(prices.room);
  for (std::vector<double>& list : prices.rates) positive(list);
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    if (!model_.stores[s].space) std::ranges::fill(prices.space[s], 0.0);
    positive(prices.space[s]);
  }
  for (std::uint32_t part = 1; part < parts_; part += 2) {
    double sum = 0;
    for (const std::vector<double>& list : prices.rates) sum += list[part];
    if (sum <= 1) continue;
    for (std::vector<double>& list : prices.rates) list[part] /= sum * (1 + 1e-15);
  }
}

void StorePricing::set_prices(const StorePrices& prices) {
  long double sum = 0;
  for (std::size_t k = 0; k < turns_; ++k) room_[k] = static_cast<double>(sum += prices.room[k % parts_]);
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    long double of_store = 0;
    for (std::size_t k = 0; k < turns_; ++k) {
      space_[s][k] = static_cast<double>(of_store += prices.space[s][k % parts_]);
    }
    cheapest_out_[s] = infinite;
    for (std::uint32_t part = 0; part < parts_; ++part) {
      double in = 0;
      double out = 0;
      for (std::size_t r = 0; r < model_.rates.size(); ++r) {
        in += prices.rates[r][part] * model_.rates[r].in[s];
        out += prices.rates[r][part] * model_.rates[r].out[s];
      }
      in_cost_[s][part] = in;
      out_cost_[s][part] = out;
      cheapest_out_[s] = std::min(cheapest_out_[s], out);
    }
    for (std::size_t k = 0; k < turns_; ++k) {
      const auto at = static_cast<std::uint32_t>(k);
      const double in = in_cost_[s][k % parts_];
      const double out = out_cost_[s][k % parts_];
      held_trees_[s].set(at, room_[k] - in, room_[k] + out - space_[s][k]);
      outs_[s].set(at, 0, out);
      if (!model_.stores[s].space) continue;
      const double both = room_[k] - space_[s][k];
      away_trees_[s].set(at, both - in, both + out);
    }
    held_trees_[s].build();
    outs_[s].build();
    if (model_.stores[s].space) away_trees_[s].build();
  }
}

StorePricing::Asked StorePricing::ask(const Window& window, std::size_t store) const {
  Asked asked;
  if (window.is_empty() && !window.is_arrival) return asked;
  asked.held = held_trees_[store].ask(window.first_part(), window.last_part);
  asked.away =
      model_.stores[store].space ? away_trees_[store].ask(window.first_part(), window.last_part) : asked.held;
  return asked;
}

/// The price of space at the boundaries from `first` to `last`.
double StorePricing::space(std::size_t store, std::uint32_t first, std::uint32_t last) const {
  return last < first ? 0 : space_[store][last] - (first > 0 ? space_[store][first - 1] : 0);
}

/// The best for a value that goes to one store. It is copied once, before the first window over which it is away, or in
/// it. From then on it is in the store until it returns for the last time.
StorePricing::Choice StorePricing::best_of_store(const WrittenValue& value, std::size_t store) {
  const Window* const windows = model_.swaps.dirty.data() + value.first_window;
  const std::vector<Asked>& asked = asked_[store];
  const std::uint32_t count = value.windows;
  // For each window: the gain from there on if the value is in the store already.
  std::vector<double> rest(count + 1, -infinite);
  enum class Here : std::uint8_t { last, middle, skip };
  std::vector<Here> here(count, Here::last);
  const auto until_next = [&](std::uint32_t i) {
    return i + 1 < count ? space(store, windows[i].last_part + 1, windows[i + 1].first_boundary - 1) : 0;
  };
  const auto base = [&](std::uint32_t i) { return room_[windows[i].first_boundary - 1]; };
  const auto gain_last = [&](std::uint32_t i) {
    return asked[i].away.back_at == Tree::nowhere
               ? -infinite
               : asked[i].away.back - base(i) + space_[store][windows[i].first_boundary - 1];
  };
  const auto gain_middle = [&](std::uint32_t i) {
    return asked[i].held.back_at == Tree::nowhere
               ? -infinite
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
    const double after = i + 1 < count ? rest[i + 1] - until_next(i) : -infinite;
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
    choice.absences.push_back({i, store, windows[i].first_boundary, in, windows[i].first_boundary, goes_on ? until : in});
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
    double gain = -infinite;
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
      const double later = returns ? away.back - room_[first - 1] + space_[s][first - 1] : -infinite;
      const Absence whole{i, s, first, away.back_at, first, away.back_at};
      double gain = -infinite;
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

/// An upper bound for a value that the host reads: it goes to the host, where its space costs nothing.
StorePricing::Choice StorePricing::best_for_host(const WrittenValue& value) {
  const Window* const windows = model_.swaps.dirty.data() + value.first_window;
  Choice choice;
  choice.gain = -infinite;
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    if (model_.host && s != *model_.host) continue;
    const Tree::Answer cheapest = outs_[s].ask(value.write_part, std::max(value.write_part, value.last_part));
    if (-cheapest.leave > choice.gain) {
      choice.gain = -cheapest.leave;
      choice.outs = {{s, cheapest.leave_at}};
    }
  }
  for (std::uint32_t i = 0; i < value.windows; ++i) {
    double best = 0;
    std::optional<Absence> absence;
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      if (model_.host && s != *model_.host) continue;
      const Tree::Answer& held = asked_[s][i].held;
      if (held.back_at == Tree::nowhere) continue;
      const double gain = held.back - room_[windows[i].first_boundary - 1];
      if (gain <= best) continue;
      best = gain;
      absence = Absence{i, s, windows[i].first_boundary, held.back_at, 1, 0};
    }
    if (!absence) continue;
    choice.gain += best;
    choice.absences.push_back(*absence);
  }
  return choice;
}

/// A value that no operation writes has space in a store all the time, or is copied to one whenever it leaves.
StorePricing::Choice StorePricing::best_of_clean(const CleanValue& value) {
  const std::size_t stores = model_.stores.size();
  const auto everywhere = std::uint32_t{1} << stores;
  Choice best;
  bool is_first = true;
  for (std::size_t home = 0; home <= stores; ++home) {  // `stores`: none
    const bool is_free = value.is_in_host && (!model_.host || home == *model_.host);
    if (value.is_in_host && !is_free) continue;
    for (std::uint32_t copied = 0; copied < everywhere; ++copied) {
      if (home < stores && (copied >> home & 1U) != 0) continue;
      Choice choice;
      if (home < stores && !is_free) {
        choice.home = home;
        choice.gain -= space_[home][parts_ - 1];
      }
      for (std::size_t s = 0; s < stores; ++s) {
        if ((copied >> s & 1U) == 0) continue;
        choice.gain -= cheapest_out_[s];
        const auto at = std::ranges::min_element(out_cost_[s]) - out_cost_[s].begin();
        choice.outs.push_back({s, static_cast<std::uint32_t>(at)});
      }
      for (std::uint32_t i = 0; i < value.windows.size(); ++i) {
        const Window& window = model_.swaps.clean[value.windows[i]];
        const std::uint32_t first = window.first_boundary;
        double most = window.is_arrival ? -infinite : 0;
        std::optional<Absence> absence;
        for (std::size_t s = 0; s < stores; ++s) {
          const bool from_home = s == home || (value.is_in_host && !model_.host);
          if (!from_home && ((copied >> s & 1U) == 0 || window.is_arrival)) continue;
          const Tree::Answer& answer = from_home ? asked_[s][i].held : asked_[s][i].away;
          if (answer.back_at != Tree::nowhere) {
            const double gain = answer.back - room_[first - 1] + (from_home ? 0 : space_[s][first - 1]);
            if (gain > most) {
              most = gain;
              absence = Absence{i, s, first, answer.back_at, from_home ? 1 : first, from_home ? 0 : answer.back_at};
            }
          }
          if (!from_home && answer.both_back_at != Tree::nowhere && answer.both + cheapest_out_[s] > most) {
            most = answer.both + cheapest_out_[s];
            absence = Absence{i, s, answer.both_leave_at + 1, answer.both_back_at, answer.both_leave_at + 1,
                              answer.both_back_at};
          }
        }
        if (!absence) continue;
        choice.gain += most;
        choice.absences.push_back(*absence);
      }
      if (is_first || choice.gain > best.gain) best = std::move(choice);
      is_first = false;
    }
  }
  return best;
}

/// The window that gains the most if it pays the copy out alone. `asked_` is for this value.
void StorePricing::find_main(std::size_t v, StoreResponse& response) const {
  const WrittenValue& value = model_.swaps.values[v];
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    Tree::Answer cheapest;
    std::uint32_t from = value.write_part;
    for (std::uint32_t i = 0; i < value.windows; ++i) {
      const Window& window = model_.swaps.dirty[value.first_window + i];
      if (window.is_empty()) continue;
      const std::uint32_t first = window.first_boundary;
      if (from <= first - 1) {
        const Tree::Answer more = outs_[s].ask(from, first - 1);
        if (more.leave < cheapest.leave) cheapest = more;
        from = first;
      }
      const Tree::Answer& away = asked_[s][i].away;
      double gain = away.both_back_at == Tree::nowhere ? -infinite : away.both;
      if (away.back_at != Tree::nowhere && cheapest.leave_at != Tree::nowhere) {
        gain = std::max(gain, away.back - room_[first - 1] + space_[s][first - 1] - cheapest.leave);
      }
      if (gain <= response.main_gain[v]) continue;
      response.main_gain[v] = gain;
      response.main_window[v] = i;
      response.out_cost[v] = cheapest.leave_at == Tree::nowhere ? 0 : cheapest.leave;
    }
  }
}

void StorePricing::apply(const Choice& choice, double bytes, StoreResponse& response) {
  gain_ -= static_cast<long double>(choice.gain) * static_cast<long double>(bytes);
  magnitude_ += std::abs(static_cast<long double>(choice.gain) * static_cast<long double>(bytes));
  const auto copy = [&](std::size_t store, std::uint32_t part, bool in) {
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      const double rate = (in ? model_.rates[r].in : model_.rates[r].out)[store];
      response.rates[r][part % parts_] += rate * bytes;
    }
  };
  for (const CopyOut& out : choice.outs) copy(out.store, out.part, false);
  for (const Absence& absence : choice.absences) {
    copy(absence.store, absence.in, true);
    magnitude_ += static_cast<long double>(bytes) * room_.back();
    if (absence.from <= absence.in) {
      away_change_[absence.from] += bytes;
      away_change_[absence.in + 1] -= bytes;
    }
    if (absence.stored > absence.last || !model_.stores[absence.store].space) continue;
    space_change_[absence.store][absence.stored] += bytes;
    space_change_[absence.store][absence.last + 1] -= bytes;
  }
  if (choice.home && model_.stores[*choice.home].space) {
    space_change_[*choice.home][0] += bytes;
    space_change_[*choice.home][parts_] -= bytes;
  }
}

StoreResponse StorePricing::respond(StorePrices& prices) {
  make_valid(prices);
  set_prices(prices);
  const swapmm::planning::relaxation::SwapModel& swaps = model_.swaps;
  StoreResponse response;
  response.away.assign(parts_, 0.0);
  response.rates.assign(model_.rates.size(), std::vector<double>(parts_));
  response.space.assign(model_.stores.size(), std::vector<double>(parts_));
  response.main_window.assign(swaps.values.size(), 0);
  response.main_gain.assign(swaps.values.size(), -infinite);
  response.out_cost.assign(swaps.values.size(), 0.0);
  std::ranges::fill(away_change_, 0.0);
  for (std::vector<double>& change : space_change_) std::ranges::fill(change, 0.0);

  gain_ = swaps.compute;
  magnitude_ = swaps.compute;
  const auto add = [&](double gain) {
    gain_ += gain;
    magnitude_ += std::abs(gain);
  };
  for (std::uint32_t i = 0; i < swaps.operations; ++i) {
    const std::size_t compute = 2 * std::size_t{i};
    add((prices.room[compute] + prices.room[compute + 1]) * swaps.excess[i]);
    for (const std::vector<double>& list : prices.rates) add(-swaps.duration[i] * list[compute]);
  }
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    if (model_.stores[s].space) add(-space_[s][parts_ - 1] * *model_.stores[s].space);
  }
  for (std::size_t c = 0; c < model_.clean.size(); ++c) {
    const CleanValue& value = model_.clean[c];
    const double bytes = swaps.clean[value.windows.front()].bytes;
    if (bytes <= 0) continue;
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      asked_[s].clear();
      for (const std::uint32_t w : value.windows) asked_[s].push_back(ask(swaps.clean[w], s));
    }
    apply(best_of_clean(value), bytes, response);
  }
  for (std::size_t v = 0; v < swaps.values.size(); ++v) {
    const WrittenValue& value = swaps.values[v];
    if (value.windows == 0 && !value.must_go) continue;
    // A value without windows that the host reads has no bytes here; its copy is left out.
    const double bytes = value.windows > 0 ? swaps.dirty[value.first_window].bytes : 0;
    if (bytes <= 0) continue;
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      asked_[s].clear();
      for (std::uint32_t i = 0; i < value.windows; ++i) asked_[s].push_back(ask(swaps.dirty[value.first_window + i], s));
    }
    Choice best;
    if (value.must_go) {
      best = best_for_host(value);
      for (std::size_t s = 0; s < model_.stores.size(); ++s) {
        // What else it may gain; windows count twice then, which only makes the bound less tight.
        if (model_.host && s == *model_.host) continue;
        const Choice more = best_of_store(value, s);
        if (more.gain <= 0) continue;
        best.gain += more.gain;
        best.outs.insert(best.outs.end(), more.outs.begin(), more.outs.end());
        best.absences.insert(best.absences.end(), more.absences.begin(), more.absences.end());
      }
    } else {
      for (std::size_t s = 0; s < model_.stores.size(); ++s) {
        Choice choice = best_of_store(value, s);
        if (choice.gain > best.gain) best = std::move(choice);
      }
      const auto is_real = [](const Window& window) { return !window.is_empty(); };
      const auto windows = swaps.dirty.begin() + value.first_window;
      if (std::count_if(windows, windows + value.windows, is_real) > 1 && model_.stores.size() > 1) {
        Choice choice = best_of_stores(value);
        if (choice.gain > best.gain) best = std::move(choice);
      }
    }
    apply(best, bytes, response);
    find_main(v, response);
  }
  const auto fold = [&](const std::vector<double>& change, std::vector<double>& sums) {
    double sum = 0;
    for (std::size_t k = 0; k < turns_; ++k) {
      sum += change[k];
      sums[k % parts_] += sum;
    }
  };
  fold(away_change_, response.away);
  for (std::size_t s = 0; s < model_.stores.size(); ++s) fold(space_change_[s], response.space[s]);
  constexpr long double rounding = 1e-13L;
  const auto bound = static_cast<double>(gain_ - rounding * magnitude_);
  if (std::isfinite(bound)) response.bound = bound;
  return response;
}

}  // namespace swapmm::v2::planning
