// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/bound.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/relaxation/lower_bound.hpp>
#include <swapmm/plan/relaxation/replay_bound.hpp>
#include <swapmm/plan/ways/program/pieces.hpp>

namespace swapmm::planning {
namespace {

/// A way for a value that is live while an operation runs to be away then, per byte of room.
struct Way {
  double compute = 0;  ///< nanoseconds of computation
  double copied = 0;   ///< nanoseconds of copies in
};

/// A value, and the ways that it has.
struct LiveValue {
  double bytes = 0;
  std::size_t first = 0;  ///< position of its ways
  std::size_t end = 0;
};

/// Per operation: the bytes that it makes and that others use. The rest is of no use to anybody, such as work areas.
std::vector<double> bytes_made(const Trace& trace, const Liveness& liveness) {
  std::vector<double> bytes(trace.operations.size(), 0.0);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    for_each_access(trace.operations[i], [&](TensorId made, Access access) {
      if (access == Access::read || liveness.uses[index(made)].size() < 2) return;
      bytes[i] += static_cast<double>(trace.tensors[index(made)].bytes.value);
    });
  }
  return bytes;
}

class WaysBound {
 public:
  WaysBound(const Trace& trace, const ValueHistory& history, const PlanningCase& planning)
      : trace_(trace), history_(history), planning_(planning), bytes_made_(bytes_made(trace, planning.liveness)) {
    for (const TraceOperation& operation : trace.operations)
      compute_ += static_cast<double>(operation.duration.count());
    in_ = 1e9 / static_cast<double>(planning.machine.h2d.bytes_per_second);
  }

  [[nodiscard]] double run() const {
    double bound = compute_;
    for (std::uint32_t i = 0; i < planning_.operations; ++i) {
      if (planning_.liveness.live[i].value <= planning_.budget) continue;
      const auto excess = static_cast<double>(planning_.liveness.live[i].value - planning_.budget);
      if (excess * in_ > bound) bound = std::max(bound, at(i, excess));  // else the copies alone take no longer
    }
    return bound;
  }

 private:
  [[nodiscard]] double bytes_of(TensorId tensor) const {
    return static_cast<double>(trace_.tensors[index(tensor)].bytes.value);
  }

  /// Of a value that is encoded on its way, fewer bytes are copied.
  [[nodiscard]] double copy_in_of_byte(TensorId tensor) const {
    const TraceTensor& moved = trace_.tensors[index(tensor)];
    if (!moved.copied || moved.bytes.value == 0) return in_;
    return in_ * static_cast<double>(moved.copied->value) / static_cast<double>(moved.bytes.value);
  }

  /// `excess`: the bytes that are not on the device while the operation runs.
  [[nodiscard]] double at(std::uint32_t operation, double excess) const {
    double left = excess;
    std::vector<LiveValue> values;
    std::vector<Way> ways;
    for (const TensorId tensor : tensors_live_at(trace_, planning_.liveness, static_cast<OperationId>(operation))) {
      if (is_in_bundle(tensor, operation)) continue;
      const double bytes = bytes_of(tensor);
      left -= static_cast<double>(planning_.sizes[index(tensor)]) - bytes;  // padding is not copied
      if (!comes_back(tensor, operation)) {
        left -= bytes;
        continue;
      }
      const std::size_t first = ways.size();
      append_ways(tensor, operation, ways);
      values.push_back({bytes, first, ways.size()});
    }
    // A mean's least value is concave in the weight: it is the least of linear functions.
    double low = 0;
    double high = 1;
    double most = 0;
    for (int i = 0; i < 28; ++i) {
      const double a = low + (high - low) / 3;
      const double b = high - (high - low) / 3;
      const double at_a = mean(a, left, values, ways);
      const double at_b = mean(b, left, values, ways);
      most = std::max({most, at_a, at_b});
      (at_a < at_b ? low : high) = at_a < at_b ? a : b;
    }
    return most;
  }

