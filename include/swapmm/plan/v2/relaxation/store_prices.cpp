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
      cheapest_out_at_(model.stores.size()),
      asked_(model.stores.size()) {
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
      if (out >= cheapest_out_[s]) continue;
      cheapest_out_[s] = out;
      cheapest_out_at_[s] = part;
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
  asked.away = model_.stores[store].space ? away_trees_[store].ask(window.first_part(), window.last_part) : asked.held;
  return asked;
}

/// The price of space at the boundaries from `first` to `last`.
double StorePricing::space(std::size_t store, std::uint32_t first, std::uint32_t last) const {
  return last < first ? 0 : space_[store][last] - (first > 0 ? space_[store][first - 1] : 0);
}

/// An upper bound for a value that the host reads: it goes to the host, where its space costs nothing.
StorePricing::Choice StorePricing::best_for_host(const WrittenValue& value) {
  const Window* const windows = model_.swaps.dirty.data() + value.first_window;
  Choice choice;
  choice.gain = -infinite;
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    if (model_.host && s != *model_.host) continue;
    const Tree::Answer cheapest = outs_[s].ask(value.write_part, std::max(value.write_part, value.last_part));
    // With another store, it may wait there until it has been overwritten, and go to the host then.
    const bool may_wait = model_.stores.size() > 1;
    const double cost = may_wait ? cheapest_out_[s] : cheapest.leave;
    if (-cost > choice.gain) {
      choice.gain = -cost;
      choice.outs = {{s, may_wait ? cheapest_out_at_[s] : cheapest.leave_at}};
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
        choice.outs.push_back({s, cheapest_out_at_[s]});
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
            absence = Absence{
                i, s, answer.both_leave_at + 1, answer.both_back_at, answer.both_leave_at + 1, answer.both_back_at};
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

StorePricing::Choice StorePricing::best_of_written(const WrittenValue& value) {
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
    return best;
  }
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    Choice choice = best_of_store(value, s);
    if (choice.gain > best.gain) best = std::move(choice);
  }
  const auto is_real = [](const Window& window) { return !window.is_empty(); };
  const auto windows = model_.swaps.dirty.begin() + value.first_window;
  if (std::count_if(windows, windows + value.windows, is_real) > 1 && model_.stores.size() > 1) {
    Choice choice = best_of_stores(value);
    if (choice.gain > best.gain) best = std::move(choice);
  }
  return best;
}

StoreResponse StorePricing::respond(StorePrices& prices) {
  make_valid(prices);
  set_prices(prices);
  const swapmm::planning::relaxation::SwapModel& swaps = model_.swaps;
  StoreResponse response;
  long double sum = swaps.compute;
  long double magnitude = swaps.compute;
  const auto add = [&](long double term) {
    sum += term;
    magnitude += std::abs(term);
  };
  for (std::uint32_t i = 0; i < swaps.operations; ++i) {
    const std::size_t compute = 2 * std::size_t{i};
    add((prices.room[compute] + prices.room[compute + 1]) * swaps.excess[i]);
    for (const std::vector<double>& list : prices.rates) add(-swaps.duration[i] * list[compute]);
  }
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    if (model_.stores[s].space) add(-space_[s][parts_ - 1] * *model_.stores[s].space);
  }
  for (std::size_t v = 0; v < model_.values(); ++v) {
    Choice& choice = response.choices.emplace_back();
    const double bytes = model_.bytes_of(v);
    if (bytes <= 0) continue;
    const bool is_clean = v < model_.clean.size();
    const WrittenValue* const written = is_clean ? nullptr : &swaps.values[v - model_.clean.size()];
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      asked_[s].clear();
      if (is_clean) {
        for (const std::uint32_t w : model_.clean[v].windows) asked_[s].push_back(ask(swaps.clean[w], s));
      } else {
        for (std::uint32_t i = 0; i < written->windows; ++i) {
          asked_[s].push_back(ask(swaps.dirty[written->first_window + i], s));
        }
      }
    }
    choice = is_clean ? best_of_clean(model_.clean[v]) : best_of_written(*written);
    add(-static_cast<long double>(choice.gain) * static_cast<long double>(bytes));
    magnitude += static_cast<long double>(bytes) * room_.back() * static_cast<long double>(choice.absences.size());
  }
  constexpr long double rounding = 1e-13L;
  const auto bound = static_cast<double>(sum - rounding * magnitude);
  if (std::isfinite(bound)) response.bound = bound;
  return response;
}

}  // namespace swapmm::v2::planning
