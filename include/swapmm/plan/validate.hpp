// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// A rule that a plan breaks. `rule` is the number in docs/formats.md, 1 to 7, or 0 for errors in the structure: an
/// index out of range, the digest of another program, a bad machine. `message` names command, tensor and numbers.
struct Violation {
  int rule = 0;         ///< 0 to 7
  std::string message;  ///< one sentence
};

/// Checks that `plan` is valid for `trace`, no matter how long operations and copies take. Returns all violations;
/// empty for a valid plan. The validator follows the rules of the format and shares no code with the planners or the
/// simulator. Stops after 100 violations. About linear in the size of trace and plan (with a logarithm for places).
[[nodiscard]] SWAPMM_EXPORT std::vector<Violation> validate(const Trace& trace, const Plan& plan);

}  // namespace swapmm
