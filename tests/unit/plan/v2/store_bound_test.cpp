// SPDX-License-Identifier: Apache-2.0
// The relaxed problem for several stores: prices, choices and the mixture of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <swapmm/plan/problem/overlap_ledger.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/relaxation/swap_model.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/relaxation/store_bound.hpp>
#include <swapmm/plan/v2/relaxation/store_master.hpp>
#include <swapmm/plan/v2/relaxation/store_model.hpp>
#include <swapmm/plan/v2/relaxation/store_prices.hpp>

#include "support/v2/store_case.hpp"

namespace swapmm::v2::store_bound_test {
namespace {

using planning::RelaxedStores;
using planning::StoreBoundEffort;
using planning::StoreModel;

/// The model of a case with a device and stores, if there are copies to decide.
struct Problem {
  const test::general::StoreCase& given;
  swapmm::planning::PlanningCase planning;
  swapmm::planning::OverlapLedger ledger{planning};
  StoreModel model{};

  [[nodiscard]] RelaxedStores relaxed(const StoreBoundEffort& effort = {},
                                      const std::function<bool()>& go_on = {}) const {
    return planning::relax_stores(model, ledger, effort, go_on);
  }
};

/// Calls check(problem) for the cases of these seeds. Returns for how many.
template <class Check>
int for_cases(std::uint64_t seeds, std::size_t operations, Check&& check) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const test::general::StoreCase one = test::general::store_case(random, operations);
    constexpr MemoryId device{0};
    if (!planning::has_only_stores(one.machine, device)) continue;
    auto merged = planning::merged_host(one.machine, device);
    if (!merged) continue;
    merged->alignment = Bytes{1};
    auto planning = swapmm::planning::make_planning_case(one.trace, *merged);
    if (!planning) continue;
    Problem problem{one, *std::move(planning)};
    problem.model = planning::make_store_model(one.machine, device, problem.planning, problem.ledger);
    if (!swapmm::planning::relaxation::needs_copies(problem.model.swaps)) continue;
    check(problem);
    ++count;
  }
  return count;
}

TEST_CASE("the bound for stores is as large as the best mixture takes, but for a little") {
  double of_mixture = 0;
  double worst = 1;
  const int cases = for_cases(40, 16, [&](const Problem& problem) {
    const RelaxedStores relaxed = problem.relaxed();
    const double mixture = std::accumulate(relaxed.time.begin(), relaxed.time.end(), 0.0);
    CHECK(relaxed.lower_bound <= mixture * 1.1);  // it also knows the difference between stalls and the rest
    const double part = relaxed.lower_bound / mixture;
    of_mixture += part;
    worst = std::min(worst, part);
    for (const std::vector<double>& away : relaxed.away) {
      for (const double share : away) {
        CHECK(share >= 0);
        CHECK(share <= 1);
      }
    }
  });
  REQUIRE(cases > 20);
  CAPTURE(worst);
  CHECK(of_mixture / cases > 0.97);
}

TEST_CASE("finer groups give a larger bound, and never a smaller one") {
  int larger = 0;
  const int cases = for_cases(20, 16, [&](const Problem& problem) {
    const double coarse = problem.relaxed({.groups = 4}).lower_bound;
    const double fine = problem.relaxed({.groups = 4, .fine_groups = 16}).lower_bound;
    CHECK(fine >= coarse);
    if (fine > coarse * 1.02) ++larger;
  });
  REQUIRE(cases > 8);
  CHECK(larger > cases / 4);
}

TEST_CASE("less effort gives a bound that is no larger by more than the ends of searches differ") {
  int smaller = 0;
  for_cases(20, 16, [&](const Problem& problem) {
    int asked = 0;
    const double all = problem.relaxed().lower_bound;
    const double ended = problem.relaxed({}, [&] { return ++asked < 2; }).lower_bound;
    CHECK(asked <= 2);
    CHECK(ended <= all * 1.001);
    if (ended < all * 0.99) ++smaller;
    CHECK(problem.relaxed({.rounds = 2}).lower_bound == ended);
    CHECK(problem.relaxed({.rounds = 0}).lower_bound <= all * 1.001);
    // Wherever it is ended, also between coarse and fine groups.
    for (int calls = 0; calls < 9; ++calls) {
      int left = calls;
      const RelaxedStores some =
          problem.relaxed({.rounds = 4, .groups = 4, .fine_groups = 16}, [&] { return left-- > 0; });
      REQUIRE(some.time.size() == problem.model.swaps.operations);
      for (std::size_t i = 0; i < some.time.size(); ++i) CHECK(some.time[i] >= problem.model.swaps.duration[i]);
    }
  });
  CHECK(smaller > 0);
}

