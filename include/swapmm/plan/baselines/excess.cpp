// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/baselines/excess.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/fit.hpp>

namespace swapmm::planning {
namespace {

using std::chrono::nanoseconds;

/// A schedule says of each absence whether the tensor stays, and else under which operation it comes in (its
/// `returns`). At `end`, the operation that needs it, it comes in right before that operation, and under none.
class Excess {
 public:
  Excess(const PlanningCase& planning, std::uint64_t bytes)
      : planning_(planning), ledger_(planning), bytes_(bytes), n_(planning.operations) {
    start_from_bundles();
  }

  std::vector<Stay> run(int rounds) {
    std::unordered_set<std::uint64_t> schedules{digest()};
    for (int round = 0; round < rounds; ++round) {
      bool changed = false;
      for (std::uint32_t operation = 0; operation < n_; ++operation) changed = relieve(operation) || changed;
      if (!changed || !schedules.insert(digest()).second) break;  // the rest would be a circle
    }
    return stays_of(ledger_);
  }

 private:
  // ---- the schedule

  void start_from_bundles() {
    room_.assign(n_, 0);
    copies_.assign(n_, nanoseconds{0});
    coming_in_.assign(n_, {});
    going_out_.assign(ledger_.versions.size(), 0);
    for (std::uint32_t i = 0; i < n_; ++i) {
      for_each_access(planning_.trace.operations[i],
                      [&](TensorId id, Access) { room_[i] += planning_.sizes[index(id)]; });
    }
    for (std::uint32_t id = 0; id < ledger_.absences.size(); ++id) {
      Absence& a = ledger_.absences[id];
      a.stays = false;
      a.leaves = a.first;
      coming_in_[a.end % n_].push_back(id);
      come_in(a, a.end);
      if (a.version != no_version && ++going_out_[a.version] == 1) copies_[writer(a)] += out_time(a);
    }
  }

  [[nodiscard]] std::uint64_t size(const Absence& a) const { return planning_.sizes[index(a.tensor)]; }
  [[nodiscard]] nanoseconds in_time(const Absence& a) const { return ledger_.copy_back(a); }
  [[nodiscard]] nanoseconds out_time(const Absence& a) const { return ledger_.copy_out[index(a.tensor)]; }

  // The operation that wrote the value. The copy to the host is that operation's, and there is one for each value.
  [[nodiscard]] std::uint32_t writer(const Absence& a) const { return ledger_.versions[a.version].write % n_; }

  void come_in(Absence& a, std::uint32_t slot) {
    a.returns = slot;
    a.queued = slot;
    copies_[slot % n_] += in_time(a);
    for (std::uint32_t i = slot; i < a.end; ++i) room_[i % n_] += size(a);
  }
  void take_back(const Absence& a) {
    copies_[a.returns % n_] -= in_time(a);
    for (std::uint32_t i = a.returns; i < a.end; ++i) room_[i % n_] -= size(a);
  }
  void stay(Absence& a) {
    a.stays = true;
    for (std::uint32_t i = a.first; i < a.end; ++i) room_[i % n_] += size(a);
    if (a.version != no_version && --going_out_[a.version] == 0) copies_[writer(a)] -= out_time(a);
  }

  [[nodiscard]] std::uint64_t digest() const {
    std::uint64_t digest = 0;
    for (const Absence& a : ledger_.absences) {
      digest = (digest ^ (a.stays ? 0xffffffffU : a.returns)) * 0x9e3779b97f4a7c15U;
      digest ^= digest >> 29U;
    }
    return digest;
  }

  // ---- the steps

  [[nodiscard]] nanoseconds time(std::uint32_t operation) const { return ledger_.time[operation]; }
  [[nodiscard]] bool is_excess(std::uint32_t operation) const { return copies_[operation] > time(operation); }

  /// The swap-ins for an excess operation look for a better place. True if one found it.
  bool relieve(std::uint32_t operation) {
    bool changed = false;
    for (const std::uint32_t id : coming_in_[operation]) {
      Absence& a = ledger_.absences[id];
      if (a.stays || !(is_excess(operation) || is_excess(a.returns % n_))) continue;
      changed = move(a) || changed;
    }
    return changed;
  }

  /// Goes back from the operation that needs the tensor, as long as there is room for it. If the copy to the host is
  /// met on the way, both copies are not needed. Else the tensor comes in under the operation that hides the most of
  /// its copy, the nearest one of those that hide the same.
  bool move(Absence& a) {
    const std::uint32_t old = a.returns;
    take_back(a);
    std::uint32_t chosen = a.end;
    nanoseconds most{0};
    std::uint32_t slot = a.end;
    while (slot > a.first && room_[(slot - 1) % n_] + size(a) <= bytes_) {
      --slot;
      const nanoseconds idle = time(slot % n_) - copies_[slot % n_];
      const nanoseconds hidden = std::min(in_time(a), idle);
      if (hidden <= most) continue;
      most = hidden;
      chosen = slot;
    }
    if (slot == a.first && !a.is_arrival) {
      stay(a);
      return true;
    }
    come_in(a, chosen);
    return chosen != old;
  }

  const PlanningCase& planning_;
  OverlapLedger ledger_;
  std::uint64_t bytes_;
  std::uint32_t n_;
  std::vector<std::uint64_t> room_;                    ///< per operation: bytes on the device
  std::vector<nanoseconds> copies_;                    ///< per operation: that run under it, or are its own
  std::vector<std::vector<std::uint32_t>> coming_in_;  ///< per operation: absences that end with it
  std::vector<std::uint32_t> going_out_;               ///< per version: absences over which the tensor is away
};

}  // namespace

Result<Plan> build_excess_plan(const PlanningCase& planning, const ExcessOptions& options, std::string_view planner) {
  return build_fitting_plan(planning, planner, Pace::from_their_gap, options.fitting,
                            [&](std::uint64_t bytes) { return Excess(planning, bytes).run(options.rounds); });
}

}  // namespace swapmm::planning
