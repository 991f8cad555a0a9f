// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/plan/packing.hpp>
#include <swapmm/plan/packing/shape/budget.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// Backtracking over canonical packings: those in which each item, by ascending offset, lies as low as the ones below
/// it let it. If anything fits, then such a packing does. After MiniMalloc (Moffitt, ASPLOS 2023, with its section
/// inference, monotonic floor, dominance and decomposition), on a circle and within arenas. Exact given enough steps.
/// For up to some hundred items: it keeps who overlaps whom.
class Canonical {
 public:
  /// `effort` says which of the techniques are on.
  Canonical(const Shape& shape, const PackingEffort& effort);

  enum class Answer : std::uint8_t { fits, fits_not, unknown };
  /// The order of items whose lowest offset is the same, by three keys, each the largest first: sections, area, and
  /// the most bytes that are still to place in one of the item's sections.
  enum class Order : std::uint8_t { sections_area_total, total_area_sections, total_sections_area };

  /// Tries at most `steps` placements.
  Answer run(std::uint64_t capacity, Order order, std::uint64_t steps, Budget& budget);

  /// After `fits`.
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
  /// Items that share no section with others that are still to place, so that they are packed on their own.
  struct Component {
    std::uint32_t begin;  ///< in ranked_
    std::uint32_t end;
    std::uint32_t first;  ///< section
    std::uint32_t count;  ///< sections, on the circle
    bool is_circle;       ///< an item reaches over every border between sections
    std::uint32_t frame;  ///< that split it off: where to go on if it does not fit; or none
    std::uint32_t next;   ///< component to pack after it; or none
    std::uint64_t least_offset;
  };
  /// One placement: what can be chosen, what was, and how to undo it.
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
  /// Goes on after a placement. True when everything is placed.
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
  std::vector<std::uint64_t> floors_;    ///< per section: nothing to come lies lower
  std::vector<std::uint64_t> to_come_;   ///< per section: bytes
  std::vector<std::uint32_t> crossing_;  ///< per section: items to come that are there and in the next one
  std::vector<Frame> frames_;
  std::vector<Choice> choices_;  ///< of all frames, stacked like the following
  std::vector<Ranked> ranked_;   ///< items of components
  std::vector<Component> components_;
  std::vector<Change> lifts_;        ///< of lowest_
  std::vector<Change> raises_;       ///< of floors_
  std::vector<std::uint64_t> seen_;  ///< per section: the last placement that looked at it
  std::uint64_t placements_ = 1;     ///< and one
};

}  // namespace swapmm::planning::packing
