// SPDX-License-Identifier: Apache-2.0
// Finds the gaps of a pass: when values go to the host, and when tensors leave and return.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include <swapmm/plan/search/timing/held_changes.hpp>
#include <swapmm/plan/search/timing/swap_timing.hpp>
#include <swapmm/plan/search/timing/timing_numbers.hpp>

namespace swapmm::planning {

/// Computes what each operation holds if tensors that are away are away for the whole absence.
void SwapTiming::hold_by_decisions() {
  held_ = bundles_;
  HeldChanges changes(held_);
  for (std::uint32_t a = 0; a < swaps_.size(); ++a) {
    if (away_[a] != 0) continue;
    const std::uint32_t shift = swaps_[a].first >= operations_ ? operations_ : 0;
    changes.add(swaps_[a].first - shift, swaps_[a].end - shift, swaps_[a].bytes);
  }
  changes.make();
}

void SwapTiming::list_copies_out() {
  copies_out_.clear();
  for (std::uint32_t v = 0; v < values_.size(); ++v) {
    Value& value = values_[v];
    const auto first_away = std::find_if(value.absences.begin(), value.absences.end(),
                                         [&](std::uint32_t absence) { return away_[absence] != 0; });
    value.released_by = first_away == value.absences.end() ? no_absence : *first_away;
    if (value.released_by == no_absence && !value.host_reads) continue;
    const std::uint32_t due = value.released_by == no_absence
                                  ? value.overwritten
                                  : counted_from(value.write, swaps_[value.released_by].first);
    copies_out_.push_back({v, due});
  }
  std::sort(copies_out_.begin(), copies_out_.end(), [&](const CopyOut& a, const CopyOut& b) {
    return std::tuple(values_[a.value].write, a.value) < std::tuple(values_[b.value].write, b.value);
  });
}

/// Puts copies to the host in order. Of the values that are already written, the one whose room can be released first
/// goes first. Runs two iterations: the first one shows what is left over for the second.
void SwapTiming::time_copies_out() {
  to_store_.resize(stores_);
  for (std::vector<std::uint32_t>& members : to_store_) members.clear();
  for (std::uint32_t i = 0; i < copies_out_.size(); ++i) {
    to_store_[store_of_value(copies_out_[i].value)].push_back(i);
  }
  for (const std::vector<std::uint32_t>& members : to_store_) time_copies_out(members);
}

/// The same for the copies on one link.
void SwapTiming::time_copies_out(const std::vector<std::uint32_t>& members) {
  using Waiting = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  const std::size_t copies = members.size();
  const auto ready = [&](std::size_t i) {
    const double origin = i < copies ? 0 : iteration_;
    return ends_[values_[copies_out_[members[i % copies]].value].write + 1] + origin;
  };
  double link_free = 0;
  std::size_t next = 0;
  for (std::size_t done = 0; done < 2 * copies; ++done) {
    if (waiting.empty()) link_free = std::max(link_free, ready(next));
    for (; next < 2 * copies && ready(next) <= link_free + same; ++next) {
      waiting.emplace(copies_out_[members[next % copies]].due + (next / copies) * operations_, next);
    }
    const std::size_t i = waiting.top().second;
    waiting.pop();
    CopyOut& copy = copies_out_[members[i % copies]];
    const double origin = i < copies ? 0 : iteration_;
    copy.start = link_free - origin;
    link_free += values_[copy.value].copy_out;
    copy.end = link_free - origin;
  }
}

/// The bytes by which each operation is above its limit, with what it holds now.
RangeLoad SwapTiming::room_by_limits() const {
  std::vector<std::int64_t> above(held_);
  for (std::uint32_t i = 0; i < operations_; ++i) above[i] -= limits_[i];
  return RangeLoad(above);
}

/// A tensor leaves when its value has been copied, or when its room is needed. Tensors whose copies end last are the
/// first to get room for waiting: the others have left by then anyway.
void SwapTiming::place_leavings() {
  for (Swap& swap : swaps_) swap.leaves = swap.first;
  by_start_.resize(copies_out_.size());
  std::iota(by_start_.begin(), by_start_.end(), 0U);
  std::sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(-copies_out_[a].end, a) < std::tuple(-copies_out_[b].end, b);
  });
  RangeLoad room = room_by_limits();
  HeldChanges changes(held_);
  for (const std::uint32_t i : by_start_) {
    const CopyOut& copy = copies_out_[i];
    Value& value = values_[copy.value];
    std::uint32_t copied = gap_at(copy.start);
    if (value.released_by != no_absence) {
      Swap& swap = swaps_[value.released_by];
      const std::uint32_t shift = copy.due - swap.first;
      const std::uint32_t copied_by = std::min(std::max(copy.due, gap_at(copy.end)), swap.end + shift);
      const std::uint32_t first = copy.due % operations_;
      const std::uint32_t most = swap.end - swap.first;
      const bool is_late = lateness_ > 0 && has_stores() && is_limited_[store_of_value(copy.value)] != 0;
      const std::uint32_t wished =
          std::max(copied_by - copy.due, is_late ? static_cast<std::uint32_t>(lateness_ * most) : 0U);
      const std::uint32_t waits = room.until_above(first, first + wished, -swap.bytes) - first;
      if (waits > 0) room.add(first, first + waits, swap.bytes);
      changes.add(first, first + waits, swap.bytes);
      const std::uint32_t leaves = copy.due + waits;
      swap.leaves = leaves - shift;
      if (is_late) copied = std::max(copied, gap_at(time_of(leaves) - 2 * value.copy_out));
      copied = std::min(copied, leaves);
    }
    // A value that the host reads is copied at once (plan/schedule/stay_facts.hpp).
    value.copied = value.host_reads ? value.write + 1 : std::clamp(copied, value.write + 1, value.overwritten);
  }
  changes.make();
  std::sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(copies_out_[a].start, a) < std::tuple(copies_out_[b].start, b);
  });
}

