// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/recompute/bound.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace swapmm::planning {
namespace {

/// A value that is live while an operation runs.
struct LiveValue {
  double bytes = 0;
  double price = 0;  ///< nanoseconds per byte to make it again; infinite: it cannot be
};

class RecomputingBound {
 public:
  RecomputingBound(const Trace& trace, const ValueHistory& history, const PlanningCase& planning)
      : trace_(trace), history_(history), planning_(planning), bytes_made_(trace.operations.size(), 0.0) {
    for (std::size_t i = 0; i < trace.operations.size(); ++i) {
      compute_ += static_cast<double>(trace.operations[i].duration.count());
      for (const TensorId made : trace.operations[i].writes) {
        // Others are of no use to anybody, such as work areas.
        if (planning.liveness.uses[index(made)].size() > 1) bytes_made_[i] += bytes_of(made);
      }
    }
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

  /// `excess`: the bytes that are not on the device while the operation runs.
  [[nodiscard]] double at(std::uint32_t operation, double excess) const {
    double left = excess;
    std::vector<LiveValue> values;
    for (const TensorId tensor : tensors_live_at(trace_, planning_.liveness, static_cast<OperationId>(operation))) {
      if (is_in_bundle(tensor, operation)) continue;
      const LiveValue value{bytes_of(tensor), price_of(tensor, operation)};
      left -= static_cast<double>(planning_.sizes[index(tensor)]) - value.bytes;  // padding is not copied
      if (!comes_back(tensor, operation)) {
        left -= value.bytes;
      } else if (std::isfinite(value.price)) {
        values.push_back(value);
      }
    }
    std::ranges::sort(values, {}, &LiveValue::price);
    double computed = compute_;
    for (const LiveValue& value : values) {
      if (left * in_ <= computed) return computed;
      const double bytes = std::min(value.bytes, left);
      // More bytes are made again for as long as the copies of the others take longer. Within this value, both meet.
      const double meet = (left * in_ - computed) / (value.price + in_);
      if (meet <= bytes) return computed + meet * value.price;
      computed += bytes * value.price;
      left -= bytes;
    }
    return std::max(computed, left * in_);
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
    if (!operation.replayable || !operation.updates.empty()) return HUGE_VAL;
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

std::chrono::nanoseconds recomputing_bound(const Trace& trace, const ValueHistory& history,
                                           const PlanningCase& planning) {
  std::chrono::nanoseconds compute{0};
  for (const TraceOperation& operation : trace.operations) compute += operation.duration;
  // The sums of the bound have errors far below this part.
  const double bound = RecomputingBound(trace, history, planning).run() * (1 - 0x1p-40);
  return std::max(compute, std::chrono::nanoseconds{static_cast<std::int64_t>(bound)});
}

}  // namespace swapmm::planning
