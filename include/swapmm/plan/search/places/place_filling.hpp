// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/planner_options.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/absence_stays.hpp>
#include <swapmm/plan/schedule/schedule.hpp>
#include <swapmm/plan/search/places/place_board.hpp>

namespace swapmm::planning {

/// Decisions that have places, changed one by one such that everybody keeps one: the room that a packing left over, in
/// pieces, goes to tensors that then need not go out, or that return in time. What has no place any more takes the
/// cheapest one (size x lifetime, dearer each time), and those who were there look for another.
class PlaceFilling {
 public:
  /// `offsets`: of stays_of(ledger). Those that end above the budget are none. Changes the decisions in `ledger`.
  PlaceFilling(OverlapLedger& ledger, std::span<const Bytes> offsets, const PlaceOptions& options = {});

  /// Places for those that have none; what finds no place goes out wherever it can. False where that does not suffice,
  /// or takes more than so many looks().
  [[nodiscard]] bool house_everybody(std::size_t moves, std::uint64_t most_looks);

  /// Over an absence its tensor, which is away, stays from now on, if that takes at most so many moves of others. No
  /// arrival. Looks at all stays once for each move.
  bool try_to_stay(std::uint32_t absence, std::size_t moves);
  /// The same for one that leaves in another gap than before, not behind its return.
  bool try_to_leave(std::uint32_t absence, std::uint32_t leaves, std::size_t moves);
  /// The same for one that returns in another gap, not before it is gone.
  bool try_to_return(std::uint32_t absence, std::uint32_t returns, std::size_t moves);

  /// How many stays were looked at so far, ever since it was made: a few nanoseconds each.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

  /// The stays of the decisions as they are now, and their offsets.
  [[nodiscard]] Schedule schedule() const { return {Pace::overlapped, stays_of(ledger_)}; }
  [[nodiscard]] std::vector<Bytes> offsets() const;

 private:
  using GuestId = PlaceBoard::GuestId;  ///< position in guests_
  /// A stay, and where it lies.
  struct Guest {
    TensorId tensor{};
    std::uint32_t start = 0;  ///< gap
    std::uint32_t slots = 0;  ///< operations that it takes from there on
    std::uint64_t size = 0;
    std::uint64_t offset = 0;

    [[nodiscard]] double area() const { return static_cast<double>(size) * slots; }
  };

  [[nodiscard]] std::vector<Guest> guests_of(TensorId tensor) const;
  GuestId admit(const Guest& guest);
  void settle(GuestId id, std::uint64_t offset);
  void unsettle(GuestId id);
  [[nodiscard]] bool try_to_decide(std::uint32_t absence, const Absence& decision, std::size_t moves);
  [[nodiscard]] bool rehouse(TensorId tensor, std::size_t moves);
  [[nodiscard]] std::vector<Guest> check_out(TensorId tensor);
  [[nodiscard]] std::vector<GuestId> check_in(TensorId tensor, const std::vector<Guest>& guests);
  [[nodiscard]] bool may_fit(const std::vector<Guest>& guests) const;
  [[nodiscard]] bool is_back(GuestId id, const std::vector<Guest>& before);
  [[nodiscard]] bool house(std::vector<GuestId> homeless, std::size_t moves);
  void look_around(const Guest& guest);

  OverlapLedger& ledger_;
  double dearer_each_time_;
  std::size_t homeless_factor_;
  std::uint32_t slots_;
  PlaceBoard board_;
  std::vector<Guest> guests_;
  std::vector<double> weights_;  ///< of the guests: how dear they are to move
  std::vector<GuestId> unused_;
  std::vector<std::vector<GuestId>> of_tensor_;           ///< in the order of stays_of()
  std::vector<std::pair<GuestId, std::uint64_t>> moved_;  ///< and where they lay
  std::uint64_t looks_ = 0;
};

}  // namespace swapmm::planning
