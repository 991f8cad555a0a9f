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

/// The lowest packing of the greedy orders. Ends with the first one that fits into `capacity`.
[[nodiscard]] Offsets pack_greedily(const Shape& shape, std::uint64_t capacity);

/// Items keep their preferred offset (`nowhere`: none) if possible, those with the longest lifetime first; the others
/// go to the best gaps. Empty if very many items would have to.
[[nodiscard]] Offsets keep_preferred(const Shape& shape, std::uint64_t capacity, const Offsets& preferred);

/// Places as many items as possible within `goal`; the others have `nowhere`. Uses Blame, and ejection for the rest.
/// Starts from the order of `preferred`, the places in a similar problem, unless it is empty.
[[nodiscard]] Offsets pack_most(const Shape& shape, const PackingEffort& effort, std::uint64_t goal,
                                const Offsets& preferred);

/// Lowers a packing step by step, by ejection, and by backtracking if there are few enough items.
class Search {
 public:
  Search(const Shape& shape, const PackingEffort& effort) : shape_(shape), budget_(effort) {}

  /// Starts from `start` and lowers it towards `goal`, which must not be below the load of a section. Ends if the goal
  /// is reached, the effort is spent, or it is proven that nothing lower is possible.
  [[nodiscard]] Offsets lower(Offsets start, std::uint64_t goal);

 private:
  enum class Answer : std::uint8_t { fits, fits_not, unknown };
  Answer attempt(const Offsets& start, std::uint64_t capacity, std::uint64_t steps);
  Answer backtrack(std::uint64_t capacity, std::uint64_t steps);

  const Shape& shape_;
  Budget budget_;
  std::optional<Ejection> ejection_;
  std::optional<Canonical> canonical_;
  Offsets found_;
};

}  // namespace swapmm::planning::packing
