// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/packing/shape/budget.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// Backtracking over canonical packings, in which each item, by ascending offset, lies as low as the items below it
/// allow. If any packing fits, a canonical one does. Follows MiniMalloc (Moffitt, ASPLOS 2023, with its section
/// inference, monotonic floor, dominance and decomposition), on a circle and within arenas. Exact if there are enough
/// steps. For up to some hundred items, because it stores all pairs that overlap.
class Canonical {
 public:
  /// `effort` says which of the techniques are on.
  Canonical(const Shape& shape, const PackingEffort& effort);

  enum class Answer : std::uint8_t { fits, fits_not, unknown };
  /// The order of items with the same lowest offset. Three keys, each largest first: sections, area, and the largest
  /// number of bytes still to be placed in one of the item's sections.
  enum class Order : std::uint8_t { sections_area_total, total_area_sections, total_sections_area };

  /// Tries at most `steps` placements.
  Answer run(std::uint64_t capacity, Order order, std::uint64_t steps, Budget& budget);

  /// The offsets found. Valid after the result `fits`.
  [[nodiscard]] const Offsets& offsets() const { return offsets_; }

 private:
  static constexpr std::uint32_t none = 0xffff'ffff;

  struct Ranked {
    std::uint32_t item;
    std::uint32_t rank;  ///< in the order of its component
  };
  struct Choice {
    std::uint64_t offset;
    std::uint32_t rank;
    std::uint32_t item;
  };
  /// A component: items that share no section with other items still to be placed, so they are packed separately.
  struct Component {
    std::uint32_t begin;  ///< in ranked_
    std::uint32_t end;
    std::uint32_t first;  ///< section
    std::uint32_t count;  ///< sections, on the circle
    bool is_circle;       ///< an item reaches over every border between sections
    std::uint32_t frame;  ///< the frame that split it off, at which the search continues if it does not fit; or none
    std::uint32_t next;   ///< component to pack after it; or none
    std::uint64_t least_offset;
  };
  /// One placement: the possible choices, the choice made, and how to undo it.
  struct Frame {
    Component component;
    std::uint32_t items_left;
    std::uint32_t choices_begin;
    std::uint32_t next_choice;
    std::uint32_t choices_end;
    std::uint32_t placed;
    std::uint32_t lifted;
    std::uint32_t raised;
    std::uint32_t ranked;
    std::uint32_t components;
  };
  struct Change {
    std::uint32_t index;
    std::uint64_t before;
  };

  bool begin(std::uint64_t capacity, Order order);
  void open(Component component, std::uint32_t least_rank);
  bool place(const Frame& frame, const Choice& choice);
  bool lift_neighbours(std::uint32_t item);
  void raise_floors(std::size_t first_lifted);
  [[nodiscard]] bool may_fit(const Component& component, std::uint64_t offset) const;
  void undo(Frame& frame);
  bool backtrack();
  /// Continues after a placement. Returns true if everything is placed.
  bool descend(const Choice& choice);
  std::uint32_t split(const std::vector<std::uint32_t>& items, Component whole, std::vector<std::uint32_t> cuts);
  std::uint32_t add_component(std::vector<std::uint32_t>& items, Component component);
  void sort(std::vector<std::uint32_t>& items) const;
  template <class Visit>
  void for_each_border(std::uint32_t item, Visit&& visit) const;

  const Shape& shape_;
  bool has_dominance_;
  bool has_section_floors_;
  bool has_decomposition_;
  std::vector<std::vector<std::uint32_t>> neighbours_;
  std::vector<std::vector<std::uint32_t>> in_section_;

  std::uint64_t capacity_ = 0;
  Order order_ = Order::sections_area_total;
  std::uint64_t work_ = 0;
  Offsets offsets_;
  std::vector<std::uint64_t> lowest_;    ///< per item: offset above all placed neighbours
  std::vector<std::uint64_t> floors_;    ///< per section: no further item lies lower
  std::vector<std::uint64_t> to_come_;   ///< per section: bytes still to be placed
  std::vector<std::uint32_t> crossing_;  ///< per section: items still to be placed that are in it and in the next one
  std::vector<Frame> frames_;
  std::vector<Choice> choices_;  ///< of all frames; a stack, like the vectors below
  std::vector<Ranked> ranked_;   ///< items of components
  std::vector<Component> components_;
  std::vector<Change> lifts_;        ///< of lowest_
  std::vector<Change> raises_;       ///< of floors_
  std::vector<std::uint64_t> seen_;  ///< per section: the last placement that examined it
  std::uint64_t placements_ = 1;     ///< number of placements so far, plus one
};

}  // namespace swapmm::planning::packing
