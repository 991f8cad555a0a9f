// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/baselines/residency.hpp>

#include <algorithm>
#include <iterator>

namespace swapmm::v2::planning {

namespace {

/// Sizes count as rounded up to the alignment, so what is left at the end holds nothing.
Bytes usable(const Memory& memory) { return round_down(*memory.bytes, memory.alignment); }

}  // namespace

Residency::Residency(const Trace& trace, const Machine& machine, Holes holes)
    : trace_(&trace),
      machine_(&machine),
      holes_(holes),
      places_(trace.tensors.size()),
      current_(trace.tensors.size()),
      by_address_(machine.memories.size()),
      turn_(machine.memories.size()) {
  for (const Memory& memory : machine.memories) free_.emplace_back(memory.bytes ? usable(memory).value : 0);
}

const Residency::Place* Residency::find(TensorId tensor, MemoryId memory) const {
  const std::vector<Place>& places = places_[index(tensor)];
  const auto found = std::ranges::find(places, memory, &Place::memory);
  return found == places.end() ? nullptr : &*found;
}

std::optional<Bytes> Residency::hole(TensorId tensor, MemoryId memory) const {
  const Memory& in = machine_->memories[index(memory)];
  const Bytes size = trace_->tensors[index(tensor)].bytes;
  if (!in.max_allocation) {
    if (size == Bytes{0}) return Bytes{0};
    const FreeRanges& free = free_[index(memory)];
    const std::uint64_t from = holes_ == Holes::in_turn ? turn_[index(memory)] : 0;
    auto offset = free.lowest(size.value, in.alignment.value, from);
    if (!offset && from > 0) offset = free.lowest(size.value, in.alignment.value);
    return offset ? std::optional{Bytes{*offset}} : std::nullopt;
  }
  const Bytes bytes = usable(in);
  const auto fitting = [&](Bytes from) -> std::optional<Bytes> {
    auto offset = checked_round_up(from, in.alignment);
    if (!offset) return std::nullopt;
    if (size > Bytes{0}) {
      if (size > *in.max_allocation) return std::nullopt;
      const std::uint64_t arena = in.max_allocation->value;
      if (offset->value / arena != (offset->value + size.value - 1) / arena) {
        offset = checked_round_up(*offset, *in.max_allocation);
        if (!offset) return std::nullopt;
      }
    }
    if (*offset > bytes || size > bytes - *offset) return std::nullopt;
    return offset;
  };
  Bytes from;
  for (const auto& [begin, other] : by_address_[index(memory)]) {
    const auto offset = fitting(from);
    if (!offset) return std::nullopt;
    if (offset->value + size.value <= begin) return offset;
    from = std::max(from, Bytes{begin} + trace_->tensors[index(other)].bytes);
  }
  return fitting(from);
}

void Residency::take(TensorId tensor, MemoryId memory, Bytes offset) {
  places_[index(tensor)].push_back({memory, offset});
  std::ranges::sort(places_[index(tensor)], {}, &Place::memory);
  if (machine_->memories[index(memory)].max_allocation) {
    by_address_[index(memory)].emplace(offset.value, tensor);
  } else {
    const std::uint64_t end = offset.value + trace_->tensors[index(tensor)].bytes.value;
    free_[index(memory)].take(offset.value, end);
    turn_[index(memory)] = end;
  }
}

void Residency::give_back(TensorId tensor, MemoryId memory) {
  const std::uint64_t begin = offset(tensor, memory).value;
  if (machine_->memories[index(memory)].max_allocation) {
    auto& of_memory = by_address_[index(memory)];
    const auto [first, last] = of_memory.equal_range(begin);
    of_memory.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == tensor; }));
  } else {
    free_[index(memory)].give_back(begin, begin + trace_->tensors[index(tensor)].bytes.value);
  }
  std::erase_if(places_[index(tensor)], [&](const Place& place) { return place.memory == memory; });
  remove_current(tensor, memory);
}

std::vector<v2::Place> Residency::initial() const {
  std::vector<v2::Place> all;
  for (std::size_t t = 0; t < places_.size(); ++t) {
    const auto tensor = id_at<TensorId>(t);
    for (std::size_t m = 0; m < machine_->memories.size(); ++m) {
      const auto memory = id_at<MemoryId>(m);
      const bool valid = is_current(tensor, memory);
      v2::Place place{tensor, std::nullopt, FormId::plain, memory, Bytes{0}, valid};
      if (unlimited(memory)) {
        // The host holds the newest value if nothing else is said, the others nothing.
        const bool differs = memory == machine_->host ? !valid && !current(tensor).empty() : valid;
        if (differs) all.push_back(place);
      } else if (has_place(tensor, memory)) {
        place.offset = offset(tensor, memory);
        all.push_back(place);
      }
    }
  }
  return all;
}

bool Residency::is_current(TensorId tensor, MemoryId memory) const {
  return std::ranges::binary_search(current_[index(tensor)], memory);
}

void Residency::add_current(TensorId tensor, MemoryId memory) {
  std::vector<MemoryId>& in = current_[index(tensor)];
  const auto at = std::ranges::lower_bound(in, memory);
  if (at == in.end() || *at != memory) in.insert(at, memory);
}

void Residency::remove_current(TensorId tensor, MemoryId memory) { std::erase(current_[index(tensor)], memory); }

}  // namespace swapmm::v2::planning
