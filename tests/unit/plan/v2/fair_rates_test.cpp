// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <swapmm/plan/v2/simulation/fair_rates.hpp>

#include "support/random_trace.hpp"
#include "support/seeds.hpp"

namespace swapmm::v2::fair_rates_test {

using test::below_or_equal;
using test::one_of;
using Rates = std::vector<std::uint64_t>;
using simulation::FairRates;

void add_link(Machine& machine, std::uint64_t bytes_per_second, std::vector<std::uint32_t> capacities) {
  Link& link = machine.links.emplace_back();
  link.bytes_per_second = bytes_per_second;
  for (const std::uint32_t capacity : capacities) link.capacities.push_back(CapacityId{capacity});
}

Rates rates(FairRates& fair, const std::vector<std::uint32_t>& links) {
  std::vector<LinkId> flowing;
  for (const std::uint32_t link : links) flowing.push_back(LinkId{link});
  Rates result(flowing.size());
  fair.compute(flowing, result);
  return result;
}

Machine with_capacities(const Rates& capacities) {
  Machine machine;
  for (const std::uint64_t capacity : capacities) machine.capacities.push_back({"", capacity});
  return machine;
}

TEST_CASE("fair rates: shares are whole numbers, and what is left over stays unused") {
  Machine machine = with_capacities({11});
  for (int i = 0; i < 3; ++i) add_link(machine, 100, {0});
  add_link(machine, 2, {0});
  add_link(machine, 7, {});
  FairRates fair(machine);
  CHECK(rates(fair, {}) == Rates{});
  CHECK(rates(fair, {0}) == Rates{11});
  CHECK(rates(fair, {0, 1, 2}) == Rates{3, 3, 3});
  CHECK(rates(fair, {1, 3, 0}) == Rates{4, 2, 4});
  CHECK(rates(fair, {0, 1, 2, 3}) == Rates{2, 2, 2, 2});
  CHECK(rates(fair, {4, 3}) == Rates{7, 2});
}

TEST_CASE("fair rates: a copy that one capacity slows down leaves more of another one") {
  Machine machine = with_capacities({10, 4});
  add_link(machine, 100, {0});
  add_link(machine, 100, {0, 1});
  add_link(machine, 100, {1});
  FairRates fair(machine);
  CHECK(rates(fair, {0, 1, 2}) == Rates{8, 2, 2});
  CHECK(rates(fair, {0, 1}) == Rates{6, 4});
}

/// A second implementation, word for word.
Rates by_the_page(const Machine& machine, const std::vector<std::uint32_t>& links) {
  Rates result(links.size(), 0);
  std::vector<bool> open(links.size(), true);
  while (std::ranges::find(open, true) != open.end()) {
    const auto share = [&](CapacityId capacity) {
      std::uint64_t left = machine.capacities[index(capacity)].bytes_per_second;
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < links.size(); ++i) {
        if (std::ranges::find(machine.links[links[i]].capacities, capacity) ==
            machine.links[links[i]].capacities.end()) {
          continue;
        }
        open[i] ? ++count : left -= result[i];
      }
      return left / count;
    };
    Rates offers;
    for (std::size_t i = 0; i < links.size(); ++i) {
      std::uint64_t offer = machine.links[links[i]].bytes_per_second;
      if (open[i]) {
        for (const CapacityId capacity : machine.links[links[i]].capacities) offer = std::min(offer, share(capacity));
      }
      offers.push_back(open[i] ? offer : UINT64_MAX);
    }
    const std::uint64_t smallest = *std::ranges::min_element(offers);
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (!open[i] || offers[i] != smallest) continue;
      result[i] = smallest;
      open[i] = false;
    }
  }
  return result;
}

TEST_CASE("fair rates: random machines have the rates of the definition, and no capacity is exceeded") {
  const test::Seeds range = test::seeds(500);
  for (std::uint64_t seed = range.first; seed < range.first + range.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Machine machine;
    const std::uint64_t most = seed % 2 == 0 ? 30 : (std::uint64_t{1} << 62U) - 20;
    const std::size_t capacities = 1 + one_of(random, 4);
    for (std::size_t i = 0; i < capacities; ++i) machine.capacities.push_back({"", 10 + below_or_equal(random, most)});
    for (std::size_t i = 0; i < 10; ++i) {
      add_link(machine, 1 + below_or_equal(random, most), {});
      for (std::uint32_t c = 0; c < capacities; ++c) {
        if (test::chance(random, 0.4)) machine.links.back().capacities.push_back(CapacityId{c});
      }
    }
    FairRates fair(machine);
    for (int call = 0; call < 5; ++call) {
      std::vector<std::uint32_t> flowing;
      for (std::uint32_t l = 0; l < 10; ++l) {
        if (test::chance(random, 0.6)) flowing.push_back(l);
      }
      std::ranges::shuffle(flowing, random);
      const Rates result = rates(fair, flowing);
      CHECK(result == by_the_page(machine, flowing));
      Rates used(capacities, 0);
      for (std::size_t i = 0; i < flowing.size(); ++i) {
        CHECK(result[i] > 0);
        CHECK(result[i] <= machine.links[flowing[i]].bytes_per_second);
        for (const CapacityId capacity : machine.links[flowing[i]].capacities) used[index(capacity)] += result[i];
      }
      for (std::size_t c = 0; c < capacities; ++c) CHECK(used[c] <= machine.capacities[c].bytes_per_second);
    }
  }
}

}  // namespace swapmm::v2::fair_rates_test