  /// The least mean of computation and copies in, if `left` bytes are away and the computation has that weight.
  [[nodiscard]] double mean(double weight, double left, const std::vector<LiveValue>& values,
                            const std::vector<Way>& ways) const {
    std::vector<std::pair<double, double>> costs;  // of a byte, and the bytes
    for (const LiveValue& value : values) {
      double least = HUGE_VAL;
      for (std::size_t w = value.first; w < value.end; ++w) {
        least = std::min(least, weight * ways[w].compute + (1 - weight) * ways[w].copied);
      }
      costs.emplace_back(least, value.bytes);
    }
    std::ranges::sort(costs);
    double sum = weight * compute_;
    for (const auto& [cost, bytes] : costs) {
      if (left <= 0) break;
      sum += cost * std::min(bytes, left);
      left -= bytes;
    }
    return sum;
  }

  void append_ways(TensorId tensor, std::uint32_t operation, std::vector<Way>& ways) const {
    ways.push_back({0, copy_in_of_byte(tensor)});
    if (const double again = price_of(tensor, operation); std::isfinite(again)) ways.push_back({again, 0});
    const double bytes = bytes_of(tensor);
    if (bytes == 0) return;
    const auto room = static_cast<double>(planning_.sizes[index(tensor)]);
    for (const TensorForm& form : forms_of(trace_, tensor)) {
      // What is never given may be encoded once and for all.
      auto coded = static_cast<double>(form.decode.count());
      if (history_.giver(tensor, planning_.operations) != ValueHistory::nobody) {
        coded += static_cast<double>(form.encode.count());
      }
      ways.push_back({coded / bytes, static_cast<double>(form.expected.value) / bytes * in_});
      // In its place on the device the form needs room, too.
      const double freed = room - static_cast<double>(form.bytes.value);
      if (freed > 0) ways.push_back({coded / std::max(freed, 1.0), 0});
    }
  }

  [[nodiscard]] bool is_in_bundle(TensorId tensor, std::uint32_t operation) const {
    const std::span<const Use> uses = uses_from(planning_.liveness, tensor, operation);
    return !uses.empty() && index(uses.front().operation) == operation;
  }

  /// False if only the host needs the value from here on, which gets it by a copy to the host.
  [[nodiscard]] bool comes_back(TensorId tensor, std::uint32_t operation) const {
    const std::vector<Use>& all = planning_.liveness.uses[index(tensor)];
    if (all.empty()) return false;
    const std::span<const Use> uses = uses_from(planning_.liveness, tensor, operation);
    if (!uses.empty()) return uses.front().access != Access::write;
    return trace_.tensors[index(tensor)].kind == TensorKind::persistent && all.front().access != Access::write;
  }

  /// An operation that runs again makes all that it writes: each value pays its part.
  [[nodiscard]] double price_of(TensorId tensor, std::uint32_t position) const {
    // The value may be given at this operation, or have been given in the iteration before.
    std::uint32_t giver = history_.giver(tensor, position + 1);
    if (giver == ValueHistory::nobody) giver = history_.giver(tensor, planning_.operations);
    if (giver == ValueHistory::nobody) return HUGE_VAL;
    const TraceOperation& operation = trace_.operations[giver];
    if (!operation.replayable) return HUGE_VAL;
    return bytes_made_[giver] > 0 ? static_cast<double>(operation.duration.count()) / bytes_made_[giver] : 0.0;
  }

  const Trace& trace_;
  const ValueHistory& history_;
  const PlanningCase& planning_;
  std::vector<double> bytes_made_;
  double compute_ = 0;
  double in_ = 0;  // nanoseconds per byte
};

}  // namespace

