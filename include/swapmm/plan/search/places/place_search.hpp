// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/schedule/best_plan.hpp>
#include <swapmm/plan/search/places/place_filling.hpp>
#include <swapmm/plan/search/timing/swap_timing.hpp>

namespace swapmm::planning {

/// Decisions with places: which tensors are away when, when values go to the host, and the places of all stays.
struct PlacedDecisions {
  std::vector<Absence> absences;  ///< as in a ledger
  std::vector<Version> versions;  ///< as in a ledger
  std::vector<Bytes> offsets;     ///< of stays_of() such a ledger

  PlacedDecisions(const OverlapLedger& ledger, std::vector<Bytes> places)
      : absences(ledger.absences), versions(ledger.versions), offsets(std::move(places)) {}

  void decide(OverlapLedger& ledger) const {
    ledger.absences = absences;
    ledger.versions = versions;
  }
};

/// Makes a packed plan faster while every stay has a place (PlaceFilling). Tensors stay in the room that the packing
/// left, and copied tensors get the gaps that SwapTiming gives them for these decisions, as far as there is room.
class PlaceSearch {
 public:
  struct Effort {
    std::size_t moves = 0;    ///< moves of other stays, for one stay that looks for a place
    std::uint64_t looks = 0;  ///< most PlaceFilling::looks() in one run
  };
  /// Called now and then. The run ends if it returns true.
  using IsEnough = std::function<bool()>;

  PlaceSearch(OverlapLedger& ledger, SwapTiming& timing, BestPlan& best, const PlaceOptions& options = {});

  /// Starts from the decisions in the ledger, with `offsets` for its stays_of() (offsets above the budget are no
  /// places). `wished_away` are fast decisions that do not pack: the tensors that stay by them are the first to stay.
  /// Offers the results to the best plan. Changes the decisions in ledger and timing, and the limits in timing.
  void run(std::span<const Bytes> offsets, const std::vector<char>& wished_away, const Effort& effort,
           const IsEnough& is_enough);

  /// The decisions of the best plan, if the last run made it. Clears them.
  [[nodiscard]] std::optional<PlacedDecisions> take_found() { return std::exchange(found_, std::nullopt); }

  struct Tries {
    std::size_t tries = 0;                        ///< each takes as long as a simulation and its looks
    std::uint64_t looks = 0;                      ///< most PlaceFilling::looks() in total
    std::vector<double> times_in_hand{1.0, 3.0};  ///< each is tried
  };
  /// Prepares for copies that take longer than expected: tensors return earlier than they need to, as far as there is
  /// room and the plan does not get slower. If it gets slower, the tensors that are on their way at the first delayed
  /// operation return as before, and it is tried again. The result replaces the best plan if it is as good. Other stays
  /// keep their places, and values go to the host as before.
  void return_earlier(PlacedDecisions placed, const Tries& tries);

 private:
  [[nodiscard]] bool is_done(const PlaceFilling& filling) const;
  void forget_limits();
  [[nodiscard]] std::size_t moves_for(std::uint32_t absence) const;
  [[nodiscard]] std::vector<std::uint32_t> largest_away(const std::vector<char>& wished_away) const;
  void let_stay(PlaceFilling& filling, const std::vector<std::uint32_t>& absences, bool by_moving);
  void time_again(PlaceFilling& filling, double time_in_hand);
  [[nodiscard]] std::uint32_t first_delayed(const Simulation& outcome) const;
  [[nodiscard]] bool is_under_way(const Absence& absence, std::uint32_t operation) const;
  [[nodiscard]] std::vector<std::uint32_t> away_by_use(const std::vector<Absence>& absences) const;
  [[nodiscard]] bool blame(std::uint32_t operation, const std::vector<Absence>& before,
                           std::vector<char>& returns_as_before) const;
  [[nodiscard]] bool return_all(PlaceFilling& filling, const std::vector<std::uint32_t>& by_use,
                                const std::vector<char>& returns_as_before, const std::vector<Absence>& wished,
                                std::uint64_t most_looks);
  void leave_at(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap);
  void return_from(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap, std::size_t moves);
  [[nodiscard]] std::vector<Absence> wished_gaps(double time_in_hand);
  [[nodiscard]] std::chrono::nanoseconds offer(const PlaceFilling& filling);

  OverlapLedger& ledger_;
  SwapTiming& timing_;
  BestPlan& best_;
  PlaceOptions options_;
  Effort effort_;
  const IsEnough* is_enough_ = nullptr;
  std::optional<PlacedDecisions> found_;
};

}  // namespace swapmm::planning
