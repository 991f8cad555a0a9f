// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/excess_overlap/overlap_stays.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>

#include <swapmm/plan/schedule/absence_stays.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

class OverlapSearch {
 public:
  OverlapSearch(OverlapLedger& ledger, const OverlapChoice& choice, const HidingOptions& options)
      : ledger_(ledger),
        planning_(ledger.planning),
        choice_(choice),
        options_(options),
        n_(ledger.planning.operations) {}

  std::vector<Stay> run() {
    for (std::size_t i = 0; i < ledger_.absences.size(); ++i) {
      ledger_.absences[i].stays = !choice_.decided.empty() && choice_.decided[i] && i != choice_.goes_out;
    }
    start_from_bundles();
    let_stay(choice_.stay_bytes);
    for (int round = 0; round < options_.rounds; ++round) {
      start_from_bundles();
      if (options_.write_backs) hide_write_backs();
      hide_swap_ins();
      if (!let_stay(choice_.bytes) && !copies_met_) break;
    }
    if (options_.early_starts) start_early();
    return stays_of(ledger_);
  }

 private:
  std::uint64_t size(const Absence& a) const { return planning_.sizes[index(a.tensor)]; }
  std::uint64_t& room_taken(std::uint32_t slot) { return taken_[slot % n_]; }
  bool has_room(std::uint32_t slot, std::uint64_t bytes, std::uint64_t limit) {
    return room_taken(slot) + bytes <= limit;
  }
  void take(std::uint32_t first, std::uint32_t end, std::uint64_t bytes) {
    for (std::uint32_t slot = first; slot < end; ++slot) room_taken(slot) += bytes;
  }

  /// Step 1: every bundle comes in right before its operation and goes out right after it, except decided stays.
  void start_from_bundles() {
    taken_.assign(n_, 0);
    for (std::uint32_t i = 0; i < n_; ++i) {
      for_each_access(planning_.trace.operations[i],
                      [&](TensorId id, Access) { taken_[i] += planning_.sizes[index(id)]; });
    }
    in_left_ = ledger_.time;
    out_left_ = ledger_.time;
    for (Absence& a : ledger_.absences) {
      if (a.stays) take(a.first, a.end, size(a));
      a.leaves = a.first;
      a.returns = a.end;
      a.queued = a.end;
    }
    copies_met_ = false;
  }

  /// Step 4: tensors stay if there is room from their leaving to their returning, which saves two copies. Returns
  /// whether any does.
  bool let_stay(std::uint64_t limit) {
    bool any = false;
    for (const std::uint32_t id : choice_.order.empty() ? ledger_.shortest_first : choice_.order) {
      Absence& a = ledger_.absences[id];
      if (a.stays || a.is_arrival || id == choice_.goes_out) continue;
      bool fits = true;
      for (std::uint32_t slot = a.leaves; fits && slot < a.returns; ++slot) fits = has_room(slot, size(a), limit);
      if (!fits) continue;
      take(a.leaves, a.returns, size(a));
      a.stays = true;
      any = true;
    }
    return any;
  }

  nanoseconds& left(std::vector<nanoseconds>& link, std::uint32_t slot) { return link[slot % n_]; }
  std::vector<nanoseconds>& out_link() { return planning_.machine.duplex == Duplex::half ? in_left_ : out_left_; }

  /// Copies values to the host, beginning with the operation after the write. A tensor leaves when its copy has ended,
  /// or when its room is needed.
  void hide_write_backs() {
    for (const std::uint32_t v : versions_by_write()) {
      const Version& version = ledger_.versions[v];
      Absence* out = nullptr;
      for (std::uint32_t i = version.first_absence; !out && i < version.first_absence + version.absences; ++i) {
        if (!ledger_.absences[i].stays) out = &ledger_.absences[i];
      }
      if (!out) continue;
      nanoseconds rest = ledger_.copy_out[index(version.tensor)];
      // The write comes before the absence, possibly in the iteration before.
      const std::uint32_t write = version.write < out->first ? version.write : version.write - n_;
      std::uint32_t slot = write + 1;
      for (; rest.count() > 0 && slot != out->end; ++slot) {
        const bool is_away = slot >= out->first && slot < out->end;
        if (is_away && !has_room(slot, size(*out), choice_.bytes)) break;
        nanoseconds& time = left(out_link(), slot + n_);
        const nanoseconds part = std::min(rest, time);
        rest -= part;
        time -= part;
        if (!is_away) continue;
        room_taken(slot) += size(*out);
        out->leaves = slot + 1;
      }
    }
  }

