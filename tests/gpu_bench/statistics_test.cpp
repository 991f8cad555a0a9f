// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "bench/gpu/statistics.hpp"

using namespace swapmm::bench;

TEST_CASE("the median is the one in the middle, or between the two there") {
  CHECK(median({5}) == 5);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({4, 1, 100, 2}) == 3);
  CHECK(median({1, 1, 1, 7, 7, 7}) == 4);
  CHECK_THROWS_AS((void)median({}), std::invalid_argument);
  CHECK(mean({1, 2, 6}) == 3);
  CHECK_THROWS_AS((void)mean({}), std::invalid_argument);
}

TEST_CASE("a bootstrap of equal values knows the value") {
  const Interval interval = bootstrap(std::vector<double>(30, 1.25), median);
  CHECK(interval.low == 1.25);
  CHECK(interval.high == 1.25);
  CHECK_THROWS_AS((void)bootstrap({}, median), std::invalid_argument);
  CHECK_THROWS_AS((void)bootstrap({1}, median, 10), std::invalid_argument);
}

TEST_CASE("a bootstrap of means is as wide as theory says") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(10, 2);
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back(normal(random));
  double squares = 0;
  for (const double value : values) squares += (value - mean(values)) * (value - mean(values));
  const double error = std::sqrt(squares / 400) / std::sqrt(400.0);
  const Interval interval = bootstrap(values, mean);
  CHECK(interval.low == doctest::Approx(mean(values) - 1.96 * error).epsilon(0.002));
  CHECK(interval.high == doctest::Approx(mean(values) + 1.96 * error).epsilon(0.002));
  const Interval again = bootstrap(values, mean);
  CHECK(again.low == interval.low);
  CHECK(again.high == interval.high);
}

TEST_CASE("95 of 100 intervals hold the true value") {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(1, 0.01);
  int holds = 0;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 40; ++i) values.push_back(normal(random));
    const Interval interval = bootstrap(values, mean, 1000);
    if (interval.low <= 1 && 1 <= interval.high) ++holds;
  }
  CHECK(holds >= 180);
  CHECK(holds <= 198);
}

TEST_CASE("pairs are compared pair by pair") {
  // The machine becomes slower all the time; the first is a hundredth slower than the second in every pair.
  std::vector<double> first;
  std::vector<double> second;
  for (int i = 0; i < 30; ++i) {
    second.push_back(10 + i);
    first.push_back(second.back() * 1.01);
  }
  const Comparison c = compare(first, second);
  CHECK(c.ratio == doctest::Approx(1.01).epsilon(1e-9));
  CHECK(c.interval.low == doctest::Approx(1.01).epsilon(1e-9));
  CHECK(c.interval.high == doctest::Approx(1.01).epsilon(1e-9));
  CHECK(c.second == 24.5);
  CHECK_THROWS_AS((void)compare({1}, {}), std::invalid_argument);
}