TEST_CASE("any prices give a bound, and choices that are known are not added again") {
  int planned = 0;
  for_cases(20, 16, [&](const Problem& problem) {
    const auto plan = make_plan("belady", problem.given.trace, problem.given.machine);
    if (!plan) return;
    ++planned;
    const auto time = static_cast<double>(plan->predicted.iteration.count());
    planning::StorePricing pricing(problem.model);
    const planning::OperationGroups groups = planning::make_groups(problem.model, 5);
    planning::StoreMaster master(problem.model, groups, false);
    std::mt19937_64 random(3);
    for (int round = 0; round < 10; ++round) {
      planning::StorePrices prices = master.uniform(static_cast<double>(random() % 1000) / 100);
      for (std::vector<double>& list : prices.rates) {
        for (double& price : list) price *= static_cast<double>(random() % 200) / 100;
      }
      const planning::StoreResponse response = pricing.respond(prices);
      CHECK(response.bound <= time);
      REQUIRE(response.choices.size() == problem.model.values());
      (void)master.add(response.choices);
      CHECK(master.add(response.choices) == 0);
    }
    const planning::MasterSolution solution = master.solve(1e-5);
    CHECK(solution.time >= problem.model.swaps.compute * (1 - 1e-6));
    CHECK(solution.stall.size() == 5);
  });
  CHECK(planned > 5);
}

TEST_CASE("the mixture is solved, however large stores are and however little the device is short of") {
  int cases = 0;
  for (const double space : {1.0, 1e3, 1e9}) {
    for (const std::uint32_t groups : {5U, 16U}) {
      cases += for_cases(20, 24, [&](Problem& problem) {
        CAPTURE(space);
        CAPTURE(groups);
        for (planning::StoreOfModel& store : problem.model.stores) {
          if (store.space) *store.space *= space;
        }
        planning::StorePricing pricing(problem.model);
        planning::StoreMaster master(problem.model, planning::make_groups(problem.model, groups), false);
        const auto respond = [&](planning::StorePrices prices) { (void)master.add(pricing.respond(prices).choices); };
        for (const double room : {0.5, 2.0, 8.0}) respond(master.uniform(room));
        double last = 0;
        for (int round = 0; round < 6; ++round) {
          const planning::MasterSolution solution = master.solve(1e-5);
          CHECK(solution.is_solved);
          // More choices never take longer.
          if (round > 0) CHECK(solution.time <= last * (1 + 1e-4));
          last = solution.time;
          respond(solution.prices);
        }
      });
    }
  }
  CHECK(cases > 60);
}

TEST_CASE("a mixture is rounded to whole values that are away about as much, also if choices were added since") {
  int rounded_somewhere = 0;
  double deviation = 0;
  double all = 0;
  const int cases = for_cases(30, 24, [&](const Problem& problem) {
    planning::StorePricing pricing(problem.model);
    planning::StoreMaster master(problem.model, planning::make_groups(problem.model, 12), false);
    const auto respond = [&](planning::StorePrices prices) { (void)master.add(pricing.respond(prices).choices); };
    for (const double room : {0.5, 2.0, 8.0}) respond(master.uniform(room));
    for (int round = 0; round < 5; ++round) respond(master.solve(1e-4).prices);
    const planning::MasterSolution solution = master.solve(1e-5);
    respond(solution.prices);
    const planning::RoundedChoices rounded = master.round(solution, 0);
    REQUIRE(rounded.clean.size() == problem.model.swaps.clean.size());
    REQUIRE(rounded.dirty.size() == problem.model.swaps.dirty.size());
    // Bytes that are away, over the absences.
    double of_mixture = 0;
    double of_rounded = 0;
    const auto count = [&](const std::vector<swapmm::planning::relaxation::Window>& windows,
                           const std::vector<std::vector<double>>& mixed,
                           const std::vector<std::optional<std::size_t>>& whole) {
      for (std::size_t w = 0; w < windows.size(); ++w) {
        of_mixture += windows[w].bytes * std::accumulate(mixed[w].begin(), mixed[w].end(), 0.0);
        if (!whole[w]) continue;
        CHECK(*whole[w] < problem.model.stores.size());
        CHECK(mixed[w][*whole[w]] > 0);  // it is no choice that the mixture has nothing of
        of_rounded += windows[w].bytes;
      }
    };
    count(problem.model.swaps.clean, solution.clean, rounded.clean);
    count(problem.model.swaps.dirty, solution.dirty, rounded.dirty);
    deviation += std::abs(of_rounded - of_mixture);
    all += of_mixture;
    if (of_rounded > 0) ++rounded_somewhere;
    CHECK(master.round(solution, 0).dirty == rounded.dirty);
    CHECK(master.round(solution, 7).dirty == master.round(solution, 7).dirty);
  });
  REQUIRE(cases > 15);
  CHECK(rounded_somewhere > cases / 2);
  CHECK(deviation < 0.2 * all);
}

TEST_CASE("no prices are looked for to show a bound that is known") {
  int fewer = 0;
  for_cases(20, 16, [&](const Problem& problem) {
    int all = 0;
    const double found = problem.relaxed({}, [&] { return ++all > 0; }).lower_bound;
    int with_known = 0;
    const RelaxedStores relaxed = problem.relaxed({.known = found}, [&] { return ++with_known > 0; });
    CHECK(relaxed.lower_bound <= found * 1.001);
    CHECK(with_known <= all);
    if (with_known < all) ++fewer;
  });
  CHECK(fewer > 5);
}

}  // namespace
}  // namespace swapmm::v2::store_bound_test
