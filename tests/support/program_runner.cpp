// SPDX-License-Identifier: Apache-2.0
#include "program_runner.hpp"

#include "program_run.hpp"
#include "program_simulated.hpp"

namespace swapmm::test {

RunResult run_program(const TestProgram& program, const RunSettings& settings) {
  return run_program_on<SimulatedProgramDevice>(program, settings);
}

}  // namespace swapmm::test
