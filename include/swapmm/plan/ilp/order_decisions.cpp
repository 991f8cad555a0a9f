// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ilp/order_decisions.hpp>

#include <cstddef>
#include <cstdint>

namespace swapmm::planning::ilp {

void decide(const OrdersModel& model, const std::vector<double>& values, bool leaves_early, OverlapLedger& ledger) {
  const std::uint32_t n = ledger.planning.operations;
  const auto value = [&](int column) { return column < 0 ? 0.0 : values[static_cast<std::size_t>(column)]; };
  const auto start_of = [&](std::uint32_t i) {
    const std::uint32_t iteration = i / n;
    return value(model.operation_start[i % n]) + iteration * value(model.iteration);
  };
  /// The first gap from `first` on that does not end before `time`.
  const auto gap_of = [&](double time, std::uint32_t first, std::uint32_t end) {
    constexpr double precision = 1e-3;
    while (first < end && start_of(first) < time - precision) ++first;
    return first;
  };
  for (std::size_t id = 0; id < ledger.absences.size(); ++id) {
    Absence& a = ledger.absences[id];
    a.stays = model.out[id] >= 0 && value(model.out[id]) < 0.5;
    a.returns = a.first;
    for (const int started : model.started[id]) {
      if (value(started) < 0.5) ++a.returns;
    }
    if (a.lingers) a.returns = a.end;
    a.queued = a.returns;
    a.leaves = a.first;
    if (!leaves_early && !a.is_arrival) a.leaves = gap_of(value(model.release[id]), a.first, a.returns);
  }
  for (std::size_t v = 0; v < ledger.versions.size(); ++v) {
    Version& version = ledger.versions[v];
    version.copied = gap_of(value(model.copy_start[v]), version.write + 1, 2 * n);
  }
}

}  // namespace swapmm::planning::ilp
