// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/schedule/absence_stays.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <queue>
#include <tuple>

namespace swapmm::planning {
namespace {

class StayWriter {
 public:
  explicit StayWriter(const OverlapLedger& ledger)
      : ledger_(ledger), planning_(ledger.planning), n_(ledger.planning.operations) {}

  std::vector<Stay> write() {
    for (std::size_t t = 0; t < planning_.sizes.size(); ++t) add_stays(id_at<TensorId>(t));
    return std::move(result_);
  }

  std::vector<Stay> write(TensorId id) {
    add_stays(id);
    return std::move(result_);
  }

 private:
  const Absence* absence_after(TensorId id, std::size_t use) const {
    const std::uint32_t absence = ledger_.absence_after[ledger_.first_use[index(id)] + use];
    return absence == no_absence ? nullptr : &ledger_.absences[absence];
  }

  /// The absence before use `use`, with which a stay begins. `behind` is the absence after the previous use.
  const Absence* absence_before(TensorId id, std::size_t use, const Absence* behind) const {
    const std::uint32_t arrival = ledger_.arrival[index(id)];
    if (use == 0 && arrival != no_absence) return &ledger_.absences[arrival];
    return behind && behind->lingers ? nullptr : behind;
  }

  static std::uint32_t gap_of_leaving(const Absence& absence) { return absence.stays ? absence.end : absence.leaves; }

  void add_stays(TensorId id) {
    const std::vector<Use>& uses = planning_.liveness.uses[index(id)];
    // A lingering value stays for its tensor's next value if that comes as soon as the old one may be lost.
    const auto stays_after = [&](std::size_t use) {
      const Absence* absence = absence_after(id, use);
      if (!absence || !absence->stays) return false;
      const auto next = static_cast<std::uint32_t>(uses[(use + 1) % uses.size()].operation);
      return !absence->lingers || absence->end % n_ == next;
    };
    std::size_t cut = 0;  // the circle of uses is cut at a use after which the tensor does not stay
    while (cut < uses.size() && stays_after(cut)) ++cut;
    if (cut == uses.size()) {
      if (!uses.empty()) result_.push_back(make_permanent_stay(id, n_));
      return;
    }
    std::optional<Stay> open;
    for (std::size_t i = 1; i <= uses.size(); ++i) {
      const std::size_t use = (cut + i) % uses.size();
      const auto operation = static_cast<std::uint32_t>(uses[use].operation);
      if (!open)
        open = arriving_stay(id, operation, absence_before(id, use, absence_after(id, (cut + i - 1) % uses.size())));
      if (stays_after(use)) continue;
      const Absence* absence = absence_after(id, use);
      const std::uint32_t leaves = (absence ? gap_of_leaving(*absence) : operation + 1) % n_;
      open->length = leaves > open->start ? leaves - open->start : leaves + n_ - open->start;
      if (absence && !absence->stays && absence->gone > absence->leaves)
        open->kept = open->length + (absence->gone - absence->leaves);
      open->write_back = write_back_gap(absence, *open);
      if (absence && absence->version != no_version) open->copy_rank = ledger_.versions[absence->version].rank;
      result_.push_back(*open);
      open.reset();
    }
  }

  Stay arriving_stay(TensorId id, std::uint32_t operation, const Absence* before) const {
    if (!before) return make_stay(id, operation, operation + 1);
    const std::uint32_t gap = before->returns % n_;
    Stay stay = make_stay(id, gap, gap + 1);
    stay.queue_at = std::min(gap + (before->queued - before->returns), n_ - 1);
    return stay;
  }

  /// The gap of the write-back, counted on from the stay's start; 0: as soon as the value is written.
  std::uint32_t write_back_gap(const Absence* absence, const Stay& stay) const {
    if (!absence || absence->version == no_version) return 0;
    const Version& version = ledger_.versions[absence->version];
    if (version.copied == 0) return 0;
    return version.write >= stay.start ? version.copied : version.copied + n_;
  }

  const OverlapLedger& ledger_;
  const PlanningCase& planning_;
  std::uint32_t n_;
  std::vector<Stay> result_;
};

/// A tensor that is on the device, but not in the bundle of the operation.
struct Held {
  std::uint32_t next_use = 0;  ///< counted from the present round's operation 0
  bool is_clean = false;
  std::uint32_t absence = 0;
  std::uint32_t shift = 0;  ///< slots of the absence are those of the present round plus this

