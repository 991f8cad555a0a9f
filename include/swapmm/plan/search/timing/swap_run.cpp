// SPDX-License-Identifier: Apache-2.0
// Runs a pass, and simulates the iteration with its gaps.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/plan/search/timing/swap_timing.hpp>
#include <swapmm/plan/search/timing/timing_numbers.hpp>

namespace swapmm::planning {

/// Simulates iterations with the gaps of a pass.
class SwapTiming::Run {
 private:
  /// Numbers by gap, those of one gap in the order in which they were listed. Vectors of vectors would allocate memory
  /// for most gaps in each pass.
  class GapLists {
   public:
    /// `list(add)` calls add(gap, number) for each number. It is called twice.
    template <class List>
    GapLists(std::uint32_t gaps, const List& list) : first_(gaps + 1) {
      list([&](std::uint32_t gap, std::uint32_t) { ++first_[gap + 1]; });
      std::partial_sum(first_.begin(), first_.end(), first_.begin());
      numbers_.resize(first_.back());
      std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
      list([&](std::uint32_t gap, std::uint32_t number) { numbers_[next[gap]++] = number; });
    }

    [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t gap) const {
      return std::span(numbers_).subspan(first_[gap], first_[gap + 1] - first_[gap]);
    }

   private:
    std::vector<std::uint32_t> first_;  ///< per gap, and the end
    std::vector<std::uint32_t> numbers_;
  };

 public:
  explicit Run(SwapTiming& timing)
      : timing_(timing),
        n_(timing.operations_),
        leaving_(list_leaving(timing)),
        returning_(n_,
                   [&](const auto& add) {
                     for (const std::uint32_t a : timing.returns_) add(timing.swaps_[a].returns % n_, a);
                   }),
        copied_(n_,
                [&](const auto& add) {
                  for (const std::uint32_t i : timing.by_start_) {
                    const std::uint32_t v = timing.copies_out_[i].value;
                    add(timing.values_[v].copied % n_, v);
                  }
                }),
        copy_ends_(timing.values_.size()),
        operation_ends_(n_),
        needed_(n_),
        in_free_(timing.stores_),
        out_free_(timing.stores_),
        dead_(timing.dead_) {
    for (std::uint32_t a = 0; a < timing.swaps_.size(); ++a) {
      if (!timing.lingers(a) || timing.away_[a] != 0) continue;
      dead_[(timing.swaps_[a].end + n_ - 1) % n_] += timing.swaps_[a].bytes;
    }
  }

  /// Returns the time of the last of some iterations. Leaves its ends and waits in `timing`.
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
  /// Those that leave in each gap. Those that wait for a copy come last, in the order of the copies.
  static GapLists list_leaving(const SwapTiming& timing) {
    const std::uint32_t n = timing.operations_;
    std::vector<char> follows_copy(timing.swaps_.size());
    for (const std::uint32_t i : timing.by_start_) {
      const std::uint32_t a = timing.values_[timing.copies_out_[i].value].released_by;
      if (a != no_absence) follows_copy[a] = 1;
    }
    return {n, [&](const auto& add) {
              const auto leave = [&](std::uint32_t a) { add(timing.swaps_[a].leaves % n, a); };
              for (const std::uint32_t a : timing.gone_) {
                if (follows_copy[a] == 0) leave(a);
              }
              for (const std::uint32_t a : timing.returns_) {
                if (!timing.is_arrival(a) && follows_copy[a] == 0) leave(a);
              }
              for (const std::uint32_t i : timing.by_start_) {
                const std::uint32_t a = timing.values_[timing.copies_out_[i].value].released_by;
                if (a != no_absence) leave(a);
              }
            }};
  }

  void pass_gap(std::uint32_t gap) {
    const std::uint32_t before = gap > 0 ? gap - 1 : n_ - 1;
    held_ = timing_.held_[before];
    limit_ = timing_.limits_[gap];
    for (const std::uint32_t v : copied_[gap]) copy_out(v);
    if (dead_[before] > 0) release(now_, dead_[before]);
    for (const std::uint32_t a : leaving_[gap]) leave(a);
    double earliest = std::numeric_limits<double>::infinity();  // of everything that takes room in this gap
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
    const std::uint8_t store = timing_.store_of_value(v);
    double& free = timing_.one_engine_ ? in_free_[store] : out_free_[store];
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
    // The value is there once the host has provided the input, or once the value has gone to the host.
    const double given = timing_.is_arrival(a) ? operation_ends_[(swap.first + n_ - 1) % n_] : swap.left;
    double& free = in_free_[timing_.store_of(a)];
    const double start = std::max({free, given, room_for(swap.bytes)});
    free = start + swap.copy_in;
    double& needed = needed_[swap.end % n_];
    needed = std::max(needed, free);
    return start;
  }

  /// The time from which this many more bytes are free, after enough of the releases so far.
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
  GapLists leaving_;               ///< absences
  GapLists returning_;             ///< absences
  GapLists copied_;                ///< values
  std::vector<double> copy_ends_;  ///< of values
  std::vector<double> operation_ends_;
  std::vector<double> needed_;  ///< per operation: when the copies that it waits for have ended
  std::vector<Release> released_;
  std::size_t first_ = 0;            ///< the first release that nothing has waited for yet
  std::int64_t not_needed_yet_ = 0;  ///< bytes of these releases
  double room_ = 0;                  ///< when all releases before them had happened
  std::int64_t held_ = 0;
  std::int64_t limit_ = 0;
  std::vector<double> in_free_;     ///< of each link
  std::vector<double> out_free_;    ///< of each link
  std::vector<std::int64_t> dead_;  ///< bytes of values that are dead after an operation, those that have lingered too
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

}  // namespace swapmm::planning