  std::vector<std::uint32_t> versions_by_write() const {
    std::vector<std::uint32_t> ids(ledger_.versions.size());
    std::iota(ids.begin(), ids.end(), 0U);
    std::stable_sort(ids.begin(), ids.end(),
                     [&](auto a, auto b) { return ledger_.versions[a].write < ledger_.versions[b].write; });
    return ids;
  }

  std::vector<std::uint32_t> moving_by(std::uint32_t Absence::*key) const {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t i = 0; i < ledger_.absences.size(); ++i) {
      if (!ledger_.absences[i].stays && !ledger_.absences[i].lingers) ids.push_back(i);
    }
    std::stable_sort(ids.begin(), ids.end(),
                     [&](auto a, auto b) { return ledger_.absences[a].*key % n_ < ledger_.absences[b].*key % n_; });
    return ids;
  }

  /// Steps 2 and 3: goes backwards from each operation that waits for a swap-in to the operations that hide it.
  void hide_swap_ins() {
    const std::vector<std::uint32_t> ids = moving_by(&Absence::end);
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
      Absence& a = ledger_.absences[*id];
      nanoseconds rest = ledger_.copy_in[index(a.tensor)];
      std::uint32_t slot = a.end;
      while (options_.swap_ins && rest.count() > 0 && slot > a.leaves && has_room(slot - 1, size(a), choice_.bytes)) {
        --slot;
        nanoseconds& time = left(in_left_, slot);
        const nanoseconds part = std::min(rest, time);
        rest -= part;
        time -= part;
        if (part.count() > 0) a.returns = slot;  // an earlier return does not help
      }
      a.queued = a.returns;
      take(a.returns, a.end, size(a));
      if (a.returns > a.leaves || a.is_arrival) continue;
      a.stays = true;  // its swap-in would begin at its own swap-out
      copies_met_ = true;
    }
  }

  /// Lets swap-ins start earlier than they must, as soon as the link has finished the copies before them and there is
  /// room, so that late copies have time to spare.
  void start_early() {
    std::vector<nanoseconds> start(2 * n_ + 1, nanoseconds{0});  // of the operations, if there were no more stalls
    for (std::uint32_t i = 0; i < 2 * n_; ++i) start[i + 1] = start[i] + ledger_.time[i % n_];
    nanoseconds link_free{0};
    for (const std::uint32_t id : moving_by(&Absence::queued)) {
      Absence& a = ledger_.absences[id];
      const std::uint32_t shift = a.queued >= n_ ? n_ : 0;
      std::uint32_t gap = a.queued;
      while (gap > a.leaves && gap > shift && start[gap - shift] > link_free &&
             has_room(gap - 1, size(a), choice_.bytes)) {
        --gap;
      }
      take(gap, a.returns, size(a));
      a.returns = gap;
      a.queued = gap;
      link_free = std::max(link_free, start[gap - shift]) + ledger_.copy_in[index(a.tensor)];
    }
  }

  OverlapLedger& ledger_;
  const PlanningCase& planning_;
  const OverlapChoice& choice_;
  const HidingOptions& options_;
  std::uint32_t n_;
  std::vector<std::uint64_t> taken_;   ///< per operation, bytes
  std::vector<nanoseconds> in_left_;   ///< per operation: time for which the link is idle
  std::vector<nanoseconds> out_left_;  ///< the same for the link out; unused if both directions share one engine
  bool copies_met_ = false;
};

}  // namespace

std::vector<bool> decided_stays(const OverlapLedger& ledger) {
  std::vector<bool> stays;
  stays.reserve(ledger.absences.size());
  for (const Absence& absence : ledger.absences) stays.push_back(absence.stays);
  return stays;
}

std::vector<Stay> overlap_stays(OverlapLedger& ledger, const OverlapChoice& choice, const HidingOptions& options) {
  return OverlapSearch(ledger, choice, options).run();
}

}  // namespace swapmm::planning
