// SPDX-License-Identifier: Apache-2.0
#pragma once

// The programs of fault_programs.hpp on a real device behind the fault adaptor, once for each call that can fail.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/backend/testing/fault_plan.hpp>
#include <swapmm/backend/testing/faulty.hpp>

#include "support/fault_programs.hpp"

namespace swapmm::test {

/// `D` says what one API has of its own:
///   Device       a Faulty<...>
///   make(plan)   a Device
///   first()      so many calls of a class fail before the stride begins; at least 1
///   stride()     from one call that fails to the next one
///   at_rest()    what the API holds and says between two runs; each run must leave it as it was
template <class D>
class FaultRuns {
 public:
  using Device = typename D::Device;
  using World = FaultWorld<Device>;

  /// Without a fault, all programs follow plans, and no call fails.
  static void run_without_fault() {
    for (const Scenario& scenario : scenarios) {
      const Run run = run_with_fault(scenario, {});
      CHECK(run.errors == 0);
      CHECK_FALSE(run.fired);
    }
  }
  /// Each class of calls that can fail in that mode, and of each the first calls and then one per stride.
  static void run_over_classes(FaultMode mode) {
    for (std::size_t c = 0; c < fault_class_count; ++c) {
      const auto fault_class = static_cast<FaultClass>(c);
      if (!applicable(fault_class, mode)) continue;
      const std::size_t fired = run_over_calls(fault_class, mode);
      // finish() is only called where something else has failed, or when all ends; the host only waits for a device
      // that is slower than itself; these programs launch by the API alone.
      if (fault_class == FaultClass::finish || fault_class == FaultClass::host_wait) continue;
      if (fault_class == FaultClass::launch) continue;
      const bool of_file = fault_class == FaultClass::read_file || fault_class == FaultClass::write_file;
      // A file that fails fails for real: see file_test.cpp.
      if (of_file && (!FileBackend<Device> || mode == FaultMode::late)) continue;
      CHECK_MESSAGE(fired > 0, std::string(to_string(fault_class)));
    }
  }

 private:
  struct Scenario {
    std::string_view name;
    void (*run)(World& world);
  };
  static constexpr Scenario scenarios[] = {
      {"a steady loop", [](World& world) { steady_loop(world, Form::plain); }},
      {"a steady loop with wait lists", [](World& world) { steady_loop(world, Form::with_event); }},
      {"plans left and followed again", [](World& world) { wandering(world); }},
      {"a steady loop with a file",
       [](World& world) {
         if constexpr (FileBackend<Device>) steady_loop(world, Form::plain, four_tensors_and_a_file());
       }},
  };

  struct Run {
    bool fired = false;
    std::size_t errors = 0;
  };

  static FaultRules rules_of(FaultClass fault_class, FaultMode mode) {
    FaultRules rules;
    rules.repeats = mode == FaultMode::for_ever;
    rules.loses_device = mode == FaultMode::device_lost;
    // Where the event behind work is refused, nobody can tell whether that failed.
    const bool untold = fault_class == FaultClass::adopt || fault_class == FaultClass::record ||
                        fault_class == FaultClass::event_creation;
    rules.loses_values = mode == FaultMode::late || untold;
    rules.at_first_use = mode == FaultMode::lazy;
    return rules;
  }

  /// One run with one fault. Checks all that must hold.
  static Run run_with_fault(const Scenario& scenario, const FaultPlan& plan) {
    const std::string text = std::string(scenario.name) + ", " + std::string(to_string(plan.fault_class)) + " " +
                             std::string(to_string(plan.mode)) + " " + std::to_string(plan.n);
    const FaultRules rules = rules_of(plan.fault_class, plan.mode);
    const auto at_rest = D::at_rest();
    Run result;
    {
      World world(D::make(plan), rules);
      scenario.run(world);
      result.fired = world.backend().fired() > 0;
      if (plan.n == 0) CHECK_MESSAGE(world.report().iterations_followed > 0, text);
      world.backend().restart({});
      world.probe();
      result.errors = world.errors().size();
      const bool one_at_most = !rules.repeats && !rules.loses_device && plan.mode != FaultMode::late;
      if (one_at_most && result.errors > 1) {
        FAIL_CHECK(text << ": one fault, two errors: " << world.errors()[0] << " | " << world.errors()[1]);
      }
      world.tear_down(plan.n % 2 == 0);
      for (const std::string& problem : world.problems()) {
        FAIL_CHECK(text << ": " << problem
                        << (world.errors().empty() ? "" : " [first error: " + world.errors().front() + "]"));
      }
    }
    CHECK_MESSAGE(D::at_rest() == at_rest, text);
    return result;
  }

  /// How many of them failed.
  static std::size_t run_over_calls(FaultClass fault_class, FaultMode mode) {
    std::size_t fired = 0;
    for (const Scenario& scenario : scenarios) {
      for (std::uint64_t n = 1;; n += n < D::first() ? 1 : D::stride()) {
        if (!run_with_fault(scenario, {fault_class, mode, n}).fired) break;
        ++fired;
      }
    }
    return fired;
  }
};

}  // namespace swapmm::test
