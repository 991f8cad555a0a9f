// SPDX-License-Identifier: Apache-2.0
#pragma once

// What times measured by turns say.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

namespace swapmm::bench {

/// The middle one; of an even number, the mean of the two in the middle. Throws std::invalid_argument for none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("there is no median of no values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

[[nodiscard]] inline double mean(const std::vector<double>& values) {
  if (values.empty()) throw std::invalid_argument("there is no mean of no values");
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

struct Interval {
  double low = 0;
  double high = 0;
};

/// Where the true value of `statistic` lies with 95 % confidence, by the percentiles of the statistic of samples drawn
/// from the values (Efron, "Bootstrap methods", 1979). The same values give the same interval.
template <class Statistic>
[[nodiscard]] Interval bootstrap(const std::vector<double>& values, Statistic&& statistic,
                                 std::size_t samples = 10000) {
  if (values.empty() || samples < 40) throw std::invalid_argument("a bootstrap needs values, and 40 samples at least");
  std::mt19937_64 random(1);
  std::vector<double> results;
  std::vector<double> drawn(values.size());
  for (std::size_t sample = 0; sample < samples; ++sample) {
    // The bias of the remainder is below 2^-50 of a chance.
    for (double& value : drawn) value = values[random() % values.size()];
    results.push_back(statistic(drawn));
  }
  std::sort(results.begin(), results.end());
  return {results[samples / 40], results[samples - 1 - samples / 40]};
}

/// Pairs measured by turns.
struct Comparison {
  double ratio = 0;     ///< the median of the pairs' ratios
  Interval interval{};  ///< of that median
  double mean_ratio = 0;
  Interval mean_interval{};
  double first = 0;  ///< the medians
  double second = 0;
};

/// `first` against `second`: values of the same position were measured one after the other.
[[nodiscard]] inline Comparison compare(const std::vector<double>& first, const std::vector<double>& second) {
  if (first.size() != second.size()) throw std::invalid_argument("pairs have two values each");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < first.size(); ++i) ratios.push_back(first[i] / second[i]);
  return {median(ratios), bootstrap(ratios, median), mean(ratios), bootstrap(ratios, mean), median(first),
          median(second)};
}

}  // namespace swapmm::bench
