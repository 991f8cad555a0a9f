// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/search/timing/swap_timing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace swapmm::planning {
namespace {

/// In nanoseconds; what takes more than a century is not told apart.
std::int64_t whole(double time) {
  constexpr double longest = 0x1p62;
  return std::llround(std::clamp(time, -longest, longest));
}

/// Times are sums of whole nanoseconds: below this they are equal.
constexpr double same = 0.5;

/// Copies may take any number of iterations. No gap is asked for so many of them ahead, and with it the number of a gap
/// still fits 32 bits.
constexpr double most_rounds = 64;

/// Ranges of operations that hold more or less, gathered to be added in one go.
class HeldChanges {
 public:
  explicit HeldChanges(std::vector<std::int64_t>& held) : held_(held), change_(2 * held.size() + 1) {}

  /// Those at or above n are of the next iteration; `end` is at most 2n.
  void add(std::uint32_t first, std::uint32_t end, std::int64_t bytes) {
    change_[first] += bytes;
    change_[end] -= bytes;
  }
  void make() {
    std::int64_t more = 0;
    for (std::size_t slot = 0; slot < 2 * held_.size(); ++slot) {
      more += change_[slot];
      held_[slot % held_.size()] += more;
    }
  }

 private:
  std::vector<std::int64_t>& held_;
  std::vector<std::int64_t> change_;
};

}  // namespace

SwapTiming::SwapTiming(OverlapLedger& ledger)
    : ledger_(ledger),
      operations_(ledger.planning.operations),
      one_engine_(ledger.planning.machine.duplex == Duplex::half),
      bundles_(operations_),
      allocated_(operations_),
      dead_(operations_),
      limits_(operations_, static_cast<std::int64_t>(ledger.planning.budget)),
      overruns_({0}),
      ends_(operations_ + 1),
      waits_(operations_),
      gap_starts_(operations_) {
  for (const TraceOperation& operation : ledger.planning.trace.operations) {
    durations_.push_back(static_cast<double>(operation.duration.count()));
  }
  list_tensors();
  list_values();
  std::vector<std::int64_t> held(bundles_);
  for (std::int64_t& bytes : held) bytes -= static_cast<std::int64_t>(ledger.planning.budget);
  overruns_ = RangeLoad(held);
  for (std::uint32_t a = 0; a < swaps_.size(); ++a) {
    if (!is_arrival(a)) overruns_.add(swaps_[a].first, swaps_[a].end, swaps_[a].bytes);
  }
  guess(durations_);
}

void SwapTiming::list_tensors() {
  const PlanningCase& planning = ledger_.planning;
  for (std::uint32_t i = 0; i < operations_; ++i) {
    for_each_access(planning.trace.operations[i], [&](TensorId id, Access access) {
      const auto bytes = static_cast<std::int64_t>(planning.sizes[index(id)]);
      bundles_[i] += bytes;
      if (access == Access::write) allocated_[i] += bytes;
    });
  }
  for (std::size_t t = 0; t < planning.sizes.size(); ++t) {
    const std::vector<Use>& uses = planning.liveness.uses[t];
    for (std::size_t use = 0; use < uses.size(); ++use) {
      const auto gap = gap_after_use(planning, id_at<TensorId>(t), use);
      if (gap && gap->value_needed) continue;
      dead_[index(uses[use].operation)] += static_cast<std::int64_t>(planning.sizes[t]);
    }
  }
}

void SwapTiming::list_values() {
  const PlanningCase& planning = ledger_.planning;
  for (const Absence& absence : ledger_.absences) {
    const std::size_t t = index(absence.tensor);
    Swap swap{absence.first, absence.end, static_cast<std::int64_t>(planning.sizes[t]),
              static_cast<double>(ledger_.copy_in[t].count())};
    if (absence.is_arrival && absence.first == 0) {
      // The iteration before is where it may begin to arrive.
      swap.first += operations_;
      swap.end += operations_;
    }
    swaps_.push_back(swap);
    away_.push_back(absence.is_arrival ? 1 : 0);
  }
  for (const Version& version : ledger_.versions) {
    Value value;
    value.write = version.write;
    value.copy_out = static_cast<double>(ledger_.copy_out[index(version.tensor)].count());
    value.absences.resize(version.absences);
    std::iota(value.absences.begin(), value.absences.end(), version.first_absence);
    std::sort(value.absences.begin(), value.absences.end(), [&](std::uint32_t a, std::uint32_t b) {
      return counted_from(version.write, swaps_[a].first) < counted_from(version.write, swaps_[b].first);
    });
    value.overwritten = version.write + operations_;
    for (const Use& use : planning.liveness.uses[index(version.tensor)]) {
      if (use.access == Access::read) continue;
      value.overwritten =
          std::min(value.overwritten, counted_from(version.write, static_cast<std::uint32_t>(use.operation)));
    }
    const bool survives = planning.trace.tensors[index(version.tensor)].kind == TensorKind::persistent;
    const std::uint32_t end = survives ? value.overwritten : std::min(value.overwritten, operations_);
    for (const HostRead& read : host_reads_of(planning, version.tensor)) {
      auto after = static_cast<std::uint32_t>(read.after_operation);
      if (after < version.write) after += operations_;
      value.host_reads = value.host_reads || after < end;
    }
    values_.push_back(std::move(value));
  }
}

