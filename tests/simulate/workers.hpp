// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "support/program/report.hpp"
#include "support/program/tally.hpp"

namespace swapmm::test {

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

struct FailedSeed {
  std::uint64_t seed = 0;
  std::string failure;
  bool ended_process = false;  ///< by a signal: an assertion, a crash, or the clock
};

struct WorkersResult {
  ProgramTally tally;
  std::uint64_t done = 0;
  std::uint64_t trace_hash = 0;      ///< of the program of the first seed
  std::optional<FailedSeed> failed;  ///< the lowest seed of those that failed; the first one stops all workers
};

/// Judges the programs of all these seeds in `jobs` processes, which end with this one. `progress(done)` is called now
/// and then. A program that takes longer than ten minutes is one that failed.
[[nodiscard]] WorkersResult run_workers(const SeedRange& seeds, unsigned jobs,
                                        const std::function<void(std::uint64_t done)>& progress);

/// As `judge`, in a process of its own: one that a signal ends is a verdict too.
[[nodiscard]] Verdict judge_apart(const TestProgram& program, const ProgramJudge& judge, std::chrono::seconds limit);

}  // namespace swapmm::test