  friend bool operator<(const Held& a, const Held& b) {
    return std::tie(a.next_use, a.is_clean, b.absence) < std::tie(b.next_use, b.is_clean, a.absence);
  }
};

class LettingGo {
 public:
  LettingGo(OverlapLedger& ledger, std::uint64_t bytes)
      : ledger_(ledger), bytes_(bytes), n_(ledger.planning.operations), held_(n_), arriving_(n_) {}

  void run() {
    count_bundles();
    for (std::uint32_t a = 0; a < ledger_.absences.size(); ++a) list(a);
    for (std::uint32_t i = 0; i < n_; ++i) {
      for (const Held& held : arriving_[i]) candidates_.push(held);
      while (held_[i] > bytes_ && !candidates_.empty()) {
        const Held held = candidates_.top();
        candidates_.pop();
        let_go(held, i);
      }
    }
  }

 private:
  void count_bundles() {
    for (std::uint32_t i = 0; i < n_; ++i) {
      for_each_access(ledger_.planning.trace.operations[i],
                      [&](TensorId id, Access) { held_[i] += ledger_.planning.sizes[index(id)]; });
    }
  }

  void list(std::uint32_t id) {
    const Absence& a = ledger_.absences[id];
    if (a.stays) return list_piece(id, a.first, a.end);
    list_piece(id, a.first, a.leaves);
    list_piece(id, a.returns, a.end);
  }

  void list_piece(std::uint32_t id, std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t slot = first; slot < end; ++slot) held_[slot % n_] += size(id);
    for (const std::uint32_t shift : {0U, n_}) {
      if (end <= shift || first >= end || first >= n_ + shift) continue;
      push(id, shift, first > shift ? first - shift : 0);
    }
  }

  void push(std::uint32_t id, std::uint32_t shift, std::uint32_t from) {
    const Absence& a = ledger_.absences[id];
    arriving_[from].push_back({a.end - shift, a.version == no_version, id, shift});
  }

  void let_go(const Held& held, std::uint32_t i) {
    Absence& a = ledger_.absences[held.absence];
    const std::uint32_t slot = i + held.shift;
    if (slot >= a.end) return;
    if (a.stays) {
      a.stays = false;
      a.leaves = slot;
      a.returns = a.end;
      a.queued = a.end;
      free(held.absence, slot, a.end);
    } else if (slot >= a.first && slot < a.leaves) {
      free(held.absence, slot, a.leaves);
      a.leaves = slot;
    } else if (slot >= a.returns) {
      free(held.absence, a.returns, slot + 1);
      a.returns = slot + 1;
      a.queued = std::max(a.queued, a.returns);
      if (a.returns < a.end && i + 1 < n_) push(held.absence, held.shift, i + 1);
    }
  }

  void free(std::uint32_t id, std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t slot = first; slot < end; ++slot) held_[slot % n_] -= size(id);
  }

  std::uint64_t size(std::uint32_t id) const { return ledger_.planning.sizes[index(ledger_.absences[id].tensor)]; }

  OverlapLedger& ledger_;
  std::uint64_t bytes_;
  std::uint32_t n_;
  std::vector<std::uint64_t> held_;          ///< bytes, per operation
  std::vector<std::vector<Held>> arriving_;  ///< per operation: tensors that are there from it on
  std::priority_queue<Held> candidates_;     ///< may hold tensors that have left since; let_go() skips them
};

}  // namespace

bool return_late(Absence& absence) {
  if (absence.stays || absence.lingers || absence.returns == absence.end) return false;
  absence.returns = absence.queued = absence.end;
  return true;
}

bool leave_early(Absence& absence) {
  if (absence.stays || absence.is_arrival || absence.gone == absence.first) return false;
  absence.leaves = absence.gone = absence.first;
  return true;
}

std::vector<Stay> stays_of(const OverlapLedger& ledger) { return StayWriter(ledger).write(); }

std::vector<Stay> stays_of(const OverlapLedger& ledger, TensorId tensor) { return StayWriter(ledger).write(tensor); }

void let_go_until_it_fits(OverlapLedger& ledger, std::uint64_t bytes) { LettingGo(ledger, bytes).run(); }

}  // namespace swapmm::planning
