// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <swapmm/plan/packing/improve/canonical.hpp>
#include <swapmm/plan/packing/improve/ejection.hpp>
#include <swapmm/plan/packing/shape/budget.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// Tries several greedy orders. Returns the lowest packing, or the first that fits in `capacity`.
[[nodiscard]] Offsets pack_greedily(const Shape& shape, const PackingEffort& effort, std::uint64_t capacity);

/// Keeps items at their preferred offsets (`nowhere`: none) if possible, beginning with the longest lifetimes. The
/// others go to the best gaps. Returns no offsets if very many items would have to.
[[nodiscard]] Offsets keep_preferred(const Shape& shape, const PackingEffort& effort, std::uint64_t capacity,
                                     const Offsets& preferred);

/// Packs as much as possible within `goal`; the other items have `nowhere`. Uses Blame, and ejection for the rest.
/// Starts from the order of `preferred`, the places in a similar problem, unless it is empty.
[[nodiscard]] Offsets pack_most(const Shape& shape, const PackingEffort& effort, std::uint64_t goal,
                                const Offsets& preferred);

/// Lowers a packing step by step: by ejection, and by backtracking if there are few enough items.
class Search {
 public:
  Search(const Shape& shape, const PackingEffort& effort) : shape_(shape), effort_(effort), budget_(effort) {}

  /// Lowers `start` towards `goal`, which must not be below what one section needs. Ends if the goal is reached, the
  /// effort is spent, or it is proven that nothing lower is possible.
  [[nodiscard]] Offsets lower(Offsets start, std::uint64_t goal);

 private:
  enum class Answer : std::uint8_t { fits, fits_not, unknown };
  Answer attempt(const Offsets& start, std::uint64_t capacity, std::uint64_t steps);
  Answer backtrack(std::uint64_t capacity, std::uint64_t steps);
  [[nodiscard]] bool can_backtrack() const { return effort_.backtracking && shape_.size() <= effort_.most_items; }

  const Shape& shape_;
  const PackingEffort& effort_;
  Budget budget_;
  std::optional<Ejection> ejection_;
  std::optional<Canonical> canonical_;
  Offsets found_;
};

}  // namespace swapmm::planning::packing
