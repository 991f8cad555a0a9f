// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <swapmm/plan/packing/arenas.hpp>
#include <swapmm/plan/packing/search.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm {
namespace {

namespace packing = planning::packing;

using packing::nowhere;
using packing::Offsets;
using packing::Shape;

std::uint64_t size_of(const PackingProblem& problem, std::uint32_t item) {
  return round_up(problem.items[item].size, problem.alignment).value;
}

std::optional<Problem> too_large_item(const PackingProblem& problem) {
  if (!problem.max_allocation) return std::nullopt;
  for (std::uint32_t item = 0; item < problem.items.size(); ++item) {
    if (size_of(problem, item) <= problem.max_allocation->value) continue;
    return Problem{"item " + std::to_string(item) + " has " + std::to_string(size_of(problem, item)) +
                   " bytes; no allocation is larger than " + std::to_string(problem.max_allocation->value)};
  }
  return std::nullopt;
}

/// Gives every item bytes of its own, if there are enough. Then there is nothing to search, however many items there
/// are.
std::optional<Packing> side_by_side(const PackingProblem& problem) {
  const std::uint64_t arena = problem.max_allocation ? problem.max_allocation->value : nowhere;
  Packing packing;
  packing.offsets.reserve(problem.items.size());
  std::uint64_t end = 0;
  for (std::uint32_t item = 0; item < problem.items.size(); ++item) {
    const std::uint64_t size = size_of(problem, item);
    const std::uint64_t offset = size == 0 ? 0 : packing::above(end, size, arena);
    if (size > problem.capacity.value || offset > problem.capacity.value - size) return std::nullopt;
    packing.offsets.push_back(Bytes{offset});
    end = std::max(end, offset + size);
  }
  packing.height = Bytes{end};
  return packing;
}

/// Splits a problem into two parts: items that are there all the time lie at the bottom, and the others are packed into
/// what is left of the capacity. With arenas, nothing lies at the bottom, because then it matters which items share an
/// arena.
class Foundation {
 public:
  explicit Foundation(const PackingProblem& problem) : problem_(problem) {
    for (std::uint32_t item = 0; item < problem.items.size(); ++item) {
      const bool is_always = problem.items[item].length == problem.slots && !problem.max_allocation;
      (is_always ? always_ : others_).push_back(item);
      if (is_always) height_ += size_of(problem, item);
    }
  }

  [[nodiscard]] std::uint64_t height() const { return height_; }
  [[nodiscard]] const std::vector<std::uint32_t>& others() const { return others_; }

  /// The preferred offsets of the other items, relative to the top of the earlier foundation. That top is taken to be
  /// the lowest of these offsets.
  [[nodiscard]] Offsets preferred(std::span<const Bytes> of_items) const {
    std::uint64_t bottom = nowhere;
    for (const std::uint32_t item : others_) {
      if (size_of(problem_, item) > 0) bottom = std::min(bottom, of_items[item].value);
    }
    if (problem_.max_allocation || bottom == nowhere) bottom = 0;
    Offsets offsets;
    offsets.reserve(others_.size());
    for (const std::uint32_t item : others_) {
      const std::uint64_t offset = of_items[item].value;
      offsets.push_back(offset == no_preferred_offset.value || offset < bottom ? nowhere : offset - bottom);
    }
    return offsets;
  }

  [[nodiscard]] Packing packing(const Shape& shape, const Offsets& offsets) const {
    Packing result;
    result.offsets.resize(problem_.items.size());
    std::uint64_t end = 0;
    for (const std::uint32_t item : always_) {
      const std::uint64_t size = size_of(problem_, item);
      result.offsets[item] = Bytes{size == 0 ? 0 : end};
      end += size;
    }
    for (std::size_t k = 0; k < others_.size(); ++k) {
      const std::uint64_t size = shape.items[k].size;
      if (size > 0 && offsets[k] == nowhere) result.unplaced.push_back(others_[k]);
      // Items without a place get an offset above all possible ones that is still valid input.
      const std::uint64_t offset = offsets[k] == nowhere ? problem_.capacity.value : offsets[k] + height_;
      result.offsets[others_[k]] = Bytes{size == 0 ? 0 : offset};
      if (size > 0) end = std::max(end, offset + size);
    }
    result.height = Bytes{end};
    return result;
  }

