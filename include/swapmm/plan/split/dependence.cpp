// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/split/dependence.hpp>

#include <algorithm>
#include <cstddef>

namespace swapmm::planning {
namespace {

/// Follows the values of an iteration: which of them were computed from samples.
class SampleValues {
 public:
  SampleValues(const Trace& trace, const GrowingTensors& growing)
      : growing_(growing), from_samples_(trace.tensors.size()) {}

  [[nodiscard]] bool from_samples(TensorId tensor) const { return from_samples_[index(tensor)]; }

  /// Whether the operation needs such a value.
  [[nodiscard]] bool needed_by(const TraceOperation& operation) const {
    bool needed = works_on_samples(operation, growing_);
    for_each_access(operation, [&](TensorId id, Access access) {
      needed = needed || (access != Access::write && from_samples(id));
    });
    return needed;
  }

  void run(const TraceOperation& operation) {
    const bool made_of_samples = needed_by(operation);
    for (const TensorId id : operation.writes) from_samples_[index(id)] = made_of_samples;
    for (const TensorId id : operation.updates) {
      if (made_of_samples) from_samples_[index(id)] = true;
    }
  }

 private:
  const GrowingTensors& growing_;
  std::vector<bool> from_samples_;
};

}  // namespace

bool works_on_samples(const TraceOperation& operation, const GrowingTensors& growing) {
  bool found = false;
  for_each_access(operation, [&](TensorId id, Access) { found = found || growing[index(id)]; });
  return found;
}

std::vector<bool> needs_samples(const Trace& trace, const GrowingTensors& growing) {
  SampleValues values(trace, growing);
  std::vector<bool> needs;
  for (const TraceOperation& operation : trace.operations) {
    needs.push_back(values.needed_by(operation));
    values.run(operation);
  }
  return needs;
}

void sort_once(std::vector<TensorId>& tensors) {
  std::sort(tensors.begin(), tensors.end());
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
}

std::vector<TensorId> find_statistics(const Trace& trace, const GrowingTensors& growing,
                                      const std::vector<bool>& in_piece) {
  SampleValues values(trace, growing);
  std::vector<TensorId> found;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const TraceOperation& operation = trace.operations[i];
    for (const TensorId id : operation.reads) {
      if (in_piece[i] && !growing[index(id)] && values.from_samples(id)) found.push_back(id);
    }
    values.run(operation);
  }
  sort_once(found);
  return found;
}

std::optional<Problem> unsplittable(const Trace& trace) {
  if (!trace.lingering.empty()) return Problem{"values linger in the trace, so its batch cannot be split"};
  const bool in_pieces = std::ranges::any_of(trace.operations, &TraceOperation::in_pieces);
  if (in_pieces || !trace.engines.empty() || !trace.ranges.empty() || !trace.forms.empty()) {
    return Problem{"the trace has something of version 2 of the format, so its batch cannot be split"};
  }
  return std::nullopt;
}

}  // namespace swapmm::planning
