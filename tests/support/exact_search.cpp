// SPDX-License-Identifier: Apache-2.0
#include "support/exact_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>

namespace swapmm::test {
namespace {

using namespace swapmm::planning;

using Time = std::int64_t;
constexpr Time unknown = std::numeric_limits<Time>::max();

/// One order of everything.
struct Order {
  std::vector<std::vector<std::uint32_t>> arrivals;  ///< per gap of the iteration, the absences that end there
  std::vector<std::uint32_t> returns;                ///< per absence: its gap, from n on in the next iteration
  std::vector<bool> out;                             ///< per absence
  /// The copies out of an iteration's values: versions, with the operation behind whose end they stand in the queue.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> copies;
};

/// Runs one order, everything as early as it can.
class Run {
 public:
  Run(const OverlapLedger& ledger, const Order& order)
      : ledger_(ledger),
        planning_(ledger.planning),
        order_(order),
        n_(ledger.planning.operations),
        released_(ledger.absences.size(), 0),
        copied_(ledger.versions.size(), 0),
        ready_(ledger.planning.sizes.size(), 0) {
    start_residents();
  }

  /// The mean iteration time; nothing where the order goes in circles.
  std::optional<double> mean() {
    constexpr std::size_t most_iterations = 100;
    std::vector<std::vector<Time>> seen;
    std::vector<Time> ends;
    for (std::size_t k = 0; k < most_iterations; ++k) {
      starts_.clear();
      if (!run_iteration()) return std::nullopt;
      for (Time& start : starts_) start -= last_end_;
      for (std::size_t earlier = seen.size(); earlier-- > 1;) {
        if (seen[earlier] != starts_ || seen[earlier - 1] != seen.back()) continue;
        return static_cast<double>(last_end_ - ends[earlier]) / static_cast<double>(k - earlier);
      }
      seen.push_back(starts_);
      ends.push_back(last_end_);
    }
    constexpr std::size_t half = most_iterations / 2;
    return static_cast<double>(ends[most_iterations - 1] - ends[half - 1]) /
           static_cast<double>(most_iterations - half);
  }

 private:
  std::uint64_t size(const Absence& a) const { return planning_.sizes[index(a.tensor)]; }

  /// What is on the device where an iteration begins.
  void start_residents() {
    for (std::size_t i = 0; i < ledger_.absences.size(); ++i) {
      const Absence& a = ledger_.absences[i];
      // At the end of operation n - 1, what may be lost then has gone.
      const bool is_over_wrap = a.lingers && !a.to_overwrite ? a.end > n_ : a.end >= n_;
      if (a.lingers) {
        if (is_over_wrap && !order_.out[i]) held_ += size(a);
        continue;
      }
      if (is_over_wrap && (!order_.out[i] || order_.returns[i] < n_)) held_ += size(a);
    }
  }

  bool run_iteration() {
    for (std::uint32_t i = 0; i < n_; ++i) {
      for (const std::uint32_t absence : order_.arrivals[i]) {
        if (!bring(absence)) return false;
      }
      if (!run_operation(i)) return false;
      copy_out();
    }
    ++iteration_;
    return true;
  }

  bool bring(std::uint32_t absence) {
    const Absence& a = ledger_.absences[absence];
    if (released_[absence] == unknown) return false;
    // A new input comes once the operation in front of available_from has ended; who left, once it has.
    const Time free = a.is_arrival ? end_before(a.first) : released_[absence];
    if (free == unknown) return false;
    if (!take(size(a), std::max({now_, link_in_, free}))) return false;
    link_in_ = now_ + ledger_.copy_in[index(a.tensor)].count();
    ready_[index(a.tensor)] = link_in_;
    starts_.push_back(now_);
    return true;
  }

  /// The end of operation `operation` - 1 of this iteration.
  Time end_before(std::uint32_t operation) const {
    const std::size_t position = iteration_ * n_ + operation;
    if (position == 0) return 0;
    return position <= ends_.size() ? ends_[position - 1] : unknown;
  }