 private:
  const PackingProblem& problem_;
  std::vector<std::uint32_t> always_;
  std::vector<std::uint32_t> others_;
  std::uint64_t height_ = 0;
};

/// Packs towards the height `goal`, above the foundation.
Offsets pack_shape(const Shape& shape, std::uint64_t goal, std::uint64_t load, const PackingEffort& effort,
                   const Offsets& preferred) {
  const bool is_possible = load <= goal;
  if (is_possible && shape.sections == 1 && shape.arena != nowhere) {
    packing::ArenaAnswer answer = packing::pack_arenas(shape, goal);
    if (answer.offsets) return *std::move(answer.offsets);
    if (answer.is_exact) return packing::pack_greedily(shape, effort, goal);
  }
  packing::Search search(shape, effort);
  Offsets best;
  if (!preferred.empty()) {
    // Correcting a few places is faster than making a greedy order, and leaves most items where they were.
    best = packing::keep_preferred(shape, effort, goal, preferred);
    if (is_possible && !best.empty()) best = search.lower(std::move(best), goal);
    if (!best.empty() && shape.height(best) <= goal) return best;
  }
  Offsets greedy = packing::pack_greedily(shape, effort, goal);
  if (best.empty() || shape.height(greedy) < shape.height(best)) best = std::move(greedy);
  if (!is_possible || shape.height(best) <= goal) return best;
  if (effort.keep_most) return packing::pack_most(shape, effort, goal, preferred);
  return search.lower(std::move(best), goal);
}

}  // namespace

Bytes packing_load(const PackingProblem& problem) {
  struct Change {
    std::uint32_t slot;
    std::uint64_t added;
    std::uint64_t removed;
  };
  std::vector<Change> changes;
  changes.reserve(2 * problem.items.size());
  std::uint64_t load = 0;
  for (const PackingItem& item : problem.items) {
    const std::uint64_t size = round_up(item.size, problem.alignment).value;
    const std::uint64_t end = std::uint64_t{item.start} + item.length;
    changes.push_back({item.start, size, 0});
    changes.push_back({static_cast<std::uint32_t>(end % problem.slots), 0, size});
    if (end >= problem.slots) load += size;  // it is there just before slot 0
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.slot != b.slot ? a.slot < b.slot : a.removed > b.removed;
  });
  std::uint64_t most = load;
  for (const Change& change : changes) {
    load = load - change.removed + change.added;
    most = std::max(most, load);
  }
  return Bytes{most};
}

Result<Packing> pack(const PackingProblem& problem, PackingEffort effort) {
  Result<Packing> packing = pack_towards(problem, effort);
  if (!packing || packing->height <= problem.capacity) return packing;
  const Bytes load = packing_load(problem);
  return Problem{(load > problem.capacity
                      ? "the items need " + std::to_string(load.value) + " bytes in one slot"
                      : "the lowest packing found takes " + std::to_string(packing->height.value) + " bytes") +
                 "; there are " + std::to_string(problem.capacity.value)};
}

Result<Packing> pack_towards(const PackingProblem& problem, PackingEffort effort, std::span<const Bytes> preferred) {
  if (auto finding = too_large_item(problem)) return *finding;
  if (preferred.empty()) {
    if (auto roomy = side_by_side(problem)) return *std::move(roomy);
  }
  const Foundation foundation(problem);
  const Shape shape(problem, foundation.others());
  const std::uint64_t load = packing_load(problem).value - foundation.height();
  const std::uint64_t capacity = round_down(problem.capacity, problem.alignment).value;
  // If the foundation leaves no room, the rest is packed greedily, as low as that gets it.
  const std::uint64_t goal = capacity >= foundation.height() ? capacity - foundation.height() : 0;
  const Offsets wanted = preferred.empty() ? Offsets{} : foundation.preferred(preferred);
  return foundation.packing(shape, pack_shape(shape, goal, load, effort, wanted));
}

Result<Packing> pack_lowest(const PackingProblem& problem, PackingEffort effort) {
  PackingProblem lowest = problem;
  lowest.capacity = packing_load(problem);
  return pack_towards(lowest, effort);
}

}  // namespace swapmm
