// SPDX-License-Identifier: Apache-2.0
//
// Plans of version 2 run on values, event by event, whatever their elements take. The validator must refuse each one
// that can go wrong.

#include <doctest/doctest.h>

#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/effort.hpp"
#include "support/seeds.hpp"
#include "support/v2/device_case.hpp"
#include "support/v2/execution.hpp"
#include "support/v2/random_case.hpp"

namespace swapmm::test::v2_execution_property_test {

std::string shown(const general::Case& one) {
  std::ostringstream out;
  out << "\n";
  write_trace(out, one.trace);
  out << "\n";
  v2::write_plan(out, one.plan);
  return out.str();
}

void check_right(std::mt19937_64& random, const general::Case& one, std::string_view how) {
  constexpr std::size_t iterations = 4;
  for (int run = 0; run < 3; ++run) {
    const std::vector<std::string> faults = general::execute(random, one.trace, one.plan, iterations);
    REQUIRE_MESSAGE(faults.empty(), how << ": " << faults.front() << shown(one));
  }
}

struct Walk {
  int accepted = 0;
  int refused = 0;
  int went_wrong = 0;  ///< of those that were refused
};

/// A walk through valid plans: what is refused is taken back.
void walk(std::mt19937_64& random, general::Case& one, Walk& walk) {
  const auto violations = v2::validate(one.trace, one.plan);
  REQUIRE_MESSAGE(violations.empty(), violations.front().message << shown(one));
  check_right(random, one, "as planned");
  for (int step = 0; step < 40; ++step) {
    general::Case changed = one;
    const std::string_view what = general::mutate(random, changed);
    if (changed.plan == one.plan) continue;
    if (!v2::validate(changed.trace, changed.plan).empty()) {
      ++walk.refused;
      if (!general::execute(random, changed.trace, changed.plan, 4).empty()) ++walk.went_wrong;
      continue;
    }
    ++walk.accepted;
    check_right(random, changed, what);
    one = std::move(changed);
  }
}

/// Walks from what `make(random)` makes, for each seed; from nothing where it makes nothing.
template <class Make>
Walk walks(const Seeds& all, Make&& make) {
  Walk done;
  for (std::uint64_t seed = all.first; seed < all.first + all.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    if (std::optional<general::Case> one = make(random)) walk(random, *one, done);
  }
  return done;
}

void check_counts(const Walk& done, const Seeds& all, int accepted_of_each) {
  const int count = static_cast<int>(all.count);
  CHECK(done.accepted > accepted_of_each * count);
  CHECK(done.refused > 5 * count);
  CHECK(done.went_wrong > done.refused / 4);
}

TEST_CASE("v2: a plan that the validator accepts goes right whatever operations and copies take") {
  const Seeds all = seeds(effort(2000, 20));
  const Walk done = walks(all, [](std::mt19937_64& random) {
    std::optional one = general::random_case(random);
    if (general::Case divided = *one; random() % 3 == 0) {
      general::divide(random, divided);
      if (v2::validate(divided.trace, divided.plan).empty()) one = std::move(divided);
    }
    return one;
  });
  if (all.count >= 20) check_counts(done, all, 5);
}

TEST_CASE("v2: joint plans for several devices, and changed ones, go right if the validator accepts them") {
  const Seeds all = seeds(effort(200, 20));
  const Walk done = walks(all, [](std::mt19937_64& random) -> std::optional<general::Case> {
    const general::DeviceCase devices = general::device_case(random, 8);
    PlanningOptions options;
    options.go_on = [asked = 0](const PlanningProgress&) mutable { return ++asked < 60; };
    const auto plan = v2::make_plan("best", devices.trace, devices.machine, options);
    if (!plan) return std::nullopt;
    return general::Case{devices.trace, *plan};
  });
  if (all.count >= 10) check_counts(done, all, 1);
}

}  // namespace swapmm::test::v2_execution_property_test
