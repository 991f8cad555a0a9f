// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs of scenarios with faults, and the loop over every call that can fail: n = 1, 2, 3, ... until nothing fires any
// more, for a class and a way.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "faults/loop/reached.hpp"
#include "faults/loop/scenarios.hpp"

namespace swapmm::test {

/// One run.
struct RunResult {
  std::vector<Hit> hits;
  bool hidden = false;  ///< there were faults, and no error to anybody
  std::vector<std::string> problems;
  std::vector<std::string> errors;  ///< that the program was given, in order
};
[[nodiscard]] RunResult run_with_faults(const Scenario& scenario, const Faults& faults, std::uint64_t seed,
                                        AllocationSites* sites = nullptr);

/// Once more the run that a problem names: "SCENARIO, FAULT, then FAULT, seed N", whatever follows. Shows all errors.
[[nodiscard]] RunResult replay(std::string_view problem);

/// What many runs saw.
struct LoopResult {
  std::size_t runs = 0;    ///< in which all faults came about
  std::size_t hidden = 0;  ///< of them without an error to anybody
  Reached reached;
  std::vector<std::string> problems;  ///< the first few

  void add(const RunResult& run, std::size_t faults);
  void add(const LoopResult& other);
};

/// One round: the device's steps in orders drawn from `round`. With a stride above 1 most values of n are left out.
[[nodiscard]] LoopResult loop(const Scenario& scenario, const FaultKind& kind, std::uint64_t round,
                              std::uint64_t stride = 1);

/// Why nobody need be told of a fault, or nothing: then somebody must be.
[[nodiscard]] std::string_view why_hidden(const FaultKind& kind, const Scenario& scenario);

/// How many calls of each class a scenario makes without a fault, and which of its allocations are the first of their
/// call stack.
struct ScenarioCalls {
  std::array<std::uint64_t, call_class_count> calls{};
  std::vector<std::uint64_t> allocation_sites;
};
[[nodiscard]] const ScenarioCalls& calls_of(const Scenario& scenario);

}  // namespace swapmm::test
