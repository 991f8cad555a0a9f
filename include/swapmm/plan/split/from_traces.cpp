// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/split/dependence.hpp>
#include <swapmm/plan/split/quantity.hpp>
#include <swapmm/plan/split/split.hpp>

namespace swapmm {
namespace {

std::optional<Problem> compare_structure(const Trace& small, const Trace& large) {
  const auto differ = [](const std::string& what) {
    return Problem{"the traces are not of the same program: " + what};
  };
  if (small.operations.size() != large.operations.size()) {
    return differ("one has " + std::to_string(small.operations.size()) + " operations, the other " +
                  std::to_string(large.operations.size()));
  }
  if (small.tensors.size() != large.tensors.size()) {
    return differ("one has " + std::to_string(small.tensors.size()) + " tensors, the other " +
                  std::to_string(large.tensors.size()));
  }
  for (std::size_t i = 0; i < small.operations.size(); ++i) {
    const TraceOperation& a = small.operations[i];
    const TraceOperation& b = large.operations[i];
    if (a.reads == b.reads && a.writes == b.writes && a.updates == b.updates) continue;
    return differ("operation " + std::to_string(i) + " (" + a.name + ") has other tensors in the other trace");
  }
  for (std::size_t t = 0; t < small.tensors.size(); ++t) {
    const TraceTensor& a = small.tensors[t];
    const TraceTensor& b = large.tensors[t];
    if (a.kind == b.kind && a.available_from == b.available_from) continue;
    return differ("tensor " + std::to_string(t) + " (" + a.name + ") lives otherwise in the other trace");
  }
  if (small.host_reads != large.host_reads) return differ("the host reads other values");
  return std::nullopt;
}

/// Learns a step from two traces in which the batch is one piece.
class BatchReader {
 public:
  BatchReader(const Trace& small, std::uint64_t small_samples, const Trace& large, std::uint64_t large_samples)
      : small_(small), large_(large) {
    step_.name = large.name;
    step_.small = small_samples;
    step_.large = large_samples;
  }

  Result<SplitStep> read() {
    for (const Trace* trace : {&small_, &large_}) {
      if (auto problem = planning::unsplittable(*trace)) return *problem;
    }
    if (auto problem = compare_structure(small_, large_)) return *problem;
    if (auto problem = find_growing()) return *problem;
    place_operations();
    if (auto problem = check_moves()) return *problem;
    append_tensors();
    append_operations();
    for (const HostRead& read : large_.host_reads) {
      step_.host_reads.push_back({read.tensor, places_[index(read.after_operation)]});
    }
    std::vector<bool> in_piece;
    for (const SplitPlace& place : places_) in_piece.push_back(place.part == Part::piece);
    step_.statistics = planning::find_statistics(large_, growing_, in_piece);
    return std::move(step_);
  }

 private:
  using Finding = std::optional<Problem>;
  using Part = SplitPlace::Part;

  Finding find_growing() {
    for (std::size_t t = 0; t < small_.tensors.size(); ++t) {
      const Bytes a = small_.tensors[t].bytes;
      const Bytes b = large_.tensors[t].bytes;
      growing_.push_back(a != b);
      if (a <= b) continue;
      return Problem{"tensor " + std::to_string(t) + " (" + small_.tensors[t].name + ") has " +
                     std::to_string(a.value) + " bytes for " + std::to_string(step_.small) + " samples, and " +
                     std::to_string(b.value) + " for " + std::to_string(step_.large)};
    }
    if (std::ranges::find(growing_, true) != growing_.end()) return std::nullopt;
    return Problem{"no tensor's size depends on the batch"};
  }

  /// Backwards: what do operations of the piece still need?
  void place_operations() {
    const std::vector<bool> needs_samples = planning::needs_samples(large_, growing_);
    places_.resize(large_.operations.size());
    std::vector<bool> needed(large_.tensors.size());
    for (std::size_t i = large_.operations.size(); i-- > 0;) {
      const TraceOperation& operation = large_.operations[i];
      bool gives = false;
      for (const auto* list : {&operation.writes, &operation.updates}) {
        for (const TensorId id : *list) gives = gives || needed[index(id)];
      }
      places_[i].part = part_of(operation, needs_samples[i], gives);
      if (places_[i].part == Part::after) continue;
      for (const TensorId id : operation.writes) needed[index(id)] = false;
      for (const auto* list : {&operation.reads, &operation.updates}) {
        for (const TensorId id : *list) needed[index(id)] = true;
      }
    }
    std::uint32_t counts[3] = {};
    for (SplitPlace& place : places_) place.position = counts[static_cast<std::size_t>(place.part)]++;
  }

