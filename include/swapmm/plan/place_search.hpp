// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/plan/best_plan.hpp>
#include <swapmm/plan/overlap_ledger.hpp>
#include <swapmm/plan/place_filling.hpp>
#include <swapmm/plan/swap_timing.hpp>

namespace swapmm {

/// Makes a packed plan faster with everybody in a place (PlaceFilling): tensors stay in the room that the packing left
/// over, and those that are copied get the gaps that SwapTiming gives them for these decisions, as far as there is
/// room.
class PlaceSearch {
 public:
  struct Effort {
    std::size_t moves = 0;    ///< of others, for one that looks for a place
    std::uint64_t looks = 0;  ///< PlaceFilling::looks() in one run
  };

  /// `is_enough` is asked now and then; the search ends where it says so.
  PlaceSearch(OverlapLedger& ledger, SwapTiming& timing, BestPlan& best, std::function<bool()> is_enough);

  /// From the decisions in the ledger, with `offsets` (of its stays_of(); those above the budget are none). The first
  /// to stay are those that are not away in `wished_away`, decisions that are fast but do not pack. Offers what it
  /// finds to the best plan. Changes the decisions in ledger and timing, and the limits in timing.
  void run(std::span<const Bytes> offsets, const std::vector<char>& wished_away, const Effort& effort);

 private:
  [[nodiscard]] bool is_done(const PlaceFilling& filling) const;
  [[nodiscard]] std::size_t moves_for(std::uint32_t absence) const;
  [[nodiscard]] std::vector<std::uint32_t> largest_away(const std::vector<char>& wished_away) const;
  void let_stay(PlaceFilling& filling, const std::vector<std::uint32_t>& absences);
  void time_again(PlaceFilling& filling);
  void leave_at(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap);
  void return_from(PlaceFilling& filling, std::uint32_t absence, std::uint32_t gap);
  [[nodiscard]] std::vector<Absence> wished_gaps();
  [[nodiscard]] std::chrono::nanoseconds offer(const PlaceFilling& filling);

  OverlapLedger& ledger_;
  SwapTiming& timing_;
  BestPlan& best_;
  std::function<bool()> is_enough_;
  Effort effort_;
};

}  // namespace swapmm
