// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random programs whose iterations are put together from a few primitives, and not always from the same ones.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/options.hpp>
#include <swapmm/report.hpp>

namespace swapmm::test {

enum class StepKind : std::uint8_t {
  set,      ///< to = value
  convert,  ///< to = 3 from + value
  add,      ///< to += 5 from
};

struct BranchingStep {
  StepKind kind = StepKind::set;
  std::size_t from = 0;  ///< tensors
  std::size_t to = 0;
  std::uint32_t value = 0;
};

using Primitive = std::vector<BranchingStep>;

struct BranchingProgram {
  std::size_t tensors = 0;
  std::vector<Lifetime> lifetimes;                   ///< per tensor: observed or kept
  std::vector<Primitive> primitives;                 ///< small networks, say
  std::vector<std::vector<std::size_t>> iterations;  ///< the primitives that each iteration runs
  bool host_reads = false;  ///< the host reads a value before each primitive, and may choose it by that
  simulated::Options device;
  Options manager;
};

enum class BranchingSize : std::uint8_t {
  small,  ///< 5 to 9 tensors, 30 iterations
  large,  ///< 30 to 80 tensors, of which a quarter to three quarters fit, 60 iterations
};

/// `iterations`: so many of them; 0: as the size says.
[[nodiscard]] BranchingProgram branching_program(std::uint64_t seed, bool host_reads,
                                                 BranchingSize size = BranchingSize::small, std::size_t iterations = 0);

/// What a run gave.
struct BranchingRun {
  std::vector<std::vector<std::uint32_t>> values;  ///< of all tensors at the end
  std::string dropped;                             ///< the text of the DroppedValue that ended the run, if one did
  std::vector<std::string> violations;             ///< what the device's checker saw
  std::chrono::nanoseconds time{0};                ///< until everything had ended, by the device's virtual clock
  Report report;
};

/// Runs the program under a manager.
[[nodiscard]] BranchingRun run(const BranchingProgram& program, const SchedulerOptions& scheduler);

/// The values at the end of the same program, by loops of the host.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> values_by_loops(const BranchingProgram& program);

}  // namespace swapmm::test
