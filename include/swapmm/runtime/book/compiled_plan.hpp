// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/joint/plan_turns.hpp>
#include <swapmm/runtime/observe/program.hpp>
#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// The last recorded point of each queue that must have ended: point `ordinal` (counted from 0) of the iteration `back`
/// iterations ago; back < 0: none. One point per queue expresses any set of waits, because queues run in order.
struct Needs {
  std::array<std::int8_t, device_queue_count> back{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  std::array<std::uint32_t, device_queue_count> ordinal{};
  bool has_others = false;  ///< a queue that not every backend has has a point

  void add(QueueKind queue, std::int8_t iterations_back, std::uint32_t point);
  void join(const Needs& other);
  /// Calls visit(queue) for each queue that has a point.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const QueueKind queue : base_queues) {
      if (back[index(queue)] >= 0) visit(queue);
    }
    if (!has_others) [[likely]]
      return;
    for (std::size_t q = base_queue_count; q < device_queue_count; ++q) {
      if (back[q] >= 0) visit(device_queues[q]);
    }
  }

  friend bool operator==(const Needs&, const Needs&) = default;
};

/// The maximum number of iterations that a wait may reach back. A wait that reaches further back is replaced by a wait
/// for that iteration. It was issued long ago, so the wait may delay a command but never deadlock.
inline constexpr std::int8_t max_back = 3;

/// Where a copy of a plan goes, or comes from.
struct HomeCopy {
  Home home = Home::host;
  bool ends = false;  ///< to the device: the value need not stay where it comes from
};

/// A command of the plan as the executor runs it.
struct Step {
  CommandKind kind = CommandKind::release;
  std::uint32_t role = 0;
  Bytes offset;
  Needs needs;
  HomeCopy copy;              ///< of a copy
  bool made_again = false;    ///< of a release: an operation that runs again gives the value back
  std::uint32_t command = 0;  ///< its position in the plan
};

struct FollowedOperation {
  Needs needs;
  bool recorded = false;      ///< true if an event is recorded after it, because something waits for it
  std::uint32_t ordinal = 0;  ///< of the first recorded point at or after its end
};

/// A plan in flat form for the executor: steps in the order in which they are issued, all waits as queue points.
struct CompiledPlan {
  Program program;
  Plan plan;
  std::vector<Step> steps;
  /// Slot 2i is just before operation i, and slot 2i + 1 is just after it. The steps of slot s are
  /// [first_step[s], first_step[s + 1]).
  std::vector<std::uint32_t> first_step;
  std::vector<FollowedOperation> operations;
  std::array<std::uint32_t, device_queue_count> points{};  ///< number recorded per iteration on each queue
  Bytes footprint;                                         ///< the end of the plan's highest place
  std::vector<bool> swapped_out;                           ///< per role: true if it needs a host block
  std::vector<Stall> stalls;                               ///< predicted, longest first
  /// The plan with host and file, if it tells them apart; `plan` is what it does with the device.
  std::optional<v2::Plan> tiered;
  std::vector<std::optional<Home>> begins_in;  ///< with `tiered`, per role: what has its value when a round begins
  bool tells_homes = false;                    ///< the plan says of each copy from which memory or to which one it is
  /// If it was made together with plans of other managers.
  std::shared_ptr<const PlanTurns> turns;
  /// What was observed, if `program` has replays written out; `plan` is for the program with them.
  std::shared_ptr<const Program> without_replays;

  /// The digest of the trace that was observed.
  [[nodiscard]] std::string observed_digest() const;
  /// Where values of the role are when they are not on the device, without `tiered`.
  [[nodiscard]] Home home_of(std::size_t role) const {
    return program.trace.tensors[role].copied ? Home::encoded : Home::host;
  }
  [[nodiscard]] const Program& observed() const { return without_replays != nullptr ? *without_replays : program; }
};

/// The compiled plan of a cycle of one or more iterations.
using FollowablePtr = std::shared_ptr<const CompiledPlan>;

/// Compiles a valid plan. Returns a Problem if the plan is valid but the executor cannot follow it, for example if it
/// swaps in an input before the iteration that uploads it, or swaps the work area of an operation. Usually linear in
/// the number of waits. `copies` says for each command that copies where to or where from; empty: the host.
[[nodiscard]] Result<CompiledPlan> compile(Program program, Plan plan, const std::vector<HomeCopy>& copies = {});

}  // namespace swapmm::runtime
