// SPDX-License-Identifier: Apache-2.0
// Decisions, limits and guesses. For the pass, see swap_gaps.cpp and swap_run.cpp; for its results, swap_decisions.cpp.
#include <swapmm/plan/search/timing/swap_timing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include <swapmm/plan/search/timing/timing_numbers.hpp>

namespace swapmm::planning {
namespace {

/// Copies may take any number of iterations. A gap is never looked up more than this many iterations ahead, so its
/// number fits 32 bits.
constexpr double most_rounds = 64;

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
  if (ledger.stores != nullptr) list_kept();
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
              static_cast<double>(ledger_.copy_back(absence).count())};
    if (absence.is_arrival && absence.first == 0) {
      // It may begin to arrive in the iteration before.
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
  if (!kept_.empty()) store_again(kept_of_[absence]);
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

}  // namespace swapmm::planning