void SwapTiming::set_away(std::uint32_t absence, bool away) {
  if ((away_[absence] != 0) == away || is_arrival(absence)) return;
  away_[absence] = away ? 1 : 0;
  const Swap& swap = swaps_[absence];
  overruns_.add(swap.first, swap.end, away ? -swap.bytes : swap.bytes);
}

void SwapTiming::set_away(const std::vector<char>& away) {
  for (std::uint32_t a = 0; a < away.size(); ++a) set_away(a, away[a] != 0);
}

void SwapTiming::set_limit(std::uint32_t operation, std::int64_t bytes) {
  overruns_.add(operation, operation + 1, limits_[operation] - bytes);
  limits_[operation] = bytes;
}

bool SwapTiming::has_room_for(std::uint32_t absence) const {
  const Swap& swap = swaps_[absence];
  return swap.first >= swap.end || overruns_.most(swap.first, swap.end) + swap.bytes <= 0;
}

void SwapTiming::guess(std::span<const double> times) {
  for (std::uint32_t i = 0; i < operations_; ++i) ends_[i + 1] = ends_[i] + times[i];
  iteration_ = ends_[operations_];
}

void SwapTiming::guess(const std::vector<double>& ends, double iteration) {
  ends_ = ends;
  iteration_ = iteration;
}

double SwapTiming::time_of(std::uint32_t gap) const {
  const std::uint32_t iterations = gap / operations_;
  return ends_[gap % operations_] + iterations * iteration_;
}

/// The first gap that begins at `time` or later.
std::uint32_t SwapTiming::gap_at(double time) const {
  if (time <= same || iteration_ <= 0) return 0;
  const double rounds = std::min(std::floor(time / iteration_), most_rounds);
  const auto first = std::lower_bound(ends_.begin(), ends_.end() - 1, time - rounds * iteration_ - same);
  return static_cast<std::uint32_t>(first - ends_.begin()) + static_cast<std::uint32_t>(rounds) * operations_;
}

/// What each operation holds when those who are away are away all the time.
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

/// Of the values that are written, the one whose room can be given back first goes first. Two iterations: the first
/// one shows what is left over for the second.
void SwapTiming::time_copies_out() {
  using Waiting = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  const std::size_t copies = copies_out_.size();
  const auto ready = [&](std::size_t i) {
    const double origin = i < copies ? 0 : iteration_;
    return ends_[values_[copies_out_[i % copies].value].write + 1] + origin;
  };
  double link_free = 0;
  std::size_t next = 0;
  for (std::size_t done = 0; done < 2 * copies; ++done) {
    if (waiting.empty()) link_free = std::max(link_free, ready(next));
    for (; next < 2 * copies && ready(next) <= link_free + same; ++next) {
      waiting.emplace(copies_out_[next % copies].due + (next / copies) * operations_, next);
    }
    const std::size_t i = waiting.top().second;
    waiting.pop();
    CopyOut& copy = copies_out_[i % copies];
    const double origin = i < copies ? 0 : iteration_;
    copy.start = link_free - origin;
    link_free += values_[copy.value].copy_out;
    copy.end = link_free - origin;
  }
}

/// By how much operations are above their limits, with what they hold.
RangeLoad SwapTiming::room_by_limits() const {
  std::vector<std::int64_t> above(held_);
  for (std::uint32_t i = 0; i < operations_; ++i) above[i] -= limits_[i];
  return RangeLoad(above);
}

