// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing/search.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/plan/packing/blame.hpp>
#include <swapmm/plan/packing/board.hpp>
#include <swapmm/plan/packing/skyline.hpp>
#include <swapmm/plan/problem/share.hpp>

namespace swapmm::planning::packing {
namespace {

enum class Order : std::uint8_t { area, size, length, start };

struct Greedy {
  Order order;
  Board::Fit fit;
};
/// The fastest first: items that stay long lie at the bottom, and occupied ranges merge into few.
constexpr Greedy greedies[] = {{Order::length, Board::Fit::best},
                               {Order::area, Board::Fit::best},
                               {Order::size, Board::Fit::first},
                               {Order::start, Board::Fit::best}};

/// How many ranges the greedy orders after the skyline's may examine, so that they stay close to n log n.
std::uint64_t most_looks(const Shape& shape) { return 2'000'000 + std::uint64_t{100} * shape.size(); }

std::vector<std::uint32_t> sorted(const Shape& shape, Order order) {
  using Key = std::tuple<int, double, double>;
  std::vector<Key> keys;
  keys.reserve(shape.size());
  for (const Shape::Item& item : shape.items) {
    const auto size = static_cast<double>(item.size);
    const double count = item.count;
    // Items that are there all the time go first in every order: they are in the way of all others, so they should be
    // at one end.
    const int always = item.count == shape.sections ? 0 : 1;
    switch (order) {
      case Order::area: keys.emplace_back(always, -size * count, -size); break;
      case Order::size: keys.emplace_back(always, -size, -count); break;
      case Order::length: keys.emplace_back(always, -static_cast<double>(item.length), -size); break;
      case Order::start: keys.emplace_back(always, item.first, -size); break;
    }
  }
  std::vector<std::uint32_t> ids(shape.size());
  std::iota(ids.begin(), ids.end(), 0U);
  std::sort(ids.begin(), ids.end(),
            [&](std::uint32_t a, std::uint32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  return ids;
}

/// Number of placements of backtracking for one of ejection, on the way to the goal and at the goal.
constexpr std::uint64_t placements_on_the_way = 4;
constexpr std::uint64_t placements_at_goal = 32;
/// The work, as in Budget::spend(), of a step that places all items in an order.
constexpr std::uint64_t most_work = 1000;

}  // namespace

Offsets pack_greedily(const Shape& shape, const PackingEffort& effort, std::uint64_t capacity) {
  Offsets best = Skyline(shape).pack(urgent_by_length(shape));
  std::uint64_t best_height = shape.height(best);
  if (best_height <= capacity || shape.size() > effort.many_items || !effort.greedy_orders) return best;
  Board board(shape);
  for (const Greedy& greedy : greedies) {
    board.clear();
    Offsets offsets(shape.size());
    for (const std::uint32_t item : sorted(shape, greedy.order)) {
      offsets[item] = board.fit(item, greedy.fit);
      board.place(item, offsets[item]);
      if (board.looks() > most_looks(shape)) return best;
    }
    const std::uint64_t height = shape.height(offsets);
    if (height < best_height) {
      best = std::move(offsets);
      best_height = height;
    }
    if (best_height <= capacity) break;
  }
  return best;
}

Offsets keep_preferred(const Shape& shape, const PackingEffort& effort, std::uint64_t capacity,
                       const Offsets& preferred) {
  Board board(shape);
  Offsets offsets(shape.size(), nowhere);
  const std::vector<std::uint32_t> order = sorted(shape, Order::length);
  for (const std::uint32_t item : order) {
    const std::uint64_t offset = preferred[item];
    const std::uint64_t size = shape.items[item].size;
    const bool is_possible = size <= capacity && offset <= capacity - size && offset % shape.alignment == 0 &&
                             shape.allowed(offset, size) == offset;
    if (!is_possible || !board.is_free(item, offset)) continue;
    offsets[item] = size == 0 ? 0 : offset;
    board.place(item, offset);
  }
  // Very many new places would take long, and be no better than those of a fast order.
  const auto without_place = std::count(offsets.begin(), offsets.end(), nowhere);
  if (shape.size() > effort.many_items && without_place > shape.size() / 8) return {};
  for (const std::uint32_t item : order) {
    if (offsets[item] != nowhere) continue;
    offsets[item] = board.fit(item, Board::Fit::best);
    board.place(item, offsets[item]);
  }
  return offsets;
}

namespace {

/// Runs rounds of Blame, within what is left of the effort. Each function returns true if all items have a place.
class BlameRounds {
 public:
  BlameRounds(const Shape& shape, const PackingEffort& effort, std::uint64_t goal)
      : blame_(shape, goal),
        budget_(effort),
        steps_(effort.squeaky_wheel ? effort.ejection_steps : 0),
        items_(shape.size()),
        has_many_items_(shape.size() > effort.many_items) {}

  /// Starts from an order, and uses a part of the steps.
  bool first_fit(std::vector<double> urgency, double part) { return run(&Blame::round, std::move(urgency), part, 16); }
  bool skyline(std::vector<double> urgency, double part) {
    return run(&Blame::round_by_skyline, std::move(urgency), part, 128);
  }
  [[nodiscard]] Blame& blame() { return blame_; }
  [[nodiscard]] bool has_many_items() const { return has_many_items_; }

 private:
  /// A round counts as one step per `items_of_step` items.
  bool run(bool (Blame::*round)(), std::vector<double> urgency, double part, std::uint64_t items_of_step) {
    const std::uint64_t steps_of_round = items_ / items_of_step + 1;
    const std::uint64_t most = steps_ / steps_of_round + 1;
    const std::uint64_t rounds = share_of(most, part);
    blame_.begin(std::move(urgency));
    for (std::uint64_t i = 0; !has_offsets_ || (i < rounds && !budget_.is_spent()); ++i) {
      has_offsets_ = true;  // at least one round, however small the part
      if ((blame_.*round)()) return true;
      for (std::uint64_t step = 0; step < steps_of_round && !budget_.is_spent(); ++step) budget_.spend(most_work);
    }
    return false;
  }

  Blame blame_;
  Budget budget_;
  std::uint64_t steps_;
  std::uint64_t items_;
  bool has_many_items_;
  bool has_offsets_ = false;
};

bool place_all(BlameRounds& rounds, const Offsets& preferred) {
  Blame& blame = rounds.blame();
  if (rounds.has_many_items()) {
    return rounds.skyline(blame.by_length(), 0.5) ||
           rounds.skyline(preferred.empty() ? blame.by_room() : blame.by_place(preferred), 0.5);
  }
  if (!preferred.empty()) return rounds.first_fit(blame.by_place(preferred), 1);
  constexpr double few = 0.1;
  return rounds.skyline(blame.by_length(), few) || rounds.skyline(blame.by_room(), few) ||
         rounds.first_fit(blame.by_length(), 0.4) || rounds.first_fit(blame.by_room(), 0.4);
}

}  // namespace

Offsets pack_most(const Shape& shape, const PackingEffort& effort, std::uint64_t goal, const Offsets& preferred) {
  BlameRounds rounds(shape, effort, goal);
  const bool fits = place_all(rounds, preferred);
  const Blame& blame = rounds.blame();
  if (fits || !effort.ejection) return blame.best();

  // Ejection tries to place the few that are left over.
  PackingEffort rest = effort;
  rest.ejection_steps = effort.ejection_steps / 4;
  Budget ejection_budget(rest);
  Ejection ejection(shape);
  if (ejection.run(blame.best(), goal, rest.ejection_steps, ejection_budget)) return ejection.offsets();
  return blame.best();
}

Search::Answer Search::backtrack(std::uint64_t capacity, std::uint64_t steps) {
  if (!can_backtrack()) return Answer::unknown;
  if (!canonical_) canonical_.emplace(shape_, effort_);
  using Order = Canonical::Order;
  constexpr Order orders[] = {Order::sections_area_total, Order::total_area_sections, Order::total_sections_area};
  for (const Order order : std::span(orders).first(std::clamp<std::size_t>(effort_.orders, 1, std::size(orders)))) {
    const Canonical::Answer answer = canonical_->run(capacity, order, steps, budget_);
    if (answer == Canonical::Answer::fits_not) return Answer::fits_not;
    if (answer != Canonical::Answer::fits) continue;
    found_ = canonical_->offsets();
    return Answer::fits;
  }
  return Answer::unknown;
}

Search::Answer Search::attempt(const Offsets& start, std::uint64_t capacity, std::uint64_t steps) {
  if (effort_.ejection) {
    if (!ejection_) ejection_.emplace(shape_);
    if (ejection_->run(start, capacity, steps, budget_)) {
      found_ = ejection_->offsets();
      return Answer::fits;
    }
  }
  return backtrack(capacity, steps * placements_on_the_way);
}

Offsets Search::lower(Offsets start, std::uint64_t goal) {
  if (!effort_.ejection && !can_backtrack()) return start;
  goal = (goal + shape_.alignment - 1) / shape_.alignment * shape_.alignment;
  std::uint64_t height = shape_.height(start);
  std::uint64_t low = goal;  // lower heights were just tried, or are not asked for
  std::uint64_t steps = std::max<std::uint64_t>(shape_.size() / 4, 100);
  while (height > goal && !budget_.is_spent()) {
    // Halfway, or the goal itself if that is close to it.
    std::uint64_t target = low + (height - low) / 2 / shape_.alignment * shape_.alignment;
    if (low == goal && target - goal < goal / 400) target = goal;
    target = std::min(target, height - shape_.alignment);
    const Answer answer = attempt(start, target, steps);
    if (answer == Answer::fits) {
      start = std::move(found_);
      height = shape_.height(start);
    } else {
      low = target + shape_.alignment;
      if (answer == Answer::fits_not) goal = low;
    }
    if (low >= height || height - low < goal / 1000) {
      low = goal;
      const Answer at_goal = backtrack(goal, steps * placements_at_goal);
      if (at_goal == Answer::fits) return std::move(found_);
      if (at_goal == Answer::fits_not) low = goal += shape_.alignment;
      steps *= 2;
    }
  }
  return start;
}

}  // namespace swapmm::planning::packing
