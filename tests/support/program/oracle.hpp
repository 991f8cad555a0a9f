// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "support/program/runner.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// What is asked of a program beyond one run.
struct Scrutiny {
  bool again = false;      ///< the same seed gives the same steps and the same bytes
  bool on_demand = false;  ///< results do not depend on plans
  bool advised = false;    ///< plans that were saved are followed, and changed ones refused or followed correctly
};

struct Verdict {
  std::string failure;                   ///< empty: all held
  RunResult run;                         ///< the first one
  RunSettings settings{};                ///< of the last run: the one that failed, where one did
  RunResult last{};                      ///< what that run showed; empty where it is the first one
  std::uint64_t plans_advised = 0;       ///< that were saved as text and loaded again
  std::uint64_t plans_mutated = 0;       ///< that were loaded after something in them was changed
  std::uint64_t mutated_refused = 0;     ///< of those: refused as soon as they were loaded
  std::uint64_t iterations_changed = 0;  ///< that followed plans of a run with changed ones

  /// The run that failed.
  [[nodiscard]] const RunResult& failed() const { return run.failure.empty() ? last : run; }
};

/// As run_program() does, on whatever device.
using ProgramRunner = std::function<RunResult(const TestProgram& program, const RunSettings& settings)>;

[[nodiscard]] Verdict judge(const TestProgram& program, const Scrutiny& scrutiny,
                            const ProgramRunner& run_on_device = run_program);

}  // namespace swapmm::test
