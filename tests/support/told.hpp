// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <swapmm/plan/validate.hpp>

namespace swapmm::test {

/// A line for each violation, with its rule in front.
inline std::string told(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += std::to_string(violation.rule) + ": " + violation.message + '\n';
  }
  return text;
}
/// All that validate() says of the plan. Nothing of a valid one.
inline std::string told(const Trace& trace, const Plan& plan) { return told(validate(trace, plan)); }

}  // namespace swapmm::test
