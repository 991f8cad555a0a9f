// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/validation/parts.hpp>

namespace swapmm::v2::transition {

/// Names a value of a part: later values have larger numbers. 0: no value.
using ValueId = std::uint64_t;

/// A place, and what it holds.
struct Holding {
  std::uint32_t unit = 0;  ///< of validation::Parts: a part in a form
  MemoryId memory{};
  Bytes offset;       ///< 0 in a memory without limit
  ValueId value = 0;  ///< 0: nothing

  friend bool operator==(const Holding&, const Holding&) = default;
};

/// What is where when all that belongs to some iterations has ended, and nothing else has begun.
struct Boundary {
  std::vector<Holding> holdings;  ///< all places in limited memories, and what holds a value in others
  std::vector<ValueId> newest;    ///< of each part
  /// Of each part: whether an operation or the host reads its newest value before something writes the next one.
  std::vector<bool> is_needed;
  /// A part that the host still waits for: the next iteration would bring the value.
  std::optional<std::uint32_t> owed_to_host;
};

/// The state after so many iterations of a valid plan.
[[nodiscard]] Boundary boundary_after(const Trace& trace, const Plan& plan, std::size_t iterations);

/// What a plan begins with: its places, with the newest values in those that are valid. `newest` is of each part.
[[nodiscard]] std::vector<Holding> beginning_of(const Trace& trace, const Plan& plan,
                                                const std::vector<ValueId>& newest);

}  // namespace swapmm::v2::transition
