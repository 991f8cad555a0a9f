// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/absence_stays.hpp>
#include <swapmm/plan/overlap_ledger.hpp>
#include <swapmm/plan/schedule.hpp>

namespace swapmm {

/// Decisions that have places, changed one by one such that everybody keeps one: the room that a packing left over, in
/// pieces, goes to tensors that then need not go out, or that return in time. What has no place any more takes the
/// cheapest one (size x lifetime, dearer each time), and those who were there look for another.
class PlaceFilling {
 public:
  /// `offsets`: of stays_of(ledger). Those that end above the budget are none. Changes the decisions in `ledger`.
  PlaceFilling(OverlapLedger& ledger, std::span<const Bytes> offsets);

  /// Places for those that have none; what finds no place goes out wherever it can. False where that does not suffice,
  /// or takes more than so many looks().
  [[nodiscard]] bool house_everybody(std::size_t moves, std::uint64_t most_looks);

  /// Over an absence its tensor, which is away, stays from now on, if that takes at most so many moves of others. No
  /// arrival. Looks at all stays once for each move.
  bool try_to_stay(std::uint32_t absence, std::size_t moves);
  /// The same for one that leaves and returns in other gaps than before.
  bool try_to_move(std::uint32_t absence, std::uint32_t leaves, std::uint32_t returns, std::size_t moves);

  /// How many stays were looked at so far, ever since it was made: a few nanoseconds each.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

  /// The stays of the decisions as they are now, and their offsets.
  [[nodiscard]] Schedule schedule() const { return {Pace::overlapped, stays_of(ledger_)}; }
  [[nodiscard]] std::vector<Bytes> offsets() const;

 private:
  /// A stay, and where it lies.
  struct Guest {
    TensorId tensor{};
    std::uint32_t start = 0;  ///< gap
    std::uint32_t slots = 0;  ///< operations that it takes from there on
    std::uint64_t size = 0;
    std::uint64_t offset = 0;
    double weight = 0;  ///< how dear it is to move

    [[nodiscard]] double area() const { return static_cast<double>(size) * slots; }
  };
  /// Bytes of a guest that is there at the same time.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint32_t guest = 0;
  };

  [[nodiscard]] std::vector<Guest> guests_of(TensorId tensor) const;
  [[nodiscard]] bool share_a_slot(const Guest& a, const Guest& b) const;
  [[nodiscard]] bool rehouse(TensorId tensor, std::size_t moves);
  [[nodiscard]] bool house(std::vector<std::uint32_t> homeless, std::size_t moves);
  void look_around(const Guest& guest);
  [[nodiscard]] bool is_free(std::uint64_t place, std::uint64_t size) const;
  [[nodiscard]] std::uint64_t free_place(std::uint64_t size) const;
  [[nodiscard]] std::uint64_t cheapest_place(std::uint64_t size) const;

  OverlapLedger& ledger_;
  std::uint32_t slots_;
  std::vector<Guest> guests_;                                   ///< in the order of stays_of()
  std::vector<Range> in_the_way_;                               ///< of the last look, by ascending begin
  std::vector<std::pair<std::uint32_t, std::uint64_t>> moved_;  ///< guests, and where they lay
  std::uint64_t looks_ = 0;
};

}  // namespace swapmm
