// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <swapmm/plan/relaxation/window_tree.hpp>
#include <swapmm/plan/v2/relaxation/store_model.hpp>

namespace swapmm::v2::planning {

/// Prices of room on the device, of what copies share, and of space in limited stores. Parts and boundaries as in
/// plan/relaxation/swap_model.hpp.
struct StorePrices {
  std::vector<double> room;                ///< per boundary, nanoseconds for a byte
  std::vector<std::vector<double>> rates;  ///< per rate of the model, then part: nanoseconds for a nanosecond
  std::vector<std::vector<double>> space;  ///< per store, then boundary: nanoseconds for a byte; unused without limit
};

/// One time that a value is away.
struct StoreAbsence {
  std::uint32_t window = 0;  ///< of the value, counted from its first one
  std::size_t store = 0;
  std::uint32_t from = 0;    ///< the first boundary at which it is off the device
  std::uint32_t in = 0;      ///< the part in which it returns
  std::uint32_t stored = 0;  ///< the first boundary at which its space is paid
  std::uint32_t last = 0;    ///< the last one
};
/// A copy of a value to a store.
struct StoreCopyOut {
  std::size_t store = 0;
  std::uint32_t part = 0;
};
/// What a value does: all bytes of it the same.
struct StoreChoice {
  double gain = 0;  ///< at the prices, for a byte
  std::vector<StoreAbsence> absences;
  std::vector<StoreCopyOut> outs;
  std::optional<std::size_t> home;  ///< the store where it has space all the time
};

/// The best response of all values to prices, each decided separately.
struct StoreResponse {
  /// A lower bound for every plan's iteration in nanoseconds; minus infinity if the prices are not numbers.
  double bound = -std::numeric_limits<double>::infinity();
  std::vector<StoreChoice> choices;  ///< of the values, in the order of StoreModel::values()
};

/// The Lagrangian of the problem of docs/planning.md for several stores. It is a lower bound for any prices.
class StorePricing {
 public:
  explicit StorePricing(const StoreModel& model);

  /// Computes the best response. Takes about (windows x stores) x log(parts). Makes prices valid first: none is below
  /// 0, and those of rates add up to at most 1 in each stall.
  [[nodiscard]] StoreResponse respond(StorePrices& prices);

 private:
  using Tree = swapmm::planning::relaxation::WindowTree;
  using Window = swapmm::planning::relaxation::Window;
  using WrittenValue = swapmm::planning::relaxation::WrittenValue;

  using Absence = StoreAbsence;
  using CopyOut = StoreCopyOut;
  using Choice = StoreChoice;
  struct Asked {
    Tree::Answer held;  ///< by the tree without space: the value is in its store longer than it is away
    Tree::Answer away;  ///< by the tree with space
  };

  void make_valid(StorePrices& prices) const;
  void set_prices(const StorePrices& prices);
  [[nodiscard]] Asked ask(const Window& window, std::size_t store) const;
  [[nodiscard]] double space(std::size_t store, std::uint32_t first, std::uint32_t last) const;
  [[nodiscard]] Choice best_of_store(const WrittenValue& value, std::size_t store);
  [[nodiscard]] Choice best_of_stores(const WrittenValue& value);
  [[nodiscard]] Choice best_for_host(const WrittenValue& value);
  [[nodiscard]] Choice best_of_clean(const CleanValue& value);
  [[nodiscard]] Choice best_of_written(const WrittenValue& value);

  const StoreModel& model_;
  std::uint32_t parts_;
  std::size_t turns_;                           ///< boundaries of two iterations, and one more
  std::vector<Tree> held_trees_;                ///< per store
  std::vector<Tree> away_trees_;                ///< per store; empty without limit: the same as the other one
  std::vector<Tree> outs_;                      ///< per store: the cost of a byte's copy out, as `leave`
  std::vector<double> room_;                    ///< per boundary: the sum of the prices of room up to it
  std::vector<std::vector<double>> space_;      ///< per store and boundary: the same for space
  std::vector<std::vector<double>> in_cost_;    ///< per store and part: nanoseconds for a byte
  std::vector<std::vector<double>> out_cost_;   ///< per store and part: nanoseconds for a byte
  std::vector<double> cheapest_out_;            ///< per store
  std::vector<std::uint32_t> cheapest_out_at_;  ///< per store: the part of it
  std::vector<std::vector<Asked>> asked_;       ///< per store and window of one value
};

}  // namespace swapmm::v2::planning
