// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/formats/json/reader.hpp>
#include <swapmm/plan/plan.hpp>

// Internal: the waits of commands, which all versions of plans write in the same way.

namespace swapmm::json {

/// The waits of the command that is being read.
struct WaitTarget {
  std::vector<Wait> waits;  ///< copied when complete, so that no memory is wasted
  /// The fields of the current wait, which may come in any order.
  std::optional<std::int64_t> operation;
  std::optional<std::int64_t> command;
  bool previous = false;
};

/// Describes one wait. It is appended to `target`, which must outlive the result.
[[nodiscard]] Object wait_fields(WaitTarget& target);

/// Appends `[{"operation": 3}, ...]`.
void append_waits(std::string& line, const std::vector<Wait>& waits);

}  // namespace swapmm::json
