// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <swapmm/plan/packing_board.hpp>

namespace swapmm {
namespace {

using packing::Board;

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max() - 1;

double area(const PackingProblem& problem, std::uint32_t item) {
  return static_cast<double>(problem.items[item].size.value) * static_cast<double>(problem.items[item].length);
}

enum class Order : std::uint8_t { area, size, length, start };
constexpr Order orders[] = {Order::area, Order::size, Order::length, Order::start};

std::vector<std::uint32_t> sorted(const PackingProblem& problem, Order order) {
  std::vector<std::uint32_t> ids(problem.items.size());
  std::iota(ids.begin(), ids.end(), 0U);
  const auto key = [&](std::uint32_t id) {
    const PackingItem& item = problem.items[id];
    const auto size = static_cast<double>(item.size.value);
    const auto length = static_cast<double>(item.length);
    // What is there all the time goes first in every order: it is in everybody's way, so best at one end.
    const int always = item.length == problem.slots ? 0 : 1;
    switch (order) {
      case Order::area: return std::tuple(always, -size * length, -size, id);
      case Order::size: return std::tuple(always, -size, -length, id);
      case Order::length: return std::tuple(always, -length, -size, id);
      case Order::start: break;
    }
    return std::tuple(always, static_cast<double>(item.start), -size, id);
  };
  std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return ids;
}

std::uint64_t height_of(const Board& board) {
  std::uint64_t height = 0;
  for (std::uint32_t item = 0; item < board.size(); ++item) {
    height = std::max(height, board.offset_of(item) + board.size_of(item));
  }
  return height;
}

Packing packing_of(const Board& board) {
  Packing result;
  result.offsets.reserve(board.size());
  for (std::uint32_t item = 0; item < board.size(); ++item) result.offsets.emplace_back(board.offset_of(item));
  result.height = Bytes{height_of(board)};
  return result;
}

void place_greedily(Board& board, const std::vector<std::uint32_t>& order) {
  board.clear();
  for (const std::uint32_t item : order) {
    board.place(item, board.best_fit(board.conflicts(item), board.size_of(item), no_limit));
  }
}

/// The lowest of the greedy orders; ends with the first that fits in `capacity`.
Packing best_greedy(const PackingProblem& problem, Board& board, std::uint64_t capacity) {
  Packing best;
  for (const Order order : orders) {
    place_greedily(board, sorted(problem, order));
    const std::uint64_t height = height_of(board);
    if (best.offsets.empty() || height < best.height.value) best = packing_of(board);
    if (best.height.value <= capacity) break;
  }
  return best;
}

/// Items without a place take the cheapest occupied one; whoever was there looks for another, and is dearer to move
/// the next time. So the search leaves the places where it would otherwise go in circles.
class Ejection {
 public:
  Ejection(const PackingProblem& problem, Board& board, std::uint64_t capacity)
      : board_(board), capacity_(capacity), weight_(board.size()) {
    for (std::uint32_t item = 0; item < board.size(); ++item) weight_[item] = area(problem, item) + 1;
  }

  /// Starts from `offsets`; what ends above the capacity has no place yet. True when everything has one.
  bool run(const std::vector<Bytes>& offsets, std::uint32_t steps) {
    board_.clear();
    for (std::uint32_t item = 0; item < board_.size(); ++item) {
      if (offsets[item].value + board_.size_of(item) <= capacity_) {
        board_.place(item, offsets[item].value);
      } else {
        push(item);
      }
    }
    for (; steps > 0 && !homeless_.empty(); --steps) {
      const std::uint32_t item = pop();
      const auto& conflicts = board_.conflicts(item);
      const std::uint64_t place = board_.best_fit(conflicts, board_.size_of(item), capacity_);
      if (place != Board::nowhere) {
        board_.place(item, place);
      } else if (!take_occupied_place(item, conflicts)) {
        return false;  // larger than the capacity
      }
    }
    return homeless_.empty();
  }

 private:
  bool is_less_urgent(std::uint32_t a, std::uint32_t b) const {
    return weight_[a] != weight_[b] ? weight_[a] < weight_[b] : a > b;
  }
  void push(std::uint32_t item) {
    homeless_.push_back(item);
    std::push_heap(homeless_.begin(), homeless_.end(), [&](auto a, auto b) { return is_less_urgent(a, b); });
  }
  std::uint32_t pop() {
    std::pop_heap(homeless_.begin(), homeless_.end(), [&](auto a, auto b) { return is_less_urgent(a, b); });
    const std::uint32_t item = homeless_.back();
    homeless_.pop_back();
    return item;
  }

  /// The weights of the conflicts that overlap [place, place + size), for places asked for in ascending order: those
  /// that begin before its end, less those that end before its start.
  class AscendingCost {
   public:
    AscendingCost(const Ejection& search, const std::vector<Board::Range>& conflicts)
        : search_(search), conflicts_(conflicts) {}

    double at(std::uint64_t place, std::uint64_t size) {
      for (; begun_ < conflicts_.size() && conflicts_[begun_].offset < place + size; ++begun_) {
        sum_ += search_.weight_[conflicts_[begun_].item];
      }
      for (; ended_ < search_.by_end_.size() && search_.by_end_[ended_].first <= place; ++ended_) {
        sum_ -= search_.weight_[search_.by_end_[ended_].second];
      }
      return sum_;
    }

   private:
    const Ejection& search_;
    const std::vector<Board::Range>& conflicts_;
    std::size_t begun_ = 0;
    std::size_t ended_ = 0;
    double sum_ = 0;
  };

