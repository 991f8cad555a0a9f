// SPDX-License-Identifier: Apache-2.0
#include "support/program/runner.hpp"

#include "support/program/run.hpp"
#include "support/program/simulated.hpp"

namespace swapmm::test {

RunResult run_program(const TestProgram& program, const RunSettings& settings) {
  return run_program_on<SimulatedProgramDevice>(program, settings);
}

}  // namespace swapmm::test
