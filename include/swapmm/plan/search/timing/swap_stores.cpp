// SPDX-License-Identifier: Apache-2.0
// Values in several stores: which one, how full it is, and when their links let them return.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

#include <swapmm/plan/search/timing/swap_timing.hpp>
#include <swapmm/plan/search/timing/timing_numbers.hpp>

namespace swapmm::planning {

void SwapTiming::list_kept() {
  const LinkedStores& stores = *ledger_.stores;
  stores_ = static_cast<std::uint8_t>(stores.list.size());
  kept_of_.assign(swaps_.size(), 0);
  const auto new_kept = [&](TensorId tensor) {
    const std::optional<std::uint8_t>& fixed = stores.fixed[index(tensor)];
    Kept kept;
    kept.bytes = static_cast<std::int64_t>(ledger_.planning.sizes[index(tensor)]);
    kept.is_fixed = fixed.has_value();
    store_of_kept_.push_back(fixed.value_or(static_cast<std::uint8_t>(stores_ - 1)));
    return kept;
  };
  for (std::uint32_t v = 0; v < values_.size(); ++v) {
    Kept kept = new_kept(ledger_.versions[v].tensor);
    kept.version = v;
    kept.absences = values_[v].absences;
    for (const std::uint32_t a : kept.absences) kept_of_[a] = v;
    kept_.push_back(std::move(kept));
  }
  for (std::uint32_t a = 0; a < swaps_.size(); ++a) {
    const Absence& absence = ledger_.absences[a];
    if (absence.version != no_version) continue;
    // Absences of a tensor are consecutive.
    const bool same_tensor =
        a > 0 && ledger_.absences[a - 1].tensor == absence.tensor && ledger_.absences[a - 1].version == no_version;
    if (!same_tensor) kept_.push_back(new_kept(absence.tensor));
    kept_of_[a] = static_cast<std::uint32_t>(kept_.size() - 1);
    kept_.back().absences.push_back(a);
  }
  for (const LinkedStore& store : stores.list) is_limited_.push_back(store.capacity ? 1 : 0);
  set_part_of_stores(1);
  for (std::uint32_t k = 0; k < kept_.size(); ++k) {
    copy_times_of(k);
    store_again(k);
  }
}

void SwapTiming::set_part_of_stores(double part) {
  store_limits_.clear();
  store_loads_.clear();
  for (const LinkedStore& store : ledger_.stores->list) {
    const double bytes = store.capacity ? part * static_cast<double>(store.capacity->value) : 0;
    store_limits_.push_back(static_cast<std::int64_t>(bytes));
    store_loads_.emplace_back(std::vector<std::int64_t>(operations_, -store_limits_.back()));
  }
  for (std::uint32_t k = 0; k < kept_.size(); ++k) load_store(k, 1);
}

void SwapTiming::load_store(std::uint32_t kept, int sign) {
  const Kept& value = kept_[kept];
  if (value.length == 0 || value.is_fixed || is_limited_[store_of_kept_[kept]] == 0) return;
  store_loads_[store_of_kept_[kept]].add(value.first, value.first + value.length, sign * value.bytes);
}

/// The operations during which a value is in its store: from its copy, which may run as soon as it is written, to its
/// last return. What no operation writes has its place all the time.
void SwapTiming::store_again(std::uint32_t kept) {
  Kept& value = kept_[kept];
  std::uint32_t first = 0;
  std::uint32_t length = 0;
  value.away = 0;
  for (const std::uint32_t a : value.absences) value.away += away_[a] != 0 ? 1 : 0;
  if (value.version == no_absence) {
    length = value.away > 0 ? operations_ : 0;
  } else {
    const Value& written = values_[value.version];
    first = (written.write + 1) % operations_;
    for (const std::uint32_t a : value.absences) {
      if (away_[a] == 0) continue;
      const std::uint32_t end = counted_from(written.write, swaps_[a].first) + swaps_[a].end - swaps_[a].first;
      length = std::max(length, std::min(end - written.write - 1, operations_));
    }
    if (written.host_reads) length = std::max(length, std::uint32_t{1});
  }
  store_from(kept, first, length);
}

void SwapTiming::store_from(std::uint32_t kept, std::uint32_t first, std::uint32_t length) {
  Kept& value = kept_[kept];
  if (first == value.first && length == value.length) return;
  load_store(kept, -1);
  value.first = first;
  value.length = length;
  load_store(kept, 1);
}

SwapTiming::TimesStored SwapTiming::times_stored() const {
  TimesStored times;
  for (const Kept& value : kept_) {
    times.first.push_back(value.first);
    times.length.push_back(value.length);
  }
  return times;
}

void SwapTiming::set_times_stored(const TimesStored& times) {
  for (std::uint32_t k = 0; k < times.first.size(); ++k) store_from(k, times.first[k], times.length[k]);
}

void SwapTiming::store_as_passed() {
  for (std::uint32_t k = 0; k < kept_.size(); ++k) {
    const Kept& value = kept_[k];
    if (value.version == no_absence || value.away == 0 || is_limited_[store_of_kept_[k]] == 0) continue;
    const Value& written = values_[value.version];
    const std::uint32_t copied = std::max(written.copied, written.write + 1);
    std::uint32_t back = copied;
    for (const std::uint32_t a : value.absences) {
      if (away_[a] == 0) continue;
      const Swap& swap = swaps_[a];
      back = std::max(back, counted_from(written.write, swap.first) + swap.returns - swap.first);
    }
    // The place is taken in the gap before operation `copied`, and given back in the gap before operation `back`.
    store_from(k, copied % operations_, std::min(back - copied + 1, operations_));
  }
}

std::int64_t SwapTiming::overrun_of_stores() const {
  std::int64_t sum = 0;
  for (std::uint8_t store = 0; store < stores_; ++store) sum += std::max<std::int64_t>(store_overrun(store), 0);
  return sum;
}

void SwapTiming::copy_times_of(std::uint32_t kept) {
  const LinkedStore& store = ledger_.stores->list[store_of_kept_[kept]];
  const auto bytes = [&](std::uint32_t absence) {
    return copied_bytes(ledger_.planning.trace.tensors[index(ledger_.absences[absence].tensor)]);
  };
  for (const std::uint32_t a : kept_[kept].absences) {
    swaps_[a].copy_in = static_cast<double>(copy_time(store.in, bytes(a)).count());
  }
  const std::uint32_t version = kept_[kept].version;
  if (version == no_absence) return;
  const Bytes size = copied_bytes(ledger_.planning.trace.tensors[index(ledger_.versions[version].tensor)]);
  values_[version].copy_out = static_cast<double>(copy_time(store.out, size).count());
}

void SwapTiming::set_store(std::uint32_t kept, std::uint8_t store) {
  if (store_of_kept_[kept] == store || kept_[kept].is_fixed) return;
  load_store(kept, -1);
  store_of_kept_[kept] = store;
  load_store(kept, 1);
  copy_times_of(kept);
}

void SwapTiming::set_stores(const std::vector<std::uint8_t>& stores) {
  for (std::uint32_t k = 0; k < stores.size(); ++k) set_store(k, stores[k]);
}

void SwapTiming::set_stores_by_ledger() {
  for (std::uint32_t k = 0; k < kept_.size(); ++k) {
    const Kept& value = kept_[k];
    if (value.version == no_absence) {
      set_store(k, ledger_.absences[value.absences.front()].store);
    } else {
      set_store(k, ledger_.versions[value.version].store);
    }
  }
}

bool SwapTiming::store_has_room(std::uint8_t store, std::uint32_t kept) const {
  const Kept& value = kept_[kept];
  if (is_limited_[store] == 0 || value.length == 0) return true;
  return store_loads_[store].most(value.first, value.first + value.length) + value.bytes <= 0;
}

/// Each link brings its tensors in the order of their use. Tensors of all links compete for room: the ones that must
/// start first get it first, because a slow link needs its room long before the use. Each starts as soon as there is
/// room until the use.
void SwapTiming::place_returns_from_stores() {
  const std::uint32_t n = operations_;
  // When each copy must start, if the ones behind it on its link are not to be late.
  std::vector<std::pair<double, std::uint32_t>> by_start;
  std::vector<double> next_start(stores_, std::numeric_limits<double>::infinity());
  for (int round = 0; round < 2; ++round) {
    by_start.clear();
    for (std::size_t i = returns_.size(); i-- > 0;) {
      const std::uint32_t a = returns_[i];
      double& next = next_start[store_of(a)];
      next = std::min(time_of(use_of(a)), next) - swaps_[a].copy_in;
      by_start.emplace_back(next, a);
    }
    for (double& next : next_start) next += iteration_;
  }
  std::reverse(by_start.begin(), by_start.end());
  std::stable_sort(by_start.begin(), by_start.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  std::vector<double> link_free(stores_, -std::numeric_limits<double>::infinity());
  for (int round = 0; round < 2; ++round) {  // the first one shows when the links are free for the second
    // Operations backwards, so that the last full one before a use is the first one that is found. The use is in the
    // second of two iterations.
    std::vector<std::int64_t> above(n);
    for (std::uint32_t i = 0; i < n; ++i) above[n - 1 - i] = held_[i] - limits_[i];
    RangeLoad room(above);
    const auto backwards = [n](std::uint32_t operation) { return n - 1 - operation % n; };
    std::vector<std::uint32_t> link_gaps(stores_, 0);  // the last gaps that begin before links are free
    for (const auto& [start, a] : by_start) {
      Swap& swap = swaps_[a];
      double& free = link_free[store_of(a)];
      std::uint32_t& link_gap = link_gaps[store_of(a)];
      const std::uint32_t use = use_of(a);
      const std::int64_t leaves = std::int64_t{use} - (swap.end - swap.leaves);
      const auto first = static_cast<std::uint32_t>(std::max<std::int64_t>({leaves, 0, std::int64_t{use} - n}));
      while (link_gap < use && time_of(link_gap + 1) <= free + same) ++link_gap;
      std::uint32_t gap = std::min(use, std::max(first, link_gap));
      if (gap < use) {  // the operations from use - 1 down to gap
        const std::uint32_t from = backwards(use - 1);
        const std::uint32_t until = room.until_above(from, from + (use - gap), -swap.bytes);
        gap = use - (until - from);
        if (gap < use) room.add(from, from + (use - gap), swap.bytes);
      }
      swap.returns = swap.end - (use - gap);
      free = std::max(free, time_of(gap)) + swap.copy_in;
      if (round == 1) {
        for (std::uint32_t i = gap; i < use; ++i) held_[i % n] += swap.bytes;
      }
    }
    for (double& free : link_free) free -= iteration_;
  }
}

}  // namespace swapmm::planning
