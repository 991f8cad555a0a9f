// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/runtime/observe/program.hpp>
#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// For each queue the last recorded point that must have ended: the `ordinal`-th (from 0) of the iteration that
/// many `back`; back < 0: none. Three numbers hold any set of waits, since queues run in order.
struct Needs {
  std::array<std::int8_t, queue_count> back{-1, -1, -1};
  std::array<std::uint32_t, queue_count> ordinal{};

  void add(QueueKind queue, std::int8_t iterations_back, std::uint32_t point);
  void join(const Needs& other);
};

/// Iterations that a wait may reach back. What a plan puts further back is moved up to that one: issued long ago,
/// so it can delay and never block.
inline constexpr std::int8_t max_back = 3;

/// A command of the plan as the executor runs it.
struct Step {
  CommandKind kind = CommandKind::release;
  std::uint32_t role = 0;
  Bytes offset;
  Needs needs;
};

struct FollowedOperation {
  Needs needs;
  bool recorded = false;      ///< an event is recorded behind it, because something waits for it
  std::uint32_t ordinal = 0;  ///< of the first recorded point at or behind its end
};

/// A plan made flat for the executor: steps in the order in which they are issued, all waits as points of queues.
struct CompiledPlan {
  Program program;
  Plan plan;
  std::vector<Step> steps;
  /// Slot 2i is just before operation i, slot 2i + 1 just behind it; steps of slot s are
  /// [first_step[s], first_step[s + 1]).
  std::vector<std::uint32_t> first_step;
  std::vector<FollowedOperation> operations;
  std::array<std::uint32_t, queue_count> points{};  ///< recorded per iteration on each queue
  Bytes footprint;                                  ///< no place of the plan ends above it
  std::vector<bool> swapped_out;                    ///< per role: needs a host block
  std::vector<Stall> stalls;                        ///< predicted, the longest first
};

/// A cycle of one or more iterations that has a plan.
using FollowablePtr = std::shared_ptr<const CompiledPlan>;

/// Makes a valid plan flat. A Problem where the executor cannot follow it though it is valid: an input brought in
/// before the iteration whose value it is, work areas that are swapped. Linear in waits.
[[nodiscard]] Result<CompiledPlan> compile(Program program, Plan plan);

}  // namespace swapmm::runtime
