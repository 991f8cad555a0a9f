// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <swapmm/plan/relaxation/copy_classes.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>
#include <swapmm/plan/relaxation/window_tree.hpp>

namespace swapmm::planning::relaxation {

/// Prices of room and of the links. With half duplex both directions share one price, and `out` is ignored.
struct SwapPrices {
  std::vector<double> room;  ///< per boundary, nanoseconds for a byte
  std::vector<double> in;    ///< per part, nanoseconds for a nanosecond of the link; not negative
  std::vector<double> out;   ///< the same for the link to the host
};

/// The best response of every absence and every written value to prices, each decided separately.
struct Response {
  /// A lower bound for every plan's iteration in nanoseconds, with rounding errors subtracted. Minus infinity if the
  /// prices are not numbers.
  double bound = -std::numeric_limits<double>::infinity();
  std::vector<double> in;                  ///< per part: the time of the copies in that would run there
  std::vector<double> out;                 ///< per part: the same for copies out
  std::vector<double> clean_gain;          ///< per clean window: the value of being away, minus its copies
  std::vector<double> dirty_gain;          ///< per dirty window: the same
  std::vector<std::uint32_t> main_window;  ///< per value: the best window to pay the copy out; counted from its first
  std::vector<double> main_gain;           ///< per value: the gain of that window if it alone pays the copy out
  std::vector<bool> made_again;            ///< per dirty window: its value is away, and made again at its end
};

/// The Lagrangian of the linear program of docs/planning.md. It is a lower bound for any prices.
///
///     sum p - sum p (in + out) + sum room x excess - sum of the best gain of each absence and value
///
/// Stalls cancel if in + out <= 1 in their parts (in <= 1 with half duplex), which respond() ensures. What is computed
/// again in a stall lengthens it, for both links: it costs 1 - in - out of its time.
class SwapPricing {
 public:
  /// Sorts windows into at most `classes` classes by the cost of copying a byte of room. Each class has a tree and uses
  /// its least cost for all windows. Gains can thus only be overestimated, so the bound stays valid.
  SwapPricing(const SwapModel& model, std::size_t classes);

  /// Computes the best response. Takes about (windows + classes x parts) x log(parts). Lowers the link prices of stalls
  /// to the allowed range.
  [[nodiscard]] Response respond(SwapPrices& prices);

  /// Whether any value can be made again.
  [[nodiscard]] bool has_replays() const { return has_replays_; }

 private:
  void set_prices(const SwapPrices& prices);
  void respond_clean(std::size_t i, Response& response);
  void respond_value(std::size_t v, Response& response);
  /// Fills answers_, gains_, again_ and suffix_.
  void list_answers(const WrittenValue& value);
  [[nodiscard]] WindowTree::Answer ask(const Window& window, std::uint32_t copy_class) const;
  [[nodiscard]] double gain_of(const Window& window, const WindowTree::Answer& answer) const;
  /// The most that the window gains if its value is made again.
  [[nodiscard]] double gain_of_replay(const Window& window) const;
  void add(double gain, double bytes);
  void copy_in_at(std::uint32_t part, const Window& window, Response& response) const;

  const SwapModel& model_;
  CopyClasses classes_;
  std::vector<WindowTree> trees_;  ///< one per class
  WindowTree copies_;              ///< the price of a copy out as `leave`; that of a copy in, negated, as `back`
  WindowTree stalls_;              ///< what a nanosecond computed in a stall costs, negated, as `back`
  bool has_replays_ = false;
  std::vector<double> room_;                 ///< per boundary: the sum of the prices of room up to it
  std::vector<WindowTree::Answer> answers_;  ///< per window of one value
  std::vector<double> gains_;                ///< per window of one value, if the copy out is paid
  std::vector<double> again_;                ///< per window of one value, if it is made again; 0 if that gains nothing
  std::vector<double> suffix_;               ///< per window, and one more: the sum of the gains above 0 from there on
  long double gain_ = 0;
  long double magnitude_ = 0;  ///< the sum of all terms without signs, to which rounding errors are proportional
};

}  // namespace swapmm::planning::relaxation
