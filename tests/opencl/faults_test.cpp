// SPDX-License-Identifier: Apache-2.0
// Every call of the backend that can fail does, once in each way, in two programs on a real device. tests/faults does
// the same at length on the simulated device; here it is seen that nothing hangs, nothing is left in the API, and no
// value is wrong without a word.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <swapmm/backend/fault_plan.hpp>
#include <swapmm/backend/faulty.hpp>

#include "opencl/fault_world.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Device = Faulty<opencl::Backend>;
using World = FaultWorld<Device>;

struct Scenario {
  std::string_view name;
  void (*run)(World& world);
};
constexpr Scenario scenarios[] = {
    {"a steady loop", [](World& world) { steady_loop(world, Form::plain); }},
    {"a steady loop with wait lists", [](World& world) { steady_loop(world, Form::with_event); }},
    {"plans left and followed again", [](World& world) { wandering(world); }},
};

/// From one call that fails to the next one.
std::uint64_t stride() {
#ifdef SWAPMM_TEST_IS_SLOW
  return 21;  // sanitizers are slow
#else
  return device_is_slow() ? 61 : 5;
#endif
}
constexpr std::uint64_t always = 6;  // the first calls of a class, which no stride leaves out

struct Run {
  bool fired = false;
  std::size_t errors = 0;
};

/// One run with one fault. Checks all that must hold.
Run run_with_fault(const Scenario& scenario, const FaultPlan& plan) {
  const std::string text = std::string(scenario.name) + ", " + std::string(to_string(plan.fault_class)) + " " +
                           std::string(to_string(plan.mode)) + " " + std::to_string(plan.n);
  FaultRules rules;
  rules.repeats = plan.mode == FaultMode::for_ever;
  rules.loses_device = plan.mode == FaultMode::device_lost;
  rules.fails_late = plan.mode == FaultMode::late;
  rules.at_first_use = plan.mode == FaultMode::lazy;
  const ApiObjects at_rest = objects_at_rest();
  Run result;
  {
    World world(Device(shared_backend(), plan), rules);
    scenario.run(world);
    result.fired = world.backend().fired() > 0;
    if (plan.n == 0) CHECK_MESSAGE(world.report().iterations_followed > 0, text);
    world.backend().restart({});
    world.probe();
    result.errors = world.errors().size();
    const bool one_at_most = !rules.repeats && !rules.loses_device && !rules.fails_late;
    if (one_at_most && result.errors > 1) {
      FAIL_CHECK(text << ": one fault, two errors: " << world.errors()[0] << " | " << world.errors()[1]);
    }
    world.tear_down(plan.n % 2 == 0);
    for (const std::string& problem : world.problems()) {
      FAIL_CHECK(text << ": " << problem
                      << (world.errors().empty() ? "" : " [first error: " + world.errors().front() + "]"));
    }
  }
  CHECK_MESSAGE(api_objects() == at_rest, text);
  return result;
}

/// The loop over all calls of a class; how many of them failed.
std::size_t loop(FaultClass fault_class, FaultMode mode) {
  std::size_t fired = 0;
  for (const Scenario& scenario : scenarios) {
    for (std::uint64_t n = 1;; n += n < always ? 1 : stride()) {
      if (!run_with_fault(scenario, {fault_class, mode, n}).fired) break;
      ++fired;
    }
  }
  return fired;
}

void loop_over_classes(FaultMode mode) {
  for (std::size_t c = 0; c < fault_class_count; ++c) {
    const auto fault_class = static_cast<FaultClass>(c);
    if (!applicable(fault_class, mode)) continue;
    const std::size_t fired = loop(fault_class, mode);
    // finish() is only called where something else has failed, or when all ends.
    if (fault_class != FaultClass::finish) CHECK_MESSAGE(fired > 0, std::string(to_string(fault_class)));
  }
}

}  // namespace

TEST_CASE("without a fault the programs follow plans and come out right") {
  for (const Scenario& scenario : scenarios) {
    const Run run = run_with_fault(scenario, {});
    CHECK(run.errors == 0);
    CHECK_FALSE(run.fired);
  }
}

TEST_CASE("a call that fails once gives one error at most, and all values are right") {
  loop_over_classes(FaultMode::once);
}
TEST_CASE("calls that fail for ever end no program in a hang or with a wrong value") {
  loop_over_classes(FaultMode::for_ever);
}
TEST_CASE("a device lost at any call is told by every later one, and everything ends") {
  loop_over_classes(FaultMode::device_lost);
}
TEST_CASE("a call that is done and fails all the same does no harm") { loop_over_classes(FaultMode::blind); }
TEST_CASE("an object that fails at its first use does no harm") { loop_over_classes(FaultMode::lazy); }
TEST_CASE("work that fails behind its call is told with the values that it took") {
  loop_over_classes(FaultMode::late);
}
