// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/plan/relaxation/solver/option_blocks.hpp>

namespace swapmm::planning::relaxation {

struct InteriorPointLimits {
  int iterations = 60;
  double tolerance = 1e-5;  ///< tolerance of the objective, in units of the program
};

/// The solution. Prices are not negative and approximately those of an optimum, without a guarantee.
struct ProgramSolution {
  std::vector<double> room;     ///< per group: the price of OptionBlock::room x amount
  std::vector<double> in;       ///< per group: the price of time for copies in; with half duplex, of the link's time
  std::vector<double> out;      ///< per group: the price of time for copies out; with half duplex, the same as `in`
  std::vector<double> options;  ///< per option: how much of its block takes it
  std::vector<double> stall;    ///< per group
  double objective = 0;         ///< the sum of the stalls, and of what is computed again
  int iterations = 0;
  bool is_solved = false;  ///< to the tolerance
};

/// Mehrotra's predictor-corrector method ("On the implementation of a primal-dual interior point method", 1992). Each
/// iteration takes some passes over the options and one factorization of about three rows per group. The result is the
/// best point that was found: further steps may lead away from it, and numbers may leave their range.
[[nodiscard]] ProgramSolution solve_program(const CoarseProgram& program, const InteriorPointLimits& limits = {});

}  // namespace swapmm::planning::relaxation
