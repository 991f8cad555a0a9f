// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/spread/engine_part.hpp>
#include <swapmm/plan/v2/spread/shared_parts.hpp>
#include <swapmm/plan/v2/spread/stores.hpp>

namespace swapmm::v2::planning {

/// What several devices run, and where each of them can store. Refers to trace and machine, which must outlive it.
struct SpreadCase {
  const Trace& trace;
  const Machine& machine;
  std::vector<EnginePart> parts;           ///< each has a memory with a limit
  std::vector<std::vector<Store>> stores;  ///< of each part, fastest first
  std::vector<LeavingValue> leaving{};     ///< what parts need of each other; ascending by part, tensor, operation
  std::vector<TensorId> in_host{};         ///< what has a place in the host all the time
};

/// A Problem if engines share tensors or memories.
[[nodiscard]] Result<SpreadCase> make_spread_case(const Trace& trace, const Machine& machine);

/// The same for parts that are known.
[[nodiscard]] SpreadCase make_spread_case(const Trace& trace, const Machine& machine, std::vector<EnginePart> parts);
[[nodiscard]] SpreadCase make_spread_case(const Trace& trace, const Machine& machine, SharedParts parts);

/// The machine for which a part is planned alone: all other memories are one host, which has a part of its speed.
[[nodiscard]] swapmm::Machine machine_of_part(const SpreadCase& all, std::size_t part, double speed);

/// Where a command of a plan for all devices comes from.
struct CommandOrigin {
  std::size_t part = 0;
  /// Of the part's plan; of what gives a store's place back, the copy before it. A position in SpreadCase::leaving for
  /// copies of these values.
  std::uint32_t command = 0;
};

/// A plan for all devices. Its commands are in an order in which they could run one after another.
struct SpreadPlan {
  Plan plan;                           ///< without planner and prediction
  std::vector<CommandOrigin> origins;  ///< of each command
};

/// The plans of all parts as one: each value that leaves is in one of the stores, and each command has only the waits
/// that it needs. A Problem if stores are full.
[[nodiscard]] Result<SpreadPlan> spread_plans(const SpreadCase& all, const std::vector<const swapmm::Plan*>& plans);

}  // namespace swapmm::v2::planning
