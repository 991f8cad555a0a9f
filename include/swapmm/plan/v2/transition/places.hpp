// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/transition/boundary.hpp>

namespace swapmm::v2::transition {

/// What is where during a transition.
class Places {
 public:
  /// Sizes are of each unit. Keeps references to both.
  Places(const Machine& machine, const std::vector<Bytes>& sizes, const std::vector<Holding>& holdings)
      : machine_(machine), sizes_(sizes), of_memory_(machine.memories.size()) {
    for (const Holding& holding : holdings) take(holding.unit, holding.memory, holding.offset, holding.value);
  }

  struct Place {
    Bytes offset;
    ValueId value = 0;
  };
  using OfMemory = std::map<std::uint32_t, Place>;  // by unit

  [[nodiscard]] bool is_limited(MemoryId memory) const { return machine_.memories[index(memory)].bytes.has_value(); }
  [[nodiscard]] const OfMemory& in(MemoryId memory) const { return of_memory_[index(memory)]; }
  [[nodiscard]] const Place* find(std::uint32_t unit, MemoryId memory) const {
    const auto at = of_memory_[index(memory)].find(unit);
    return at == of_memory_[index(memory)].end() ? nullptr : &at->second;
  }
  [[nodiscard]] bool holds(std::uint32_t unit, MemoryId memory, ValueId value) const {
    const Place* const place = find(unit, memory);
    return place != nullptr && place->value == value;
  }
  [[nodiscard]] std::vector<MemoryId> holders(std::uint32_t unit, ValueId value) const {
    std::vector<MemoryId> memories;
    for (std::size_t m = 0; m < of_memory_.size(); ++m) {
      if (holds(unit, id_at<MemoryId>(m), value)) memories.push_back(id_at<MemoryId>(m));
    }
    return memories;
  }

  void take(std::uint32_t unit, MemoryId memory, Bytes offset, ValueId value) {
    of_memory_[index(memory)][unit] = {offset, value};
  }
  void fill(std::uint32_t unit, MemoryId memory, ValueId value) { of_memory_[index(memory)][unit].value = value; }
  void give_back(std::uint32_t unit, MemoryId memory) { of_memory_[index(memory)].erase(unit); }

  [[nodiscard]] Bytes size(std::uint32_t unit) const { return sizes_[unit]; }
  /// The units whose places have a byte in common with these.
  [[nodiscard]] std::vector<std::uint32_t> within(MemoryId memory, Bytes offset, Bytes size) const {
    std::vector<std::uint32_t> units;
    for (const auto& [unit, place] : in(memory)) {
      if (place.offset < offset + size && offset < place.offset + sizes_[unit]) units.push_back(unit);
    }
    return units;
  }

  /// Whether a place there keeps the rules of the memory.
  [[nodiscard]] bool is_within(MemoryId memory, Bytes offset, Bytes size) const {
    const Memory& of = machine_.memories[index(memory)];
    if (offset + size > *of.bytes || offset.value % of.alignment.value != 0) return false;
    if (!of.max_allocation || size.value == 0) return true;
    const std::uint64_t arena = of.max_allocation->value;
    return offset.value / arena == (offset.value + size.value - 1) / arena;
  }

 private:
  const Machine& machine_;
  const std::vector<Bytes>& sizes_;
  std::vector<OfMemory> of_memory_;
};

/// The size of a place of each unit.
[[nodiscard]] inline std::vector<Bytes> sizes_of(const validation::Parts& parts) {
  std::vector<Bytes> sizes;
  for (std::size_t unit = 0; unit < parts.units(); ++unit) sizes.push_back(parts.place_bytes(unit));
  return sizes;
}

/// For each memory of one machine, the memory of the same name in the other one; none if there is none.
[[nodiscard]] std::vector<std::optional<MemoryId>> same_memories(const Machine& machine, const Machine& other);

}  // namespace swapmm::v2::transition