void SwapTiming::list_returns() {
  returns_.clear();
  gone_.clear();
  for (std::uint32_t a = 0; a < swaps_.size(); ++a) {
    if (away_[a] == 0) continue;
    if (lingers(a)) swaps_[a].returns = swaps_[a].end;
    (lingers(a) ? gone_ : returns_).push_back(a);
  }
  std::sort(returns_.begin(), returns_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::tuple(use_of(a), a) < std::tuple(use_of(b), b); });
}

/// Finds room for returning tensors. They are handled in the order of their use, and none takes its room in an earlier
/// gap than one that was handled before it. So each operation between that gap and the use holds all tensors that were
/// handled before, except those whose use lies before the operation. Therefore one sum of bytes for all of them is
/// compared with one number per operation. Operations are counted over two iterations, the first of which is the one
/// before.
class SwapTiming::RoomToReturn {
 public:
  explicit RoomToReturn(const SwapTiming& timing)
      : timing_(timing), n_(timing.operations_), used_by_(std::size_t{2} * n_), from_(std::size_t{2} * n_) {
    for (const std::uint32_t a : timing.returns_) used_by_[timing.use_of(a)] += timing.swaps_[a].bytes;
  }

  /// The first gap from which there is room until `use`.
  std::uint32_t first_gap(std::uint32_t use, std::int64_t bytes) {
    for (; next_ < use; ++next_) add_operation(next_);
    // Finds the last operation that is full. If a later operation is full sooner, an earlier one does not matter.
    const auto full = std::partition_point(narrow_.begin(), narrow_.end(),
                                           [&](const Narrow& narrow) { return narrow.until < brought_ + bytes; });
    return full == narrow_.begin() ? 0 : std::prev(full)->operation + 1;
  }

  void take(std::uint32_t gap, std::int64_t bytes) {
    brought_ += bytes;
    from_[gap] += bytes;
  }

  /// Adds all that was taken to what the operations hold.
  void add_to(std::vector<std::int64_t>& held) const {
    std::int64_t there = 0;
    for (std::uint32_t i = 0; i < 2 * n_; ++i) {
      there += from_[i] - used_by_[i];
      held[i % n_] += there;
    }
  }

 private:
  struct Narrow {
    std::uint32_t operation = 0;
    std::int64_t until = 0;  ///< it is full when more than this many bytes have been brought in total
  };

