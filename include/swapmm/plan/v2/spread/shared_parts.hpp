// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/spread/engine_part.hpp>
#include <swapmm/plan/v2/spread/timeline.hpp>

namespace swapmm::v2::planning {

/// A value that is needed in other memories than the one where it is made.
struct LeavingValue {
  std::size_t part = 0;     ///< where it is made
  TensorId tensor{};        ///< of the part
  std::uint32_t after = 0;  ///< the operation of the part that makes it

  friend bool operator==(const LeavingValue&, const LeavingValue&) = default;
};

/// What runs in each memory but the host, if engines share memories or tensors.
struct SharedParts {
  /// An operation without tensors stands for the time in which none of the memory's engines runs one. Its id is that of
  /// the next one. An operation takes the time until the next one begins.
  std::vector<EnginePart> parts;
  std::vector<LeavingValue> leaving;  ///< ascending by part, tensor, operation
  std::vector<TensorId> in_host;      ///< of the whole trace: operations that run in the host access them
};

/// What happens to the room of a LeavingValue that its part does not need any more.
enum class WhatLeaves : std::uint8_t {
  stays_until_copied,  ///< it is kept, if there is enough of it, until the copy should have ended
  leaves_at_once,      ///< what takes it waits for the copy
};

/// The parts of a program. Each goes on as if it were alone: what is made in other memories is an input of it, from the
/// time when it has come to the host, and what is needed there is read by the host. If one memory writes a tensor, the
/// tensor persists there if it does in the trace; in the others it is a new one for each value.
///
/// A Problem if operations run in a memory without limit that is not the host.
[[nodiscard]] Result<SharedParts> shared_parts(const OrderedProgram& program, const Machine& machine, WhatLeaves kept);

}  // namespace swapmm::v2::planning
