// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <swapmm/plan/packing/board.hpp>
#include <swapmm/plan/packing/shape/shape.hpp>
#include <swapmm/plan/packing/skyline.hpp>

namespace swapmm::planning::packing {

/// Squeaky wheel optimization (Joslin and Clements, 1999). Items take the lowest free place one after the other. Items
/// without a place within the capacity come earlier in the next round.
class Blame {
 public:
  Blame(const Shape& shape, std::uint64_t capacity);

  /// Begins with an order: highest urgency first. Urgencies are usually between 0 and 1.
  void begin(std::vector<double> urgency) { urgency_ = std::move(urgency); }
  [[nodiscard]] std::vector<double> by_length() const { return urgent_by_length(shape_); }
  [[nodiscard]] std::vector<double> by_room() const;
  /// The order of an earlier packing: items from the lowest place up; those with `nowhere` come first.
  [[nodiscard]] std::vector<double> by_place(const Offsets& offsets) const;

  /// Runs one round. Returns true if all items have a place.
  bool round();
  /// The same with Skyline: coarser, and much faster if very many items share a slot.
  bool round_by_skyline();

  /// The places of the best round so far: the one with the least room (size x sections) in `nowhere`.
  [[nodiscard]] const Offsets& best() const { return best_; }
  [[nodiscard]] double room_without_place() const { return best_room_; }

 private:
  void blame(std::uint32_t item);
  bool keep_if_best(double room);

  const Shape& shape_;
  std::uint64_t capacity_;
  Board board_;
  Skyline skyline_;
  std::vector<double> urgency_;
  std::vector<std::uint32_t> order_;
  Offsets offsets_;
  Offsets best_;
  double best_room_;
  std::mt19937_64 random_{1};
};

}  // namespace swapmm::planning::packing
