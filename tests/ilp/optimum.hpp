// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the integer program proves to be the best plan.

#include <doctest/doctest.h>

#include <utility>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/ilp.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::test {

/// The result, whose plan must be valid and proven to be optimal.
inline IlpResult proven_optimum(const Trace& trace, const Machine& machine) {
  REQUIRE(check_trace(trace));
  Result<IlpResult> result = plan_by_ilp(trace, machine);
  REQUIRE(result);
  CHECK(validate(trace, result->plan).empty());
  CHECK(to_string(result->status) == to_string(IlpStatus::optimal));
  return *std::move(result);
}

}  // namespace swapmm::test
