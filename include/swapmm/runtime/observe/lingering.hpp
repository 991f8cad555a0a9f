// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/observe/log.hpp>

namespace swapmm::runtime {

/// What proves that the values of a tensor are dead (see EntranceOptions::certainly_dead): the next operation that
/// overwrites them, once the program has called it, or the end of the tensor, or of the iteration for transient ones.
struct Proofs {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  bool known = false;         ///< false: nothing is said about the tensor's values
  bool made_anew = false;     ///< another tensor takes its place in the next cycle, whose writes prove nothing about it
  std::uint64_t end = never;  ///< a moment (see LogWait), counted on from the cycle's first operation
};

/// Finds the values for which it is not proven at once that they are dead, in a cycle that repeats. An operation may be
/// kept waiting for proofs until one of the `waits` (LogWait::calls counted from the cycle's first operation on) lets
/// it go; after it, the bytes of what is dead may be used for something else. There is one element of `proofs` for each
/// tensor of the trace. Sorting apart, linear in the size of the trace and the number of waits.
[[nodiscard]] std::vector<LingeringValue> find_lingering(const Trace& trace, std::span<const LogWait> waits,
                                                         std::span<const Proofs> proofs);

}  // namespace swapmm::runtime