  void add_operation(std::uint32_t i) {
    used_ += used_by_[i];
    // A tensor that returns before operation 0 also holds the last operations of this iteration.
    if (i >= n_) wrapped_ += from_[i - n_];
    const std::int64_t until = timing_.limits_[i % n_] - timing_.held_[i % n_] + used_ - (i < n_ ? 0 : wrapped_);
    while (!narrow_.empty() && narrow_.back().until >= until) narrow_.pop_back();
    narrow_.push_back({i, until});
  }

  const SwapTiming& timing_;
  std::uint32_t n_;
  std::vector<std::int64_t> used_by_;  ///< per operation: bytes that return for it
  std::vector<std::int64_t> from_;     ///< per gap: bytes that are taken from it on
  std::uint32_t next_ = 0;
  std::int64_t used_ = 0;
  std::int64_t wrapped_ = 0;
  std::int64_t brought_ = 0;
  std::vector<Narrow> narrow_;  ///< by ascending operation, and by ascending `until`
};

/// When the link must be free for the iteration's first copy, if none is to be late.
double SwapTiming::latest_first_start() const {
  double next = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2; ++round) {  // the first one shows when the next iteration's first copy must start
    if (round == 1) next += iteration_;
    for (auto a = returns_.rbegin(); a != returns_.rend(); ++a) {
      const std::uint32_t use = use_of(*a);
      next = std::min(time_of(use) + waits_[use % operations_], next) - swaps_[*a].copy_in;
    }
  }
  return next;
}

void SwapTiming::place_returns() {
  if (has_stores()) return place_returns_from_stores();
  double link_free = -std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2; ++round) {  // the first one shows when the link is free for the second
    // In the first one, what returns first may take the room of the others for all of the iteration. A link that is
    // always busy never makes up for that.
    if (round == 1) link_free = std::min(link_free, latest_first_start());
    RoomToReturn room(*this);
    std::uint32_t link_gap = 0;  // the last gap that begins before the link is free
    for (const std::uint32_t a : returns_) {
      Swap& swap = swaps_[a];
      const std::uint32_t use = use_of(a);
      // The gap in which it leaves, counted like `use`: it may lie before operation 0 of the iteration before.
      const std::int64_t leaves = std::int64_t{use} - (swap.end - swap.leaves);
      const auto first = static_cast<std::uint32_t>(std::max<std::int64_t>(leaves, 0));
      while (link_gap < use && time_of(link_gap + 1) <= link_free + same) ++link_gap;
      const std::uint32_t gap = std::min(use, std::max({first, link_gap, room.first_gap(use, swap.bytes)}));
      room.take(gap, swap.bytes);
      swap.returns = swap.end - (use - gap);
      link_free = std::max(link_free, time_of(gap)) + swap.copy_in;
    }
    link_free -= iteration_;
    if (round == 1) room.add_to(held_);
  }
}

void SwapTiming::reserve_late(double margin) {
  const auto reserved = [&](std::uint32_t a) { return use_of(a) - (swaps_[a].end - swaps_[a].returns); };
  std::vector<std::uint32_t> queue = returns_;
  std::sort(queue.begin(), queue.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(use_of(a), reserved(a), a) < std::tuple(use_of(b), reserved(b), b);
  });
  HeldChanges changes(held_);
  std::vector<double> next_start(stores_, std::numeric_limits<double>::infinity());  // of each link
  for (int round = 0; round < 2; ++round) {  // the first one shows when the next iteration's first copy must start
    std::vector<std::uint32_t> link_gaps(stores_,
                                         2 * operations_);  // the last gaps that begin before copies must start
    for (auto a = queue.rbegin(); a != queue.rend(); ++a) {
      Swap& swap = swaps_[*a];
      double& next = next_start[store_of(*a)];
      std::uint32_t& link_gap = link_gaps[store_of(*a)];
      const std::uint32_t use = use_of(*a);
      next = std::min(time_of(use) + waits_[use % operations_], next) - swap.copy_in * (1 + margin);
      if (round == 0) continue;
      const std::uint32_t early = reserved(*a);
      link_gap = std::min(link_gap, use);
      while (link_gap > 0 && time_of(link_gap) > next + same) --link_gap;
      const std::uint32_t gap = std::max(early, link_gap);
      changes.add(early, gap, -swap.bytes);
      swap.returns = swap.end - (use - gap);
    }
    for (double& next : next_start) next += iteration_;
  }
  changes.make();
}

}  // namespace swapmm::planning
