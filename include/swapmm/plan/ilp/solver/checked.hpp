// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <swapmm/plan/ilp/solver/solver.hpp>

namespace swapmm::planning::ilp {

/// The solver's answer to a program that has a solution, or a failure if it cannot be right: if it says that there is
/// none, if values are missing, or if they break a row, a bound or an integer by more than the solver's arithmetic
/// explains. A wrong bound cannot be seen here.
[[nodiscard]] Solution checked(const Program& program, Solution answer, bool has_integers);

}  // namespace swapmm::planning::ilp