  /// `gives`: the operation gives a value that operations of the piece need.
  [[nodiscard]] Part part_of(const TraceOperation& operation, bool needs_samples, bool gives) const {
    if (planning::works_on_samples(operation, growing_) || (needs_samples && gives)) return Part::piece;
    return gives ? Part::before : Part::after;
  }

  /// An operation that runs earlier or later than it did must find the same values.
  [[nodiscard]] Finding check_moves() const {
    std::vector<std::optional<std::size_t>> latest_need(large_.tensors.size());  // the operation of the latest part
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const TraceOperation& operation = large_.operations[i];
      for (const auto* list : {&operation.writes, &operation.updates}) {
        for (const TensorId id : *list) {
          const std::optional<std::size_t>& need = latest_need[index(id)];
          if (need && places_[*need].part > places_[i].part) return changed_too_early(id, *need, i);
        }
      }
      for (const auto* list : {&operation.reads, &operation.updates}) {
        for (const TensorId id : *list) {
          std::optional<std::size_t>& need = latest_need[index(id)];
          if (!need || places_[*need].part <= places_[i].part) need = i;
        }
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Problem changed_too_early(TensorId tensor, std::size_t need, std::size_t change) const {
    return {"operation " + std::to_string(need) + " (" + large_.operations[need].name + ") needs tensor " +
            std::to_string(index(tensor)) + " (" + large_.tensors[index(tensor)].name +
            ") after the last piece, and operation " + std::to_string(change) + " (" + large_.operations[change].name +
            ") changes it in a piece or before: the batch cannot be split"};
  }

  /// Each piece has its own, if only the piece's operations use it and write it first.
  [[nodiscard]] std::vector<bool> find_local() const {
    std::vector<bool> local(large_.tensors.size(), true);
    std::vector<bool> used(large_.tensors.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      for_each_access(large_.operations[i], [&](TensorId id, Access access) {
        if (places_[i].part != Part::piece || (!used[index(id)] && access != Access::write)) local[index(id)] = false;
        used[index(id)] = true;
      });
    }
    for (const HostRead& read : large_.host_reads) local[index(read.tensor)] = false;
    for (std::size_t t = 0; t < local.size(); ++t) {
      if (large_.tensors[t].kind != TensorKind::transient) local[t] = false;
      if (growing_[t]) local[t] = true;
    }
    return local;
  }

  void append_tensors() {
    const std::vector<bool> local = find_local();
    for (std::size_t t = 0; t < large_.tensors.size(); ++t) {
      const TraceTensor& tensor = large_.tensors[t];
      SplitTensor made{tensor.name, tensor.kind, {}, local[t], {}};
      made.bytes.at_small = static_cast<std::int64_t>(small_.tensors[t].bytes.value);
      made.bytes.at_large = static_cast<std::int64_t>(tensor.bytes.value);
      // What is there before the step is there for all pieces.
      if (tensor.available_from > 0) made.available_from = places_[tensor.available_from];
      step_.tensors.push_back(std::move(made));
    }
  }

  /// As later pieces have it: what the first one begins, they update.
  [[nodiscard]] TraceOperation later(TraceOperation operation) const {
    if (!planning::works_on_samples(operation, growing_)) return operation;
    std::vector<TensorId> own;
    for (const TensorId id : operation.writes) {
      (step_.tensors[index(id)].local ? own : operation.updates).push_back(id);
    }
    operation.writes = std::move(own);
    return operation;
  }

  void append_operations() {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      SplitOperation made;
      made.duration = {small_.operations[i].duration.count(), large_.operations[i].duration.count()};
      made.first = large_.operations[i];
      if (places_[i].part == Part::piece) {
        made.later = later(made.first);
        step_.piece.push_back(std::move(made));
        continue;
      }
      const std::int64_t mean = std::midpoint(made.duration.at_small, made.duration.at_large);
      made.duration = {mean, mean};
      (places_[i].part == Part::before ? step_.before : step_.after).push_back(std::move(made));
    }
  }

  const Trace& small_;
  const Trace& large_;
  planning::GrowingTensors growing_;
  std::vector<SplitPlace> places_;  ///< per operation
  SplitStep step_;
};

}  // namespace

Result<SplitStep> split_step(const Trace& one, std::uint64_t samples_of_one, const Trace& other,
                             std::uint64_t samples_of_other) {
  for (const std::uint64_t samples : {samples_of_one, samples_of_other}) {
    if (samples == 0 || samples > planning::most_samples) {
      return Problem{"a batch of " + std::to_string(samples) + " is not from 1 to 2^40 samples"};
    }
  }
  if (samples_of_one == samples_of_other) return Problem{"both traces have the same batch"};
  if (samples_of_one < samples_of_other) return BatchReader(one, samples_of_one, other, samples_of_other).read();
  return BatchReader(other, samples_of_other, one, samples_of_one).read();
}

}  // namespace swapmm
