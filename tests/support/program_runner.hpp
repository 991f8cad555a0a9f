// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/ir/trace.hpp>

#include "test_program.hpp"

namespace swapmm::test {

struct SavedPlan {
  std::string iteration;  ///< name
  std::string text;
  std::optional<Trace> trace{};  ///< the iteration observed last
};

struct RunSettings {
  bool planning = true;  ///< false: everything on demand
  bool save_plans = false;
  std::vector<SavedPlan> loaded{};  ///< given to the scheduler before the first iteration; may be refused
};

/// What a run showed. Everything but `failure` is for statistics and for comparing runs.
struct RunResult {
  std::string failure;  ///< what did not hold, first of all; empty: everything held
  std::uint64_t trace_hash = 0;
  std::uint64_t downloads = 0;  ///< hash of all bytes that the host read
  std::uint64_t operations = 0;
  std::uint64_t iterations_on_demand = 0;
  std::uint64_t iterations_followed = 0;
  std::uint64_t divergences = 0;
  std::uint64_t plan_starts = 0;
  std::uint64_t swaps = 0;
  std::uint64_t dropped = 0;  ///< reads refused with DroppedValue
  std::uint64_t refused = 0;  ///< other calls refused, as they must be
  std::uint64_t budget_changes = 0;
  std::uint64_t sampled_rounds = 0;
  std::uint64_t plans_remade = 0;
  std::vector<std::string> notes;
  std::vector<SavedPlan> plans;  ///< with save_plans
};

/// Runs the program on a simulated device of its own, and checks everything that must hold at each step and at the
/// end: each read sees the last write, the checker of the device finds nothing, budgets hold, calls that must be
/// refused are and others are not, and after teardown in a random order nothing is left.
[[nodiscard]] RunResult run_program(const TestProgram& program, const RunSettings& settings = {});

}  // namespace swapmm::test
