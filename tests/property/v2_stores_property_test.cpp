// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>

#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/spread/spread.hpp>
#include <swapmm/plan/v2/stores/spread_far.hpp>
#include <swapmm/plan/v2/stores/store_search.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/effort.hpp"
#include "support/seeds.hpp"
#include "support/v2/store_case.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

std::chrono::nanoseconds no_bound(std::chrono::nanoseconds) { return std::chrono::nanoseconds{0}; }

}  // namespace

TEST_CASE(
    "best chooses stores: its plans are valid, no slower than those of belady and of spread, and the bound holds") {
  const Seeds seeds = test::seeds(effort(300, 10));
  int planned = 0;
  int searched_for = 0;
  int faster_than_belady = 0;
  int faster_than_spread = 0;
  int with_full_host = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const general::StoreCase one = general::store_case(random, 10);
    if (swapmm::v2::to_version_1(one.machine)) continue;  // has the plans of version 1
    const auto plan = swapmm::v2::make_plan("best", one.trace, one.machine);
    const auto belady = swapmm::v2::make_plan("belady", one.trace, one.machine);
    if (!plan) {
      CHECK(plan.problem().message.find("mistake") == std::string::npos);
      CHECK(!belady);
      continue;
    }
    ++planned;
    for (const char* const simple : {"on-demand", "belady", "excess"}) {
      CAPTURE(simple);
      const auto other = swapmm::v2::make_plan(simple, one.trace, one.machine);
      if (other) CHECK(plan->predicted.iteration <= other->predicted.iteration);
    }
    const auto searched = swapmm::v2::planning::search_stores(one.trace, one.machine, {}, no_bound);
    if (searched) {
      ++searched_for;
      CHECK(plan->predicted.iteration <= searched->predicted.iteration);
    } else {
      CAPTURE(searched.problem().message);
      CHECK(searched.problem().message.find("mistake") == std::string::npos);
    }
    const auto violations = swapmm::v2::validate(one.trace, *plan);
    if (!violations.empty()) CAPTURE(violations.front().message);
    CHECK(violations.empty());
    CHECK(plan->predicted.iteration == swapmm::v2::simulate(one.trace, *plan).iteration);
    CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
    for (std::size_t m = 0; m < one.machine.memories.size(); ++m) {
      const swapmm::v2::Memory& memory = one.machine.memories[m];
      if (memory.bytes) CHECK(plan->predicted.peaks[m] <= round_up(*memory.bytes, memory.alignment));  // as peaks are
    }
    if (one.machine.memories[index(one.machine.host)].bytes) ++with_full_host;
    if (belady) {
      CHECK(plan->predicted.iteration <= belady->predicted.iteration);
      if (plan->predicted.iteration < belady->predicted.iteration) ++faster_than_belady;
    }
    const auto spread = swapmm::v2::planning::spread("best", one.trace, one.machine, {});
    if (spread) {
      CHECK(plan->predicted.iteration <= spread->predicted.iteration);
      if (plan->predicted.iteration < spread->predicted.iteration) ++faster_than_spread;
    }
  }
  if (seeds.count < 30) return;
  CHECK(planned > 0);
  CHECK(with_full_host > 0);
  CHECK(2 * searched_for > planned);
  CHECK(faster_than_belady > 0);
  CHECK(faster_than_spread > 0);
}

TEST_CASE("best uses stores that are behind others: its plans are valid, and no slower than those of belady") {
  const Seeds seeds = test::seeds(effort(300, 10));
  int planned = 0;
  int searched_for = 0;
  int passes = 0;
  int spread_over_all = 0;
  int faster_than_belady = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const general::StoreCase one = general::far_store_case(random, 12);
    if (swapmm::v2::to_version_1(one.machine)) continue;
    const auto plan = swapmm::v2::make_plan("best", one.trace, one.machine);
    const auto belady = swapmm::v2::make_plan("belady", one.trace, one.machine);
    const auto searched = swapmm::v2::planning::search_stores(one.trace, one.machine, {}, no_bound);
    if (!searched) {
      CAPTURE(searched.problem().message);
      CHECK(searched.problem().message.find("mistake") == std::string::npos);
    } else {
      ++searched_for;
      REQUIRE(plan);
      CHECK(plan->predicted.iteration <= searched->predicted.iteration);
      const bool is_far = std::ranges::any_of(searched->commands, [&](const swapmm::v2::Command& command) {
        if (command.kind != swapmm::v2::CommandKind::copy) return false;
        const swapmm::v2::Link& link = one.machine.links[index(command.link)];
        return link.from != swapmm::v2::MemoryId{0} && link.to != swapmm::v2::MemoryId{0};
      });
      if (is_far) ++passes;
    }
    if (!plan) {
      CHECK(plan.problem().message.find("mistake") == std::string::npos);
      CHECK(!belady);
      continue;
    }
    ++planned;
    const auto violations = swapmm::v2::validate(one.trace, *plan);
    if (!violations.empty()) CAPTURE(violations.front().message);
    CHECK(violations.empty());
    CHECK(plan->predicted.lower_bound <= plan->predicted.iteration);
    // Planners of version 1 let values pass, too.
    const auto spread = swapmm::v2::planning::spread_far("slack", one.trace, one.machine, {});
    if (spread) {
      ++spread_over_all;
      CHECK(swapmm::v2::validate(one.trace, *spread).empty());
      CHECK(plan->predicted.lower_bound <= spread->predicted.iteration);
    } else {
      CHECK(spread.problem().message.find("mistake") == std::string::npos);
    }
    if (belady) {
      CHECK(plan->predicted.iteration <= belady->predicted.iteration);
      if (plan->predicted.iteration < belady->predicted.iteration) ++faster_than_belady;
    }
  }
  if (seeds.count < 30) return;
  CHECK(planned > 0);
  CHECK(10 * searched_for > 9 * planned);
  CHECK(20 * passes > planned);
  CHECK(2 * spread_over_all > planned);
  CHECK(3 * faster_than_belady > planned);
}

TEST_CASE("best for several stores gives the same plan for the same input, and ends when it is told to") {
  std::mt19937_64 random(7);
  const general::StoreCase one = general::store_case(random, 20);
  const auto first = swapmm::v2::make_plan("best", one.trace, one.machine);
  const auto second = swapmm::v2::make_plan("best", one.trace, one.machine);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*first == *second);
  int asked = 0;
  PlanningOptions options;
  options.go_on = [&](const PlanningProgress&) { return ++asked < 3; };
  const auto hasty = swapmm::v2::make_plan("best", one.trace, one.machine, options);
  REQUIRE(hasty);
  CHECK(swapmm::v2::validate(one.trace, *hasty).empty());
  CHECK(asked < 50);
  // What must come before the search ends early; the search itself has its time.
  int parts = 0;
  int after_them = 0;
  options.go_on = [&](const PlanningProgress& progress) {
    if (progress.part < 1) return parts++, false;
    return ++after_them < 2'000;
  };
  const auto searched = swapmm::v2::make_plan("best", one.trace, one.machine, options);
  REQUIRE(searched);
  CHECK(swapmm::v2::validate(one.trace, *searched).empty());
  CHECK(parts > 0);
  CHECK(after_them > 0);
  CHECK(searched->predicted.iteration <= hasty->predicted.iteration);
}
