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

/// The lowest of the greedy orders; ends with the first that fits in `capacity`.
[[nodiscard]] Offsets pack_greedily(const Shape& shape, const PackingEffort& effort, std::uint64_t capacity);

/// Items keep the preferred offset (`nowhere`: none) where they can, those that stay longest in the first place;
/// the others go to the best gaps. Empty where very many items would have to.
[[nodiscard]] Offsets keep_preferred(const Shape& shape, const PackingEffort& effort, std::uint64_t capacity,
                                     const Offsets& preferred);

/// Within `goal`, as many of the items as can be; the others have `nowhere`. By Blame, and ejection for the rest. From
/// the order of `preferred`, the places in a similar problem, unless it is empty.
[[nodiscard]] Offsets pack_most(const Shape& shape, const PackingEffort& effort, std::uint64_t goal,
                                const Offsets& preferred);

/// Lowers a packing, step by step: ejection, and backtracking where there are few enough items for it.
class Search {
 public:
  Search(const Shape& shape, const PackingEffort& effort) : shape_(shape), effort_(effort), budget_(effort) {}

  /// From `start` towards `goal`, which is not below what is needed in one section. Ends when it is reached or the
  /// effort is spent, or where there is proof that nothing lower is possible.
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