/// A tensor leaves when its value has been copied, or when its room is needed. Those whose copies end last get the
/// room to wait first: the others have left by then anyway.
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
      const std::uint32_t wished = copied_by - copy.due;
      const std::uint32_t waits = room.until_above(first, first + wished, -swap.bytes) - first;
      if (waits > 0) room.add(first, first + waits, swap.bytes);
      changes.add(first, first + waits, swap.bytes);
      const std::uint32_t leaves = copy.due + waits;
      swap.leaves = leaves - shift;
      copied = std::min(copied, leaves);
    }
    // What the host reads goes to it at once (plan/stay_facts).
    value.copied = value.host_reads ? value.write + 1 : std::clamp(copied, value.write + 1, value.overwritten);
  }
  changes.make();
  std::sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(copies_out_[a].start, a) < std::tuple(copies_out_[b].start, b);
  });
}

void SwapTiming::list_returns() {
  returns_.clear();
  for (std::uint32_t a = 0; a < swaps_.size(); ++a) {
    if (away_[a] != 0) returns_.push_back(a);
  }
  std::sort(returns_.begin(), returns_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::tuple(use_of(a), a) < std::tuple(use_of(b), b); });
}

/// Where returning tensors find room. They are asked for in the order of their use, and none takes its room before
/// another that came first. So each operation from there to the use is held by all who came first, but for those whose
/// use lies before it: one sum of bytes for all of them is compared with a number for each operation. Operations are
/// counted over two iterations, the first of which is the one before.
class SwapTiming::RoomToReturn {
 public:
  explicit RoomToReturn(const SwapTiming& timing)
      : timing_(timing), n_(timing.operations_), used_by_(std::size_t{2} * n_), from_(std::size_t{2} * n_) {
    for (const std::uint32_t a : timing.returns_) used_by_[timing.use_of(a)] += timing.swaps_[a].bytes;
  }

  /// The first gap from which there is room until `use`.
  std::uint32_t first_gap(std::uint32_t use, std::int64_t bytes) {
    for (; next_ < use; ++next_) add_operation(next_);
    // Of those that are full the last one. Behind an operation that is full sooner, no other one matters.
    const auto full = std::partition_point(narrow_.begin(), narrow_.end(),
                                           [&](const Narrow& narrow) { return narrow.until < brought_ + bytes; });
    return full == narrow_.begin() ? 0 : std::prev(full)->operation + 1;
  }

  void take(std::uint32_t gap, std::int64_t bytes) {
    brought_ += bytes;
    from_[gap] += bytes;
  }

  /// What operations hold with all that was taken.
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
    std::int64_t until = 0;  ///< it is full when more than so many bytes have been brought in all
  };

  void add_operation(std::uint32_t i) {
    used_ += used_by_[i];
    // Who comes before operation 0 also holds the last operations of this iteration.
    if (i >= n_) wrapped_ += from_[i - n_];
    const std::int64_t until = timing_.limits_[i % n_] - timing_.held_[i % n_] + used_ - (i < n_ ? 0 : wrapped_);
    while (!narrow_.empty() && narrow_.back().until >= until) narrow_.pop_back();
    narrow_.push_back({i, until});
  }

  const SwapTiming& timing_;
  std::uint32_t n_;
  std::vector<std::int64_t> used_by_;  ///< bytes that are returned for an operation
  std::vector<std::int64_t> from_;     ///< bytes that are taken from a gap on
  std::uint32_t next_ = 0;
  std::int64_t used_ = 0;
  std::int64_t wrapped_ = 0;
  std::int64_t brought_ = 0;
  std::vector<Narrow> narrow_;  ///< both numbers ascend
};

