// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/ways.hpp>

namespace swapmm::v2::planning {

/// A part of a program for which ways are chosen as if it were alone: what runs in one memory.
struct WayPart {
  Trace trace;                    ///< without engines
  swapmm::Machine machine;        ///< the memory, and all others as one host
  MemoryId memory{};              ///< of the machine that the whole program runs on
  std::vector<TensorId> tensors;  ///< of the whole program, for each tensor
  std::vector<OperationId>
      operations;  ///< of the whole program, for each operation; its number of operations: behind all

  /// Ways of the part as ways of the whole program.
  [[nodiscard]] WaysBack of_whole(const WaysBack& ways) const;
};

/// The parts of a program that has ways; none if ways cannot be chosen on the machine. Without engines, it is one part.
/// Values that go from one memory to another have no other ways than copies.
[[nodiscard]] std::vector<WayPart> way_parts(const Trace& trace, const Machine& machine);

}  // namespace swapmm::v2::planning
