// SPDX-License-Identifier: Apache-2.0
// Every call that can fail does, once in each way, in programs that use all of the library. What holds then is
// written down in docs/reliability.md and judged in world.cpp.
//
// SWAPMM_FAULT_ROUNDS=n runs n rounds, each with other orders of the device's steps.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "faults/fault_loop.hpp"
#include "faults/scenarios.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

#ifdef SWAPMM_TEST_IS_SLOW
constexpr std::uint64_t stride = 29;  // sanitizers are slow
constexpr std::uint64_t orders = 6;
#else
constexpr std::uint64_t stride = 3;  // of a long run: 1
constexpr std::uint64_t orders = 36;
#endif
constexpr std::uint64_t usual_rounds = 1;

std::uint64_t rounds() {
  const char* const wish = std::getenv("SWAPMM_FAULT_ROUNDS");
  return wish == nullptr ? usual_rounds : std::max<std::uint64_t>(1, std::strtoull(wish, nullptr, 10));
}

/// Why nobody need be told of a fault, or nothing: then somebody must be.
std::string_view why_hidden(const FaultKind& kind, const Scenario& scenario) {
  const bool closes = scenario.name == "build and tear down" || scenario.name == "two managers on one device" ||
                      scenario.name == "teardown with work in flight" || scenario.name == "plans saved and loaded";
  switch (kind.source) {
    case Fault::Source::nothing:
    case Fault::Source::stream: return {};
    case Fault::Source::operator_new: return "the standard library sorts without a buffer where it gets none";
    case Fault::Source::kernel: return closes ? "nobody asks for the value before its manager ends" : "";
    case Fault::Source::backend: break;
  }
  if (kind.mode == FaultMode::slow) return "a slow device is no error";
  switch (kind.fault_class) {
    case FaultClass::pinned_allocation:
      if (kind.mode == FaultMode::device_lost) return {};
      return kind.mode == FaultMode::lazy ? "the second slot of an upload is never used"
                                          : "pageable memory takes its place";
    case FaultClass::pageable_allocation:
      return kind.mode == FaultMode::once || kind.mode == FaultMode::blind ? "kept memory is freed, then tried again"
                                                                           : "";
    case FaultClass::device_allocation:
      return kind.mode == FaultMode::lazy && scenario.name == "changing budgets"
                 ? "memory that is only asked for to see whether there is any"
                 : "";
    case FaultClass::event_creation: return kind.mode == FaultMode::lazy ? "the event is never used" : "";
    case FaultClass::record:
      return kind.mode == FaultMode::late ? "the event only takes the time, or is not needed" : "";
    case FaultClass::copy_to_device:
    case FaultClass::copy_to_host:
      return kind.mode == FaultMode::late && closes ? "nobody asks for the value before its manager ends" : "";
    case FaultClass::host_wait: return "the event tells that the work has ended all the same";
    case FaultClass::status_query:
    case FaultClass::flush:
    case FaultClass::timing: return "a destructor tries again, or gives up what nobody asks for";
    case FaultClass::finish: return closes ? "the manager ends anyway" : "";
    default: return {};
  }
}

}  // namespace

TEST_CASE("without a fault every program does what it is for, in any order of the device's steps") {
  for (const Scenario& scenario : scenarios()) {
    for (std::uint64_t seed = 1; seed <= orders; ++seed) {
      const RunResult run = run_with_fault(scenario, Fault{}, seed);
      for (const std::string& problem : run.problems) CHECK_MESSAGE(false, problem);
      CHECK_FALSE(run.fired);
    }
  }
}

TEST_CASE("any one call that fails gives one error to one caller, and no value is lost without a word") {
  FaultTable table;
  const std::uint64_t step = rounds() > usual_rounds ? 1 : stride;
  for (std::uint64_t round = 1; round <= rounds(); ++round) {
    for (const Scenario& scenario : scenarios()) {
      for (const FaultKind& kind : fault_kinds()) {
        const LoopResult result = loop(scenario, kind, round, step);
        for (const std::string& problem : result.problems) CHECK_MESSAGE(false, problem);
        const bool may_hide = !why_hidden(kind, scenario).empty();
        CHECK_MESSAGE((may_hide || result.hidden == 0), scenario.name << ": " << result.hidden << " faults "
                                                                      << kind.row() << " " << kind.column()
                                                                      << " that nobody was told of");
        table.add(kind, result, round == 1);
      }
    }
  }
  for (const FaultKind& kind : fault_kinds()) {
    CHECK_MESSAGE(table.sites(kind) > 0, kind.row() << " " << kind.column() << " fails nowhere");
  }
  if (step <= 3) CHECK(table.runs() >= 20'000);
  table.print(std::cout);
}
