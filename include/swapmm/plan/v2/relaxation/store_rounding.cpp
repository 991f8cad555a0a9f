// SPDX-License-Identifier: Apache-2.0
// What each value does, if all together are to be as near as possible to a mixture.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/relaxation/store_master.hpp>

namespace swapmm::v2::planning {
namespace {

/// What all values do that are decided, less what the mixture has of them, in each row.
class Deviation {
 public:
  Deviation(std::size_t rows, std::size_t first_rate)
      : of_row_(rows, 0.0), change_(rows, 0.0), first_rate_(first_rate) {}

  /// How much larger the sum of squares gets with these entries for some bytes, and without the mixture's.
  double growth(std::span<const SparseProgram::Entry> entries, const std::vector<double>& mixture,
                std::span<const std::uint32_t> rows, double bytes) {
    for (const auto& [row, value] : entries) change_[row] += value;
    double sum = 0;
    for (const std::uint32_t row : rows) {
      const double by = bytes * (std::exchange(change_[row], 0.0) - mixture[row]);
      // A value that is away counts in many rows of room, and its copies in two.
      const double weight = row >= first_rate_ ? 1.0 : 0.3;
      sum += weight * by * (by + 2 * of_row_[row]);
    }
    return sum;
  }

  void add(std::span<const SparseProgram::Entry> entries, const std::vector<double>& mixture,
           std::span<const std::uint32_t> rows, double bytes) {
    for (const auto& [row, value] : entries) of_row_[row] += bytes * value;
    for (const std::uint32_t row : rows) of_row_[row] -= bytes * mixture[row];
  }

 private:
  std::vector<double> of_row_;
  std::vector<double> change_;  // 0 between two calls
  std::size_t first_rate_;      // the first row of a rate
};

}  // namespace

RoundedChoices StoreMaster::round(const MasterSolution& solution, std::uint64_t seed) const {
  RoundedChoices rounded;
  rounded.clean.resize(model_.swaps.clean.size());
  rounded.dirty.resize(model_.swaps.dirty.size());
  std::mt19937_64 random(seed);
  std::vector<std::pair<double, std::uint32_t>> order;
  for (std::uint32_t v = 0; v < block_of_.size(); ++v) {
    if (block_of_[v] == SparseProgram::no_block) continue;
    const double factor = 0.5 + static_cast<double>(random() >> 11U) * 0x1p-53;
    order.emplace_back(-model_.bytes_of(v) * (seed == 0 ? 1.0 : factor), v);
  }
  std::sort(order.begin(), order.end());
  Deviation deviation(rows(), rate_row(0, 0, false));
  std::vector<double> mixture(rows(), 0.0);
  std::vector<std::uint32_t> touched;
  for (const auto& [key, v] : order) {
    const Block& block = blocks_[block_of_[v]];
    const std::vector<double>& shares = solution.shares[block_of_[v]];
    if (shares.empty()) continue;
    // Choices that were added since then have no share.
    for (std::size_t c = 0; c < shares.size(); ++c) {
      for (const auto& [row, value] : block.columns[c].entries) {
        touched.push_back(row);
        mixture[row] += shares[c] * value;
      }
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    const double bytes = model_.bytes_of(v) * byte_;
    // What the mixture has next to nothing of is no choice.
    const double least = 0.02 * *std::max_element(shares.begin(), shares.end());
    std::size_t chosen = shares.size();
    double least_growth = 0;
    for (std::size_t c = 0; c < shares.size(); ++c) {
      if (shares[c] < least) continue;
      const double growth = deviation.growth(block.columns[c].entries, mixture, touched, bytes);
      if (chosen < shares.size() && growth >= least_growth) continue;
      chosen = c;
      least_growth = growth;
    }
    deviation.add(block.columns[chosen].entries, mixture, touched, bytes);
    for (const StoreAbsence& absence : block.columns[chosen].absences) {
      const auto [is_clean, window] = window_of(v, absence);
      (is_clean ? rounded.clean : rounded.dirty)[window] = absence.store;
    }
    for (const std::uint32_t row : touched) mixture[row] = 0;
    touched.clear();
  }
  return rounded;
}

}  // namespace swapmm::v2::planning