  bool run_operation(std::uint32_t i) {
    Time start = std::max(now_, last_end_);
    std::uint64_t allocated = 0;
    for_each_access(planning_.trace.operations[i], [&](TensorId id, Access access) {
      start = std::max(start, ready_[index(id)]);
      if (access == Access::write && !is_there(i, id)) allocated += planning_.sizes[index(id)];
    });
    if (!take(allocated, start)) return false;
    starts_.push_back(now_);
    last_end_ = now_ + planning_.trace.operations[i].duration.count();
    ends_.push_back(last_end_);
    for (std::size_t v = 0; v < ledger_.versions.size(); ++v) {
      if (ledger_.versions[v].write == i) copied_[v] = unknown;
    }
    for_each_access(planning_.trace.operations[i], [&](TensorId id, Access) { leave(i, id); });
    for (std::size_t id = 0; id < ledger_.absences.size(); ++id) {
      const Absence& a = ledger_.absences[id];
      const bool may_be_lost_now = a.lingers && !a.to_overwrite && (a.end - 1) % n_ == i;
      if (may_be_lost_now && !order_.out[id]) releases_.push_back({last_end_, size(a)});
    }
    return true;
  }

  /// Whether the tensor has stayed until operation `i`, which overwrites its value.
  bool is_there(std::uint32_t i, TensorId id) const {
    for (std::size_t a = 0; a < ledger_.absences.size(); ++a) {
      const Absence& absence = ledger_.absences[a];
      if (absence.to_overwrite && absence.tensor == id && absence.end % n_ == i && !order_.out[a]) return true;
    }
    return false;
  }

  /// After a use: stays, goes, or waits for its copy out.
  void leave(std::uint32_t i, TensorId id) {
    const std::vector<Use>& uses = planning_.liveness.uses[index(id)];
    for (std::size_t u = 0; u < uses.size(); ++u) {
      if (static_cast<std::uint32_t>(uses[u].operation) != i) continue;
      const std::uint32_t absence = ledger_.absence_after[ledger_.first_use[index(id)] + u];
      if (absence == no_absence) {
        releases_.push_back({last_end_, planning_.sizes[index(id)]});
      } else if (order_.out[absence]) {
        released_[absence] = unknown;
        release(absence, last_end_);
      }
    }
  }

  void release(std::uint32_t absence, Time used) {
    const Absence& a = ledger_.absences[absence];
    const Time copied = a.version == no_version ? 0 : copied_[a.version];
    if (copied == unknown) {
      waiting_.push_back({absence, used});
      return;
    }
    released_[absence] = std::max(used, copied);
    releases_.push_back({released_[absence], size(a)});
  }

  /// Copies as far as their values are there.
  void copy_out() {
    if (order_.copies.empty()) return;
    for (;;) {
      const auto [version, behind] = order_.copies[next_copy_ % order_.copies.size()];
      const Version& v = ledger_.versions[version];
      // Behind a write of this round's iteration stands a value of it, or of the one before.
      const std::size_t round = next_copy_ / order_.copies.size();
      if (round < behind / n_) {
        ++next_copy_;  // of the iteration before the first one: taken for done
        continue;
      }
      const std::size_t write = (round - behind / n_) * n_ + v.write;
      if (write >= ends_.size()) return;
      link_out_ = std::max(link_out_, ends_[write]) + ledger_.copy_out[index(v.tensor)].count();
      starts_.push_back(link_out_);
      copied_[version] = link_out_;
      for (std::size_t w = 0; w < waiting_.size();) {
        if (ledger_.absences[waiting_[w].first].version != version) {
          ++w;
          continue;
        }
        const auto [absence, used] = waiting_[w];
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(w));
        release(absence, used);
      }
      ++next_copy_;
    }
  }

