// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// One broken rule of a plan. `rule` is the number in docs/formats.md (1 to 7; 0: the plan's structure: an index
/// out of range, another program's digest, a bad machine); `message` names command, tensor and numbers.
struct Violation {
  int rule = 0;         ///< 0 to 7
  std::string message;  ///< one sentence
};

/// Every way in which `plan` could go wrong for `trace`, whatever operations and copies take; empty for a valid
/// plan. Written from the format's rules alone: it shares no code with the planners or the simulator. Stops after
/// 100 violations. About linear in the size of trace and plan (a logarithm for places).
[[nodiscard]] SWAPMM_EXPORT std::vector<Violation> validate(const Trace& trace, const Plan& plan);

}  // namespace swapmm