namespace {

/// The trace in which each tensor is copied as the fewest bytes that a form of it, or the tensor itself, promises.
/// Nothing if a form saves room on the device, too.
std::optional<Trace> with_fewest_copies(const Trace& trace) {
  Trace fewest = without_ways(trace);
  for (const TensorForm& form : trace.forms) {
    TraceTensor& tensor = fewest.tensors[index(form.tensor)];
    if (form.bytes < tensor.bytes) return std::nullopt;
    tensor.copied = std::min({tensor.copied.value_or(tensor.bytes), form.expected, tensor.bytes});
  }
  return fewest;
}

/// Per absence: the time of the operation that gave the value. Where it gave several, each pays its part.
std::vector<double> replays_at_ends(const Trace& trace, const OverlapLedger& ledger) {
  const std::vector<double> made = bytes_made(trace, ledger.planning.liveness);
  std::vector<double> again(ledger.absences.size(), HUGE_VAL);
  for (std::size_t a = 0; a < again.size(); ++a) {
    const Absence& absence = ledger.absences[a];
    if (absence.version == no_version) continue;
    const std::uint32_t giver = ledger.versions[absence.version].write;
    const TraceOperation& operation = trace.operations[giver];
    if (!operation.replayable) continue;
    if (absence.lingers) {
      again[a] = 0;  // a value that runs again later does not linger before that
      continue;
    }
    const auto bytes = static_cast<double>(trace.tensors[index(absence.tensor)].bytes.value);
    again[a] = made[giver] > 0 ? static_cast<double>(operation.duration.count()) * bytes / made[giver] : 0;
  }
  return again;
}

/// `machine`: for BoundFor::tensors, with alignment 1.
double bound_over_time(const Trace& trace, Machine machine, BoundFor plans, const BoundEffort& effort) {
  const std::optional<Trace> fewest = with_fewest_copies(trace);
  if (!fewest) return 0;
  double saved_by_copy = 0;
  if (plans == BoundFor::tensors) {
    machine.h2d.latency = machine.d2h.latency = std::chrono::nanoseconds{0};
    saved_by_copy = 1;  // times of copies are rounded up
  }
  const Result<PlanningCase> planning = make_planning_case(*fewest, machine);
  if (!planning) return 0;
  const OverlapLedger ledger(*planning);
  return bound_with_replays(*planning, ledger, replays_at_ends(trace, ledger), saved_by_copy, effort);
}

}  // namespace

std::chrono::nanoseconds ways_bound(const Trace& trace, const ValueHistory& history, const PlanningCase& planning,
                                    BoundFor plans, const BoundOptions& options) {
  Machine machine = planning.machine;
  // Pieces that lie next to each other leave less unused than each of them alone.
  if (plans == BoundFor::tensors) machine.alignment = Bytes{1};
  const Result<PlanningCase> aligned = make_planning_case(planning.trace, machine);
  if (!aligned) return compute_time(trace);
  const double bound = std::max(WaysBound(trace, history, *aligned).run(),
                                bound_over_time(trace, machine, plans, bound_effort_for(planning, options)));
  constexpr double largest_time = 0x1p62;
  if (!(bound < largest_time)) return compute_time(trace);
  // The sums of the bound have errors far below this part.
  const double safe = bound * (1 - 0x1p-40);
  return std::max(compute_time(trace), std::chrono::nanoseconds{static_cast<std::int64_t>(safe)});
}

Result<std::chrono::nanoseconds> ways_bound(const Trace& trace, Machine machine, const BoundOptions& options) {
  machine.alignment = Bytes{1};
  // A plan may divide such a tensor, and use no form, or use one, and not divide it.
  const auto has_forms = [&](const AccessRange& range) { return !forms_of(trace, range.tensor).empty(); };
  if (std::ranges::any_of(trace.ranges, has_forms)) return std::chrono::nanoseconds{0};
  // Pieces next to each other serve operations that do not work in pieces.
  Trace divisible = trace;
  for (TraceOperation& operation : divisible.operations) operation.in_pieces = true;
  const Result<DividedTrace> divided = with_pieces(divisible, possible_pieces(divisible, machine));
  if (!divided) return divided.problem();
  const Trace plain = without_ways(divided->trace);
  const Result<PlanningCase> planning = make_planning_case(plain, machine);
  if (!planning) return planning.problem();
  return ways_bound(divided->trace, ValueHistory(divided->trace), *planning, BoundFor::tensors, options);
}

}  // namespace swapmm::planning
