// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/split/quantity.hpp>
#include <swapmm/plan/split/split.hpp>

namespace swapmm {
namespace {

/// Writes a step with its pieces as a trace.
class StepWriter {
 public:
  StepWriter(const SplitStep& step, std::span<const std::uint64_t> sizes)
      : step_(step), sizes_(sizes), ids_((sizes.size() + 1) * step.tensors.size(), none) {}

  Result<Trace> write() {
    trace_.name = step_.name;
    const std::uint64_t operations = step_.before.size() + sizes_.size() * step_.piece.size() + step_.after.size();
    if (operations > limits::operations) return Problem{too_many(operations)};
    for (const SplitOperation& operation : step_.before) append(operation.first, operation.duration.at_small, 0);
    for (std::size_t piece = 0; piece < sizes_.size(); ++piece) {
      for (const SplitOperation& operation : step_.piece) {
        append(piece == 0 ? operation.first : operation.later,
               planning::duration_at(step_, operation.duration, sizes_[piece]).count(), piece);
      }
    }
    for (const SplitOperation& operation : step_.after) append(operation.first, operation.duration.at_small, 0);
    append_host_reads();
    set_availability();
    if (const Check check = check_trace(trace_); !check) {
      return Problem{std::to_string(sizes_.size()) + " pieces are no valid trace: " + check.problem().message};
    }
    return std::move(trace_);
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] std::string too_many(std::uint64_t operations) const {
    return std::to_string(sizes_.size()) + " pieces have " + std::to_string(operations) +
           " operations, more than the " + std::to_string(limits::operations) + " that a trace may have";
  }

  /// The trace's tensor that is this one in that piece.
  TensorId tensor_in(TensorId tensor, std::size_t piece) {
    const SplitTensor& made = step_.tensors[index(tensor)];
    const std::size_t owner = made.local ? piece + 1 : 0;
    std::uint32_t& id = ids_[owner * step_.tensors.size() + index(tensor)];
    if (id == none) {
      id = static_cast<std::uint32_t>(trace_.tensors.size());
      const std::uint64_t samples = made.local ? sizes_[piece] : step_.small;
      trace_.tensors.push_back({made.name, planning::bytes_at(step_, made.bytes, samples), made.kind, 0});
      made_of_.push_back({tensor, piece});
    }
    return static_cast<TensorId>(id);
  }

  void append(const TraceOperation& operation, std::int64_t duration, std::size_t piece) {
    TraceOperation written;
    written.name = operation.name;
    written.duration = std::chrono::nanoseconds{duration};
    for (const TensorId id : operation.reads) written.reads.push_back(tensor_in(id, piece));
    for (const TensorId id : operation.writes) written.writes.push_back(tensor_in(id, piece));
    for (const TensorId id : operation.updates) written.updates.push_back(tensor_in(id, piece));
    trace_.operations.push_back(std::move(written));
  }

  [[nodiscard]] std::uint32_t position_of(const SplitPlace& place, std::size_t piece) const {
    const auto before = static_cast<std::uint32_t>(step_.before.size());
    const auto in_piece = static_cast<std::uint32_t>(step_.piece.size());
    switch (place.part) {
      case SplitPlace::Part::before: return place.position;
      case SplitPlace::Part::piece: return before + static_cast<std::uint32_t>(piece) * in_piece + place.position;
      case SplitPlace::Part::after: break;
    }
    return before + static_cast<std::uint32_t>(sizes_.size()) * in_piece + place.position;
  }

  void append_host_reads() {
    for (const SplitHostRead& read : step_.host_reads) {
      const bool local = step_.tensors[index(read.tensor)].local;
      for (std::size_t piece = local ? 0 : sizes_.size() - 1; piece < sizes_.size(); ++piece) {
        trace_.host_reads.push_back(
            {tensor_in(read.tensor, piece), static_cast<OperationId>(position_of(read.after, piece))});
      }
    }
  }

  void set_availability() {
    for (std::size_t t = 0; t < trace_.tensors.size(); ++t) {
      if (trace_.tensors[t].kind != TensorKind::input) continue;
      const SplitTensor& made = step_.tensors[index(made_of_[t].tensor)];
      trace_.tensors[t].available_from = position_of(made.available_from, made.local ? made_of_[t].piece : 0);
    }
  }

  struct Origin {
    TensorId tensor;
    std::size_t piece;
  };

  const SplitStep& step_;
  std::span<const std::uint64_t> sizes_;
  std::vector<std::uint32_t> ids_;  ///< per owner (all pieces, then each piece) and tensor of the step
  std::vector<Origin> made_of_;     ///< per tensor of the trace
  Trace trace_;
};

}  // namespace

std::vector<std::uint64_t> piece_sizes(std::uint64_t batch, std::uint64_t pieces) {
  std::vector<std::uint64_t> sizes(pieces, batch / pieces);
  for (std::uint64_t i = 0; i < batch % pieces; ++i) ++sizes[i];
  return sizes;
}

Result<Trace> written_out(const SplitStep& step, std::span<const std::uint64_t> sizes) {
  if (sizes.empty()) return Problem{"a step has at least one piece"};
  return StepWriter(step, sizes).write();
}

}  // namespace swapmm
