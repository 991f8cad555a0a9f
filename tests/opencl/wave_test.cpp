// SPDX-License-Identifier: Apache-2.0
// The example larger_than_memory, made small: a program as people write them, against itself without swapmm.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include <swapmm/opencl/backend.hpp>

#include "larger_than_memory/raw_opencl.hpp"
#include "larger_than_memory/wave.hpp"
#include "larger_than_memory/with_swapmm.hpp"
#include "opencl/device.hpp"
#include "support/steady_plans.hpp"

namespace {

using namespace swapmm;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}
// Not all zero, or equality would say nothing.
bool sounds(const std::vector<float>& field) {
  return std::any_of(field.begin(), field.end(), [](float x) { return std::isnormal(x); });
}

// All shots within a budget, by default a quarter of the memory, give what they give without swapmm, and most of them
// follow the plan.
void check_against_raw(const wave::Problem& problem, std::size_t iterations_per_cycle, Bytes budget = {}) {
  const opencl::Backend backend = test::backend();
  if (budget.value == 0) budget = Bytes{wave::working_set(problem).value / 4};
  std::size_t followed_shots = 0;
  bool left_the_plan = false;
  const auto [swapped, report] = wave::run_with_swapmm(
      backend, problem, {.device_budget = budget},
      [&](const wave::ShotReport& shot) {
        left_the_plan = left_the_plan || (followed_shots > 0 && !shot.followed);
        if (shot.followed) ++followed_shots;
        CHECK(shot.in.value > 0);
        CHECK(shot.out.value > 0);
      },
      test::steady());

  CHECK(report.iterations_followed > 0);
  CHECK(report.iterations_followed == followed_shots);
  CHECK(report.iterations_on_demand + followed_shots == problem.shots);
  CHECK_FALSE(left_the_plan);
  CHECK(report.divergences == 0);
  REQUIRE(report.plans.size() == 1);
  CHECK(report.plans[0].iterations_per_cycle == iterations_per_cycle);
  CHECK(report.device_peak <= budget);

  const wave::Result raw = wave::run_raw_opencl(backend.context(), backend.device(), problem);
  CHECK(sounds(raw.image));
  CHECK(sounds(raw.record));
  CHECK(sounds(raw.forward));
  CHECK(sounds(raw.backward));
  CHECK(same_bits(swapped.image, raw.image));
  CHECK(same_bits(swapped.record, raw.record));
  CHECK(same_bits(swapped.forward, raw.forward));
  CHECK(same_bits(swapped.backward, raw.backward));
}

}  // namespace

TEST_CASE("wave propagation at a quarter of its memory follows a plan and is right bit for bit") {
  check_against_raw({.size = 20, .steps = 16, .every = 1, .shots = 8}, 1);
}

TEST_CASE("fields that have changed places after each iteration make one plan of two iterations") {
  check_against_raw({.size = 20, .steps = 15, .every = 1, .shots = 10}, 2);
}

TEST_CASE("checkpoints at every third step follow a plan and are right bit for bit") {
  check_against_raw({.size = 16, .steps = 46, .every = 3, .shots = 8}, 1);
}

TEST_CASE("fields that are larger than the budget move in pieces, by a plan, and are right bit for bit") {
  const wave::Problem problem{.size = 32, .steps = 4, .every = 2, .shots = 7, .planes = 2};
  const Bytes field{wave::cells(problem) * sizeof(float)};
  check_against_raw(problem, 1, Bytes{field.value * 9 / 10});
}

// Run on oclgrind, which tells of each read of what nobody wrote: see tests/OpenclTests.cmake. Without swapmm, for it
// does not see what is written to sub-buffers; the kernels are the same.
TEST_CASE("uninitialized: the kernels of wave propagation read what was written" * doctest::skip()) {
  const opencl::Backend backend = test::backend();
  const wave::Problem problem{.size = 12, .steps = 8, .every = 2, .shots = 1};
  const wave::Result raw = wave::run_raw_opencl(backend.context(), backend.device(), problem);
  CHECK(sounds(raw.forward));
}
