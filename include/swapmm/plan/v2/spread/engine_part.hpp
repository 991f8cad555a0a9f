// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2::planning {

/// What one engine runs, as a trace of version 1, and where its parts are in the whole trace.
struct EnginePart {
  EngineId engine{};
  MemoryId memory{};
  Trace trace;
  std::vector<TensorId> tensors;        ///< of the whole trace, for each tensor of the part
  std::vector<OperationId> operations;  ///< of the whole trace, for each operation of the part
};

/// The parts of all engines that run operations. A Problem if a tensor is used by two engines, or an engine has a
/// memory without limit. Of tensors that no operation uses, those that the host gives or reads belong to the first
/// part, the others to none. Accesses to a part of a tensor count for the whole: writes as updates.
[[nodiscard]] Result<std::vector<EnginePart>> engine_parts(const Trace& trace, const Machine& machine);

}  // namespace swapmm::v2::planning