  /// Moves on to when that many bytes are free.
  bool take(std::uint64_t bytes, Time from) {
    now_ = from;
    std::sort(releases_.begin(), releases_.end());
    std::size_t done = 0;
    while (done < releases_.size() && (releases_[done].first <= now_ || held_ + bytes > planning_.budget)) {
      now_ = std::max(now_, releases_[done].first);
      held_ -= releases_[done].second;
      ++done;
    }
    releases_.erase(releases_.begin(), releases_.begin() + static_cast<std::ptrdiff_t>(done));
    held_ += bytes;
    return held_ <= planning_.budget;
  }

  const OverlapLedger& ledger_;
  const PlanningCase& planning_;
  const Order& order_;
  std::uint32_t n_;
  std::size_t iteration_ = 0;
  Time now_ = 0;  ///< of the last start
  Time last_end_ = 0;
  Time link_in_ = 0;
  Time link_out_ = 0;
  std::uint64_t held_ = 0;
  std::size_t next_copy_ = 0;
  std::vector<Time> ends_;                                ///< of all operations so far
  std::vector<Time> starts_;                              ///< of this iteration
  std::vector<Time> released_;                            ///< per absence
  std::vector<Time> copied_;                              ///< per version
  std::vector<Time> ready_;                               ///< per tensor
  std::vector<std::pair<Time, std::uint64_t>> releases_;  ///< to come, with their bytes
  std::vector<std::pair<std::uint32_t, Time>> waiting_;   ///< absences that wait for a copy out; the end of the use
};

class Enumeration {
 public:
  Enumeration(const OverlapLedger& ledger, std::uint64_t most)
      : ledger_(ledger), planning_(ledger.planning), n_(planning_.operations), most_(most), held_(n_, 0) {
    order_.arrivals.resize(n_);
    order_.out.resize(ledger.absences.size());
    order_.returns.resize(ledger.absences.size());
    for (std::uint32_t i = 0; i < n_; ++i) {
      compute_ += static_cast<double>(ledger.time[i].count());
      for_each_access(planning_.trace.operations[i],
                      [&](TensorId id, Access) { held_[i] += planning_.sizes[index(id)]; });
    }
  }

