// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/recompute/bound.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
    const auto next = next_use(tensor, operation);
    return next != planning_.liveness.uses[index(tensor)].end() && index(next->operation) == operation;
  }

  /// False if only the host needs the value from here on, which gets it by a copy to the host.
  [[nodiscard]] bool comes_back(TensorId tensor, std::uint32_t operation) const {
    const std::vector<Use>& uses = planning_.liveness.uses[index(tensor)];
    if (uses.empty()) return false;
    const auto next = next_use(tensor, operation);
    if (next != uses.end()) return next->access != Access::write;
    return trace_.tensors[index(tensor)].kind == TensorKind::persistent && uses.front().access != Access::write;
  }

  [[nodiscard]] std::vector<Use>::const_iterator next_use(TensorId tensor, std::uint32_t operation) const {
    return std::ranges::lower_bound(planning_.liveness.uses[index(tensor)], operation, {},
                                    [](const Use& use) { return index(use.operation); });
  }

  /// An operation that runs again makes all that it writes: each value pays its part.
  [[nodiscard]] double price_of(TensorId tensor, std::uint32_t operation) const {
    // The value may have been given in the iteration before, or be given at this operation.
    const std::uint32_t giver = history_.giver(tensor, operation + 1);
    if (giver == ValueHistory::nobody) return last_iteration_price(tensor);
    return price_of_operation(giver);
  }
  [[nodiscard]] double price_of_operation(std::uint32_t giver) const {
    const TraceOperation& operation = trace_.operations[giver];
    if (!operation.replayable || !operation.updates.empty()) return HUGE_VAL;
    return bytes_made_[giver] > 0 ? static_cast<double>(operation.duration.count()) / bytes_made_[giver] : 0.0;
  }
  [[nodiscard]] double last_iteration_price(TensorId tensor) const {
    const std::uint32_t giver = history_.giver(tensor, planning_.operations);
    return giver == ValueHistory::nobody ? HUGE_VAL : price_of_operation(giver);
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