void SwapTiming::place_returns() {
  double link_free = -std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2; ++round) {  // the first one shows how far the link is when the second begins
    RoomToReturn room(*this);
    std::uint32_t link_gap = 0;  // the last one that begins before the link is free
    for (const std::uint32_t a : returns_) {
      Swap& swap = swaps_[a];
      const std::uint32_t use = use_of(a);
      // The gap of leaving, counted like `use`: it may lie before operation 0 of the iteration before.
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

/// The iteration, run through by the gaps of a pass.
class SwapTiming::Run {
 public:
  explicit Run(SwapTiming& timing)
      : timing_(timing),
        n_(timing.operations_),
        leaving_(n_),
        returning_(n_),
        copied_(n_),
        copy_ends_(timing.values_.size()),
        operation_ends_(n_),
        needed_(n_) {
    std::vector<char> follows_copy(timing.swaps_.size());
    for (const std::uint32_t i : timing.by_start_) {
      const std::uint32_t a = timing.values_[timing.copies_out_[i].value].released_by;
      if (a != no_absence) follows_copy[a] = 1;
    }
    for (const std::uint32_t a : timing.returns_) {
      if (!timing.is_arrival(a) && follows_copy[a] == 0) leaving_[timing.swaps_[a].leaves % n_].push_back(a);
      returning_[timing.swaps_[a].returns % n_].push_back(a);
    }
    for (const std::uint32_t i : timing.by_start_) {
      const std::uint32_t v = timing.copies_out_[i].value;
      copied_[timing.values_[v].copied % n_].push_back(v);
      const std::uint32_t a = timing.values_[v].released_by;
      if (a != no_absence) leaving_[timing.swaps_[a].leaves % n_].push_back(a);  // in the order of the copies
    }
  }

  /// The time of the last of some iterations. Leaves its ends and waits in `timing`.
  double run() {
    constexpr int iterations_until_steady = 3;
    double begin = 0;
    for (int i = 0; i < iterations_until_steady; ++i) {
      begin = now_;
      for (std::uint32_t gap = 0; gap < n_; ++gap) pass_gap(gap);
    }
    for (std::uint32_t i = 0; i < n_; ++i) timing_.ends_[i + 1] = operation_ends_[i] - begin;
    timing_.iteration_ = now_ - begin;
    return timing_.iteration_;
  }

 private:
  void pass_gap(std::uint32_t gap) {
    const std::uint32_t before = gap > 0 ? gap - 1 : n_ - 1;
    held_ = timing_.held_[before];
    limit_ = timing_.limits_[gap];
    for (const std::uint32_t v : copied_[gap]) copy_out(v);
    if (timing_.dead_[before] > 0) release(now_, timing_.dead_[before]);
    for (const std::uint32_t a : leaving_[gap]) leave(a);
    double earliest = std::numeric_limits<double>::infinity();  // of all that wants room in this gap
    for (const std::uint32_t a : returning_[gap]) earliest = std::min(earliest, bring(a));
    double start = now_;
    if (timing_.allocated_[gap] > 0) start = std::max(start, room_for(timing_.allocated_[gap]));
    start = std::max(start, std::exchange(needed_[gap], 0));
    timing_.gap_starts_[gap] = whole(std::min(earliest, start));
    timing_.waits_[gap] = start - now_;
    now_ = start + timing_.durations_[gap];
    operation_ends_[gap] = now_;
  }

  void copy_out(std::uint32_t v) {
    const Value& value = timing_.values_[v];
    double& free = timing_.one_engine_ ? in_free_ : out_free_;
    free = std::max(free, operation_ends_[value.write]) + value.copy_out;
    copy_ends_[v] = free;
  }

  void release(double time, std::int64_t bytes) {
    released_.push_back({time, bytes});
    not_needed_yet_ += bytes;
    held_ -= bytes;
  }

  void leave(std::uint32_t a) {
    Swap& swap = timing_.swaps_[a];
    double time = operation_ends_[(swap.first + n_ - 1) % n_];
    const std::uint32_t version = timing_.ledger_.absences[a].version;
    if (version != no_version && timing_.values_[version].released_by == a) time = std::max(time, copy_ends_[version]);
    swap.left = time;
    release(time, swap.bytes);
  }

  double bring(std::uint32_t a) {
    const Swap& swap = timing_.swaps_[a];
    // What is to be brought: an input that the host has given, or what has gone to the host.
    const double given = timing_.is_arrival(a) ? operation_ends_[(swap.first + n_ - 1) % n_] : swap.left;
    const double start = std::max({in_free_, given, room_for(swap.bytes)});
    in_free_ = start + swap.copy_in;
    double& needed = needed_[swap.end % n_];
    needed = std::max(needed, in_free_);
    return start;
  }

  /// When so many bytes more are free: as many of the releases so far have happened as that takes.
  double room_for(std::int64_t bytes) {
    held_ += bytes;
    while (not_needed_yet_ > limit_ - held_ && first_ < released_.size()) {
      room_ = std::max(room_, released_[first_].time);
      not_needed_yet_ -= released_[first_++].bytes;
    }
    return room_;
  }

  SwapTiming& timing_;
  std::uint32_t n_;
  std::vector<std::vector<std::uint32_t>> leaving_;    ///< absences, by gap
  std::vector<std::vector<std::uint32_t>> returning_;  ///< absences, by gap
  std::vector<std::vector<std::uint32_t>> copied_;     ///< values, by gap
  std::vector<double> copy_ends_;                      ///< of values
  std::vector<double> operation_ends_;
  std::vector<double> needed_;  ///< when the copies have ended that an operation waits for
  std::vector<Release> released_;
  std::size_t first_ = 0;            ///< of those that nobody has waited for yet
  std::int64_t not_needed_yet_ = 0;  ///< their bytes
  double room_ = 0;                  ///< when the others had happened
  std::int64_t held_ = 0;
  std::int64_t limit_ = 0;
  double in_free_ = 0;
  double out_free_ = 0;
  double now_ = 0;
};

double SwapTiming::pass() {
  hold_by_decisions();
  list_copies_out();
  time_copies_out();
  place_leavings();
  list_returns();
  place_returns();
  return Run(*this).run();
}

void SwapTiming::reserve_late(double margin) {
  const auto reserved = [&](std::uint32_t a) { return use_of(a) - (swaps_[a].end - swaps_[a].returns); };
  std::vector<std::uint32_t> queue = returns_;
  std::sort(queue.begin(), queue.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(use_of(a), reserved(a), a) < std::tuple(use_of(b), reserved(b), b);
  });
  HeldChanges changes(held_);
  double next = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 2; ++round) {    // the first one shows when the next iteration's first copy must start
    std::uint32_t link_gap = 2 * operations_;  // the last one that begins before the copy must start
    for (auto a = queue.rbegin(); a != queue.rend(); ++a) {
      Swap& swap = swaps_[*a];
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
    next += iteration_;
  }
  changes.make();
}

namespace {

/// Tensors that are late in leaving: their copies still run while others, whose turn it is, are given bytes. Whoever
/// were given theirs would wait for the copy, so where there is room they had better go to nobody for so long.
class LateLeaving {
 public:
  LateLeaving(const std::vector<std::int64_t>& gap_starts, const std::vector<std::int64_t>& held, std::int64_t budget)
      : operations_(static_cast<std::uint32_t>(held.size())), starts_(gap_starts), above_(above(held, budget)) {}

  /// For how many operations from gap `leaves` on; takes the room. It has left at the time `left`, and is back after
  /// `most` operations.
  std::uint32_t operations_of(std::uint32_t leaves, double left, std::uint32_t most, std::int64_t bytes) {
    const std::uint32_t first = leaves % operations_;
    const std::uint32_t late = starts_.until_above(first, operations_, whole(left) - 1) - first;
    const std::uint32_t end = first + std::min(late, most);
    const std::uint32_t operations = above_.until_above(first, end, -bytes) - first;
    if (operations > 0) above_.add(first, first + operations, bytes);
    return operations;
  }

 private:
  static std::vector<std::int64_t> above(std::vector<std::int64_t> held, std::int64_t budget) {
    for (std::int64_t& bytes : held) bytes -= budget;
    return held;
  }

  std::uint32_t operations_;
  RangeLoad starts_;
  RangeLoad above_;  ///< bytes above the budget, per operation
};

}  // namespace

void SwapTiming::write_decisions() {
  LateLeaving late(gap_starts_, held_, static_cast<std::int64_t>(ledger_.planning.budget));
  for (std::uint32_t a = 0; a < swaps_.size(); ++a) {
    Absence& absence = ledger_.absences[a];
    const std::uint32_t shift = swaps_[a].first - absence.first;
    absence.stays = away_[a] == 0;
    absence.leaves = swaps_[a].leaves - shift;
    absence.returns = swaps_[a].returns - shift;
    absence.queued = absence.returns;
    absence.gone = absence.leaves;
    if (away_[a] != 0 && !absence.is_arrival) {
      const Swap& swap = swaps_[a];
      absence.gone += late.operations_of(swap.leaves, swap.left, swap.end - swap.leaves, swap.bytes);
    }
  }
  for (std::uint32_t v = 0; v < values_.size(); ++v) ledger_.versions[v].copied = values_[v].copied;
  std::uint32_t rank = 0;
  for (const std::uint32_t i : by_start_) ledger_.versions[copies_out_[i].value].rank = ++rank;
}

}  // namespace swapmm::planning