  std::optional<ExactResult> run() {
    choose_absence(0);
    if (simulated_ >= most_ || best_ == infinite) return std::nullopt;
    return ExactResult{std::chrono::nanoseconds{static_cast<Time>(std::floor(best_ + 0.5))}, simulated_};
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  bool is_over() const { return simulated_ >= most_ || best_ <= compute_; }

  bool fits(std::uint32_t first, std::uint32_t end, std::uint64_t bytes) const {
    for (std::uint32_t slot = first; slot < end; ++slot) {
      if (held_[slot % n_] + bytes > planning_.budget) return false;
    }
    return true;
  }
  void hold(std::uint32_t first, std::uint32_t end, std::uint64_t bytes) {
    for (std::uint32_t slot = first; slot < end; ++slot) held_[slot % n_] += bytes;
  }
  void let_go(std::uint32_t first, std::uint32_t end, std::uint64_t bytes) {
    for (std::uint32_t slot = first; slot < end; ++slot) held_[slot % n_] -= bytes;
  }

  /// Stays, or returns in any gap.
  void choose_absence(std::uint32_t id) {
    if (is_over()) return;
    if (id == ledger_.absences.size()) {
      list_copies();
      return;
    }
    const Absence& a = ledger_.absences[id];
    const std::uint64_t bytes = planning_.sizes[index(a.tensor)];
    if (!a.is_arrival && fits(a.first, a.end, bytes)) {
      order_.out[id] = false;
      hold(a.first, a.end, bytes);
      choose_absence(id + 1);
      let_go(a.first, a.end, bytes);
    }
    order_.out[id] = true;
    if (a.lingers) return choose_absence(id + 1);
    const double in = static_cast<double>(ledger_.copy_in[index(a.tensor)].count());
    in_ += in;
    for (std::uint32_t gap = a.end + 1; in_ < best_ && gap-- > a.first;) {
      if (!fits(gap, a.end, bytes)) break;
      order_.returns[id] = gap;
      order_.arrivals[gap % n_].push_back(id);
      hold(gap, a.end, bytes);
      choose_absence(id + 1);
      let_go(gap, a.end, bytes);
      auto& there = order_.arrivals[gap % n_];
      there.erase(std::find(there.begin(), there.end(), id));
    }
    in_ -= in;
  }

  /// The copies out that are owed, in every order.
  void list_copies() {
    std::vector<std::uint32_t> owed;
    double out = 0;
    for (std::uint32_t v = 0; v < ledger_.versions.size(); ++v) {
      const Version& version = ledger_.versions[v];
      for (std::uint32_t a = version.first_absence; a < version.first_absence + version.absences; ++a) {
        if (!order_.out[a]) continue;
        owed.push_back(v);
        out += static_cast<double>(ledger_.copy_out[index(version.tensor)].count());
        break;
      }
    }
    if (out >= best_) return;
    order_.copies.clear();
    choose_place(owed, 0);
  }

  void choose_place(const std::vector<std::uint32_t>& owed, std::size_t at) {
    if (is_over()) return;
    if (at == owed.size()) {
      permute_copies();
      return;
    }
    const Version& version = ledger_.versions[owed[at]];
    const std::uint32_t end = needed_again(version);
    for (std::uint32_t place = version.write; place < end; ++place) {
      const bool is_write = std::any_of(owed.begin(), owed.end(),
                                        [&](std::uint32_t v) { return ledger_.versions[v].write == place % n_; });
      if (!is_write) continue;
      order_.copies.push_back({owed[at], place});
      choose_place(owed, at + 1);
      order_.copies.pop_back();
    }
  }

  /// The operation before which the first value that went out comes back, counted like the write.
  std::uint32_t needed_again(const Version& version) const {
    for (std::uint32_t a = version.first_absence;; ++a) {
      if (!order_.out[a]) continue;
      const Absence& absence = ledger_.absences[a];
      return absence.first > version.write ? absence.end : absence.end + n_;
    }
  }

  /// Those behind the same write in every order; then arrivals in the same gap.
  void permute_copies() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> chosen = order_.copies;
    std::vector<std::size_t> positions(chosen.size());
    std::iota(positions.begin(), positions.end(), 0U);
    do {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
      order.reserve(chosen.size());
      for (const std::size_t p : positions) order.push_back(chosen[p]);
      const auto is_before = [&](const auto& a, const auto& b) { return a.second % n_ < b.second % n_; };
      if (!std::is_sorted(order.begin(), order.end(), is_before)) continue;
      order_.copies = order;
      permute_arrivals(0);
    } while (!is_over() && std::next_permutation(positions.begin(), positions.end()));
    order_.copies = std::move(chosen);
  }

  void permute_arrivals(std::uint32_t gap) {
    if (gap == n_) {
      ++simulated_;
      if (const auto mean = Run(ledger_, order_).mean()) best_ = std::min(best_, *mean);
      return;
    }
    std::vector<std::uint32_t> sorted = order_.arrivals[gap];
    const std::vector<std::uint32_t> before = sorted;
    std::sort(sorted.begin(), sorted.end());
    do {
      order_.arrivals[gap] = sorted;
      permute_arrivals(gap + 1);
    } while (!is_over() && std::next_permutation(sorted.begin(), sorted.end()));
    order_.arrivals[gap] = before;
  }

  const OverlapLedger& ledger_;
  const PlanningCase& planning_;
  std::uint32_t n_;
  std::uint64_t most_;
  Order order_;
  std::vector<std::uint64_t> held_;  ///< per operation
  double compute_ = 0;
  double in_ = 0;
  double best_ = infinite;
  std::uint64_t simulated_ = 0;
};

}  // namespace

std::optional<ExactResult> least_iteration(const Trace& trace, const Machine& machine, std::uint64_t most_simulated) {
  if (!trace.host_reads.empty() || machine.duplex == Duplex::half) return std::nullopt;
  const Result<PlanningCase> planning = make_planning_case(trace, machine);
  if (!planning) return std::nullopt;
  const OverlapLedger ledger(*planning);
  return Enumeration(ledger, most_simulated).run();
}

}  // namespace swapmm::test
