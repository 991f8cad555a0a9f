// SPDX-License-Identifier: Apache-2.0
#include "core.hpp"

#include <algorithm>

namespace interpreter {

std::vector<float> seen_by(const Call& call, const Pad& pad) {
  const auto observation = pad.observation();
  std::vector<float> seen(seen_size, 0.0F);
  std::copy(observation.begin(), observation.end(), seen.begin());
  if (call.row != Row::none) seen[observation_size + static_cast<std::size_t>(call.row)] = 1;
  if (call.direction != Direction::none) {
    seen[observation_size + row_count + static_cast<std::size_t>(call.direction)] = 1;
  }
  return seen;
}

std::vector<float> right_choices(const Step& step) {
  if (step.is_end) return {1, -1, -1, -1};
  return {0, static_cast<float>(step.call.program), static_cast<float>(step.call.row),
          static_cast<float>(step.call.direction)};
}

Step step_from(const std::vector<std::size_t>& choices) {
  return {.is_end = choices[0] == 1,
          .call = {static_cast<Program>(choices[1]), static_cast<Row>(choices[2]), static_cast<Direction>(choices[3])}};
}

}  // namespace interpreter
