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

/// Changes decisions that have places, one by one, such that every stay keeps a place. The room that a packing left
/// over, in pieces, goes to tensors that then need not go out, or that return in time. A stay without a place takes the
/// cheapest one (size x lifetime, more expensive each time), and the stays that were there look for other places.
class PlaceFilling {
 public:
  /// `offsets` are those of stays_of(ledger). A stay that would end above the budget has no place. Changes the
  /// decisions in `ledger`.
  PlaceFilling(OverlapLedger& ledger, std::span<const Bytes> offsets, const PlaceOptions& options = {});

  /// Finds places for the stays that have none. If one finds none, its tensor comes later, then goes sooner, then goes
  /// out over every absence. Returns false if that does not suffice, or takes more than `most_looks` looks().
  [[nodiscard]] bool house_everybody(std::size_t moves, std::uint64_t most_looks);

  /// Lets a tensor that is away over this absence stay, if that takes at most `moves` moves of other stays. The absence
  /// must not be an arrival. Looks at all stays once for each move. If it returns false, nothing has changed.
  bool try_to_stay(std::uint32_t absence, std::size_t moves);
  /// The same for leaving in another gap than before, at the latest that of its return.
  bool try_to_leave(std::uint32_t absence, std::uint32_t leaves, std::size_t moves);
  /// The same for returning in another gap than before, not before it is gone.
  bool try_to_return(std::uint32_t absence, std::uint32_t returns, std::size_t moves);

  /// How many stays have been looked at since construction. Each look takes a few nanoseconds.
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

  /// The stays of the current decisions, and their offsets.
  [[nodiscard]] Schedule schedule() const { return {Pace::overlapped, stays_of(ledger_)}; }
  [[nodiscard]] std::vector<Bytes> offsets() const;

 private:
  using GuestId = PlaceBoard::GuestId;  ///< position in guests_
  /// A stay and its place.
  struct Guest {
    TensorId tensor{};
    std::uint32_t start = 0;  ///< gap
    std::uint32_t slots = 0;  ///< number of operations from there on
    std::uint64_t size = 0;
    std::uint64_t offset = 0;

    [[nodiscard]] double area() const { return static_cast<double>(size) * slots; }
  };

  [[nodiscard]] std::vector<Guest> guests_of(TensorId tensor) const;
  GuestId admit(const Guest& guest);
  void settle(GuestId id, std::uint64_t offset);
  void unsettle(GuestId id);
  [[nodiscard]] bool try_to_decide(std::uint32_t absence, const Absence& decision, std::size_t moves);
  bool change_all(TensorId tensor, bool (*change)(Absence&));
  [[nodiscard]] bool rehouse(TensorId tensor, std::size_t moves);
  [[nodiscard]] std::vector<Guest> check_out(TensorId tensor);
  [[nodiscard]] std::vector<GuestId> check_in(TensorId tensor, const std::vector<Guest>& guests);
  [[nodiscard]] bool may_fit(const std::vector<Guest>& guests) const;
  [[nodiscard]] bool is_back(GuestId id, const std::vector<Guest>& before);
  [[nodiscard]] bool house(std::vector<GuestId> unplaced, std::size_t moves);
  void look_around(const Guest& guest);

  OverlapLedger& ledger_;
  double move_cost_factor_;
  std::size_t required_moves_factor_;
  std::uint32_t slots_;
  PlaceBoard board_;
  std::vector<Guest> guests_;
  std::vector<double> weights_;  ///< per guest: the price of moving it
  std::vector<GuestId> unused_;
  std::vector<std::vector<GuestId>> of_tensor_;           ///< in the order of stays_of()
  std::vector<std::pair<GuestId, std::uint64_t>> moved_;  ///< guests that were moved, and their offsets before
  std::uint64_t looks_ = 0;
};

}  // namespace swapmm::planning
