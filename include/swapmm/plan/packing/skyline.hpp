// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include <swapmm/plan/packing/shape/shape.hpp>

namespace swapmm::planning::packing {

/// Items without a place yet, by their first section. A tree whose nodes have the earliest end and the highest urgency
/// of the items below them.
class Waiting {
 public:
  explicit Waiting(const Shape& shape);

  /// All items that take room wait. `urgency` has one value per item.
  void begin(const std::vector<double>& urgency);
  void remove(std::uint32_t item);

  static constexpr std::uint32_t no_item = 0xffff'ffff;
  /// The most urgent item that begins at or after `first` and ends at or before `end`, which may be in the next round
  /// of the circle; `no_item` if there is none. Examines at most a fixed number of nodes, so it may miss an item if
  /// very many begin in the right sections and end too late.
  [[nodiscard]] std::uint32_t most_urgent(std::uint32_t first, std::uint32_t end);

 private:
  struct Node {
    std::uint32_t end = no_item;  ///< the earliest end, counted on from the section in which the item begins
    double urgency = std::numeric_limits<double>::lowest();  ///< the highest urgency
  };
  struct Query {
    std::uint32_t low = 0;   ///< positions in by_first_
    std::uint32_t high = 0;  ///< one past the last position
    std::uint32_t end = 0;
    double urgency = std::numeric_limits<double>::lowest();  ///< urgency of the item found
    std::uint32_t found = no_item;
    std::uint32_t looks_left = 0;
  };
  void renew(std::size_t node);
  void ask(Query& query, std::uint32_t first, std::uint32_t behind, std::uint32_t end) const;
  void look(Query& query, std::size_t node, std::uint32_t begin, std::uint32_t count) const;

  const Shape& shape_;
  std::vector<std::uint32_t> by_first_;  ///< items that take room
  std::vector<std::uint32_t> position_;  ///< per item: its position in by_first_
  std::size_t leaves_ = 1;
  std::vector<Node> nodes_;  ///< a heap; the leaves begin at leaves_
};

/// Packs from the bottom up. The lowest stretch of sections that are filled to the same height takes the most urgent
/// item whose lifetime lies within it. If there is none, the stretch is raised to the height of its lower neighbour.
/// (Best fit with a skyline: Burke, Kendall and Whitwell, 2004; for the memory of neural networks: Sekiyama et al.,
/// 2018.) The space below the skyline is never examined again, so one packing takes about n log n.
class Skyline {
 public:
  explicit Skyline(const Shape& shape) : shape_(shape), waiting_(shape) {}

  /// An offset for each item; valid until the next call.
  const Offsets& pack(const std::vector<double>& urgency);

 private:
  /// A stretch of sections that are filled to the same height. Stretches form a circle.
  struct Stretch {
    std::uint32_t length = 0;  ///< 0: none begins here
    std::uint64_t height = 0;
    std::uint32_t before = 0;  ///< where its neighbours begin
    std::uint32_t behind = 0;
  };

  void place_those_in_all_sections(const std::vector<double>& urgency);
  [[nodiscard]] std::uint32_t lowest();
  [[nodiscard]] std::uint32_t most_urgent_within(std::uint32_t begin);
  void place(std::uint32_t begin, std::uint32_t item);
  void give_up(std::uint32_t begin);
  std::uint32_t insert_behind(std::uint32_t before, std::uint32_t begin, std::uint32_t length, std::uint64_t height);
  void queue(std::uint32_t begin) { by_height_.emplace(stretches_[begin].height, begin); }
  void join(std::uint32_t begin);

  const Shape& shape_;
  Waiting waiting_;
  std::vector<Stretch> stretches_;  ///< by the section they begin in
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> by_height_;  ///< some may be outdated
  std::uint32_t left_ = 0;                                                    ///< items without a place
  std::uint64_t foundation_ = 0;  ///< bytes of the items that are in all sections
  Offsets offsets_;
};

/// Urgencies for Skyline: items with the most slots first, and among these the largest.
[[nodiscard]] std::vector<double> urgent_by_length(const Shape& shape);

}  // namespace swapmm::planning::packing
