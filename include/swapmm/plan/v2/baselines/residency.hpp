// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/baselines/free_ranges.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// Which hole a tensor takes that more than one fits.
enum class Holes : std::uint8_t {
  lowest,
  in_turn,  ///< the next one behind what was taken last in this iteration: bytes are taken again as late as possible
};

/// Where tensors are while a plan is written: their places in memories with a limit, and which memories hold the
/// current value.
class Residency {
 public:
  Residency(const Trace& trace, const Machine& machine, Holes holes);

  [[nodiscard]] bool unlimited(MemoryId memory) const { return !machine_->memories[index(memory)].bytes.has_value(); }
  /// Whether the tensor has a place in the memory; in one without limit it always has.
  [[nodiscard]] bool has_place(TensorId tensor, MemoryId memory) const {
    return unlimited(memory) || find(tensor, memory) != nullptr;
  }
  /// The offset of the place, which must exist in a memory with a limit.
  [[nodiscard]] Bytes offset(TensorId tensor, MemoryId memory) const { return find(tensor, memory)->offset; }
  [[nodiscard]] Holes holes() const { return holes_; }
  /// A hole that fits the tensor: the lowest one in memories with arenas.
  [[nodiscard]] std::optional<Bytes> hole(TensorId tensor, MemoryId memory) const;
  void take(TensorId tensor, MemoryId memory, Bytes offset);
  /// Also forgets that the value is there.
  void give_back(TensorId tensor, MemoryId memory);

  [[nodiscard]] bool is_current(TensorId tensor, MemoryId memory) const;
  [[nodiscard]] const std::vector<MemoryId>& current(TensorId tensor) const { return current_[index(tensor)]; }
  void add_current(TensorId tensor, MemoryId memory);
  void remove_current(TensorId tensor, MemoryId memory);
  /// The value begins in this memory; all others hold an older one.
  void begin_value(TensorId tensor, MemoryId memory) { current_[index(tensor)] = {memory}; }
  void end_value(TensorId tensor) { current_[index(tensor)].clear(); }

  /// Turns begin anew, so that equal iterations take the same holes.
  void begin_iteration() { std::ranges::fill(turn_, 0); }
  /// What is there now, as a plan has it at its beginning.
  [[nodiscard]] std::vector<v2::Place> initial() const;

  friend bool operator==(const Residency& a, const Residency& b) {
    return a.places_ == b.places_ && a.current_ == b.current_;
  }

 private:
  struct Place {
    MemoryId memory{};
    Bytes offset;
    friend bool operator==(const Place&, const Place&) = default;
  };
  [[nodiscard]] const Place* find(TensorId tensor, MemoryId memory) const;

  const Trace* trace_;
  const Machine* machine_;
  Holes holes_;
  std::vector<std::vector<Place>> places_;                          // of each tensor
  std::vector<std::vector<MemoryId>> current_;                      // of each tensor, ascending
  std::vector<std::multimap<std::uint64_t, TensorId>> by_address_;  // of each memory with arenas
  std::vector<FreeRanges> free_;                                    // of each memory; used without arenas
  std::vector<std::uint64_t> turn_;                                 // of each memory: where what was taken last ends
};

}  // namespace swapmm::v2::planning
