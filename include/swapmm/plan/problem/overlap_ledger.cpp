// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/problem/overlap_ledger.hpp>

#include <algorithm>
#include <numeric>

namespace swapmm::planning {
namespace {

/// Computes absences and versions of one tensor from its uses.
void list_tensor(const PlanningCase& planning, TensorId id, OverlapLedger& ledger) {
  const std::vector<Use>& uses = planning.liveness.uses[index(id)];
  const std::size_t first_use = ledger.absence_after.size();
  ledger.first_use.push_back(static_cast<std::uint32_t>(first_use));
  ledger.absence_after.resize(first_use + uses.size(), no_absence);
  ledger.arrival.push_back(no_absence);
  if (uses.empty()) return;
  const TraceTensor& tensor = planning.trace.tensors[index(id)];
  if (tensor.kind == TensorKind::input && uses.front().access != Access::write) {
    Absence arrival;
    arrival.tensor = id;
    arrival.first = tensor.available_from;
    arrival.end = static_cast<std::uint32_t>(uses.front().operation);
    arrival.version = no_version;
    arrival.is_arrival = true;
    ledger.arrival.back() = static_cast<std::uint32_t>(ledger.absences.size());
    ledger.absences.push_back(arrival);
  }
  // A persistent value may have been written before the iteration's start: begin with the last write.
  std::uint32_t version = no_version;
  const auto last_write =
      std::find_if(uses.rbegin(), uses.rend(), [](const Use& u) { return u.access != Access::read; });
  const bool wraps = tensor.kind == TensorKind::persistent && last_write != uses.rend();
  const std::size_t begin = wraps ? static_cast<std::size_t>(uses.rend() - last_write) - 1 : 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::size_t position = (begin + i) % uses.size();
    if (uses[position].access != Access::read) {
      version = static_cast<std::uint32_t>(ledger.versions.size());
      ledger.versions.push_back({id, static_cast<std::uint32_t>(uses[position].operation),
                                 static_cast<std::uint32_t>(ledger.absences.size()), 0});
    }
    const auto gap = gap_after_use(planning, id, position);
    if (!gap || !gap->value_needed) continue;
    Absence absence;
    absence.tensor = id;
    absence.first = gap->from + 1;
    absence.end = gap->to;
    absence.version = version;
    absence.lingers = gap->lingers();
    absence.to_overwrite = gap->lost_from > gap->to;
    ledger.absence_after[first_use + position] = static_cast<std::uint32_t>(ledger.absences.size());
    if (version != no_version) ++ledger.versions[version].absences;
    ledger.absences.push_back(absence);
  }
}

}  // namespace

OverlapLedger::OverlapLedger(const PlanningCase& planning_, const LinkedStores* stores_)
    : planning(planning_), stores(stores_) {
  const std::size_t tensors = planning.sizes.size();
  copy_in.reserve(tensors);
  copy_out.reserve(tensors);
  for (std::size_t t = 0; t < tensors; ++t) {
    const auto id = id_at<TensorId>(t);
    copy_in.push_back(copy_time(planning.machine.h2d, copied_bytes(planning.trace.tensors[t])));
    copy_out.push_back(copy_time(planning.machine.d2h, copied_bytes(planning.trace.tensors[t])));
    list_tensor(planning, id, *this);
  }
  for (const TraceOperation& operation : planning.trace.operations) time.push_back(operation.duration);

  // Staying has a cost only while more is live than fits. There, a value that must also be written back saves two
  // copies by staying.
  std::vector<double> crowded(planning.operations + 1, 0.0);
  for (std::uint32_t i = 0; i < planning.operations; ++i) {
    const bool is_crowded = planning.liveness.live[i].value > planning.budget;
    crowded[i + 1] = crowded[i] + (is_crowded ? 1.0 : 1e-6);
  }
  std::vector<double> cost;
  cost.reserve(absences.size());
  for (const Absence& a : absences) {
    const auto before = [&](std::uint32_t slot) {
      const std::uint32_t n = planning.operations;
      return slot < n ? crowded[slot] : crowded[n] + crowded[slot - n];
    };
    const double held = before(a.end) - before(a.first);
    const bool is_written_back = !a.lingers && a.version != no_version && versions[a.version].absences == 1;
    cost.push_back(is_written_back ? held / 2 : held);
  }
  shortest_first.resize(absences.size());
  std::iota(shortest_first.begin(), shortest_first.end(), 0U);
  std::stable_sort(shortest_first.begin(), shortest_first.end(), [&](auto a, auto b) { return cost[a] < cost[b]; });
}

}  // namespace swapmm::planning