  bool take_occupied_place(std::uint32_t item, const std::vector<Board::Range>& conflicts) {
    const std::uint64_t size = board_.size_of(item);
    by_end_.clear();
    for (const Board::Range& range : conflicts) by_end_.emplace_back(range.end, range.item);
    std::sort(by_end_.begin(), by_end_.end());

    std::uint64_t best = Board::nowhere;
    double best_cost = std::numeric_limits<double>::infinity();
    const auto consider = [&](std::uint64_t place, AscendingCost& cost) {
      place = board_.allowed(place, size);
      if (place + size > capacity_) return;
      if (const double price = cost.at(place, size); price < best_cost) {
        best = place;
        best_cost = price;
      }
    };
    AscendingCost above(*this, conflicts);  // right above somebody, or at the bottom
    consider(0, above);
    for (const auto& [end, owner] : by_end_) consider(end, above);
    AscendingCost below(*this, conflicts);  // right below somebody
    for (const Board::Range& range : conflicts) {
      if (range.offset >= size) consider(range.offset - size, below);
    }
    if (best == Board::nowhere) return false;
    ejected_.clear();
    for (const Board::Range& range : conflicts) {
      if (range.offset < best + size && best < range.end) ejected_.push_back(range.item);
    }
    for (const std::uint32_t other : ejected_) {
      board_.remove(other);
      weight_[other] *= dearer_each_time;
      push(other);
    }
    board_.place(item, best);
    return true;
  }

  // Over the most steps there are, weights stay far below what a double holds.
  static constexpr double dearer_each_time = 1.1;

  Board& board_;
  std::uint64_t capacity_;
  std::vector<double> weight_;
  std::vector<std::uint32_t> homeless_;  ///< a heap, the heaviest first
  std::vector<std::uint32_t> ejected_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_end_;  ///< conflicts: end and item
};

std::optional<Problem> too_large_item(const PackingProblem& problem, const Board& board) {
  if (!problem.max_allocation) return std::nullopt;
  for (std::uint32_t item = 0; item < board.size(); ++item) {
    if (board.size_of(item) <= problem.max_allocation->value) continue;
    return Problem{"item " + std::to_string(item) + " has " + std::to_string(board.size_of(item)) +
                   " bytes; no allocation is larger than " + std::to_string(problem.max_allocation->value)};
  }
  return std::nullopt;
}

// Bytes of its own for every item, where there are enough for that: nothing to search, however many items there are.
std::optional<Packing> side_by_side(const PackingProblem& problem, const Board& board) {
  Packing packing;
  std::uint64_t end = 0;
  for (std::uint32_t item = 0; item < board.size(); ++item) {
    const std::uint64_t offset = board.size_of(item) == 0 ? 0 : board.allowed(end, board.size_of(item));
    if (board.size_of(item) > problem.capacity.value || offset > problem.capacity.value - board.size_of(item)) {
      return std::nullopt;
    }
    packing.offsets.push_back(Bytes{offset});
    end = std::max(end, offset + board.size_of(item));
  }
  packing.height = Bytes{end};
  return packing;
}

bool ejection_fits(const PackingProblem& problem, Board& board, const Packing& start, std::uint64_t capacity,
                   PackingEffort effort) {
  // A few rounds over all items show whether it converges; a small problem must not cost what a large one does.
  const auto rounds = static_cast<std::uint32_t>(std::min<std::size_t>(problem.items.size() * 40, 1U << 30U));
  return Ejection(problem, board, capacity).run(start.offsets, std::min(effort.ejection_steps, rounds));
}

}  // namespace

Bytes packing_load(const PackingProblem& problem) {
  struct Change {
    std::uint32_t slot;
    std::uint64_t added;
    std::uint64_t removed;
  };
  std::vector<Change> changes;
  std::uint64_t load = 0;
  for (const PackingItem& item : problem.items) {
    const std::uint64_t size = round_up(item.size, problem.alignment).value;
    const std::uint64_t end = std::uint64_t{item.start} + item.length;
    changes.push_back({item.start, size, 0});
    changes.push_back({static_cast<std::uint32_t>(end % problem.slots), 0, size});
    if (end >= problem.slots) load += size;  // there in the slot before the first
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

Result<Packing> pack_towards(const PackingProblem& problem, PackingEffort effort) {
  Board board(problem);
  if (auto finding = too_large_item(problem, board)) return *finding;
  if (auto roomy = side_by_side(problem, board)) return *std::move(roomy);
  Packing best = best_greedy(problem, board, problem.capacity.value);
  if (best.height <= problem.capacity || packing_load(problem) > problem.capacity) return best;
  if (ejection_fits(problem, board, best, problem.capacity.value, effort)) return packing_of(board);
  return best;
}

Result<Packing> pack_lowest(const PackingProblem& problem, PackingEffort effort) {
  Board board(problem);
  if (auto finding = too_large_item(problem, board)) return *finding;
  Packing best = best_greedy(problem, board, 0);
  std::uint64_t low = packing_load(problem).value;  // below or at what is possible
  constexpr int halvings = 8;
  for (int i = 0; i < halvings && low < best.height.value; ++i) {
    const std::uint64_t target = low + (best.height.value - low) / 2;
    if (ejection_fits(problem, board, best, target, effort)) {
      best = packing_of(board);
    } else {
      low = target + 1;
    }
  }
  return best;
}

}  // namespace swapmm
