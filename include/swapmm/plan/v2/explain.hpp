// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2 {

/// An operation or a command of a plan.
struct PlanStep {
  bool is_command = false;  ///< which of the two
  std::uint32_t index = 0;  ///< position in Trace::operations or Plan::commands

  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

/// A stall: an engine runs nothing until one of its elements can start.
struct Stall {
  PlanStep step;                     ///< the element that the engine waits for
  EngineId engine{};                 ///< the engine that waits
  std::chrono::nanoseconds time{0};  ///< how long it waits
  /// What ends when the element can start: a copy, or an element of another engine. None if it was not found.
  std::optional<PlanStep> cause;
  /// The `release` that waits for the cause, if the element needs the room that it gives back.
  std::optional<CommandId> room;
  /// If the cause is a copy: how much longer it takes than alone, because other copies share its capacities.
  std::chrono::nanoseconds slowed{0};
  /// If the cause is a copy: how long its engine copies without a pause until the copy ends.
  std::chrono::nanoseconds busy{0};
  /// The capacity that limits the cause for the longest time, if one does.
  std::optional<CapacityId> capacity;
};

/// What an engine does in an iteration. The times add up to the iteration.
struct EngineUse {
  std::chrono::nanoseconds operations{0};  ///< operations
  std::chrono::nanoseconds again{0};       ///< operations that run again
  std::chrono::nanoseconds coding{0};      ///< encoding and decoding
  std::chrono::nanoseconds copies{0};      ///< copies that occupy the engine
  std::chrono::nanoseconds waits{0};       ///< stalls
  std::chrono::nanoseconds done{0};        ///< from the engine's last element to the end of the iteration
};

/// What a link does in an iteration.
struct LinkUse {
  Bytes bytes;                         ///< what it copies
  std::size_t copies = 0;              ///< the number of copies
  std::chrono::nanoseconds busy{0};    ///< time in which there is a copy on it
  std::chrono::nanoseconds slowed{0};  ///< how much longer its copies take because they share capacities
};

/// What goes through a shared capacity in an iteration.
struct CapacityUse {
  Bytes bytes;                       ///< what its links copy
  std::chrono::nanoseconds full{0};  ///< time in which copies use all of it
};

/// What is in a memory.
struct MemoryUse {
  Bytes peak;             ///< most bytes occupied; 0 without limit
  Bytes in;               ///< bytes copied to it in an iteration
  Bytes out;              ///< bytes copied from it in an iteration
  std::size_t kept = 0;   ///< places between two iterations that the plan lists
  Bytes kept_bytes;       ///< their sizes
  std::size_t taken = 0;  ///< places that commands take in an iteration
};

/// A time in which a part has no place in a memory whose engines use it, although its value is needed again.
struct PlannedAbsence {
  TensorId tensor{};                    ///< the tensor
  std::optional<std::uint32_t> piece;   ///< the piece, if the plan divides the tensor
  MemoryId memory{};                    ///< the memory that the value leaves
  CommandId release{};                  ///< the command with which it leaves
  CommandId back{};                     ///< the command that brings or makes it again: copy, decode or run
  std::chrono::nanoseconds time{0};     ///< from the end of `release` to the start of `back`
  std::optional<OperationId> last_use;  ///< the operation that used it there before
  std::optional<OperationId> next_use;  ///< the operation that uses it there next
  bool next_iteration = false;          ///< true if `next_use` is in a later iteration than `last_use`
};

/// What a plan does, and why it takes longer than its operations.
struct Explanation {
  std::chrono::nanoseconds iteration{0};  ///< the mean of the long run
  std::chrono::nanoseconds examined{0};   ///< the length of the iteration that engines and stalls are those of
  std::chrono::nanoseconds compute{0};    ///< the largest sum of durations of one engine's operations
  std::vector<EngineUse> engines;         ///< of each engine of the machine; 0 for those that only copy
  std::vector<LinkUse> links;             ///< of each link
  std::vector<CapacityUse> capacities;    ///< of each capacity
  std::vector<MemoryUse> memories;        ///< of each memory
  std::vector<Stall> stalls;              ///< of engines that run operations; longest first
  std::vector<PlannedAbsence> absences;   ///< longest first
};

/// Examines the last iteration of the period in which a valid plan repeats itself, or one iteration if it does not.
/// Times of links and capacities are means over the period. Costs about three times as much as simulate().
[[nodiscard]] SWAPMM_EXPORT Explanation explain(const Trace& trace, const Plan& plan);

/// Describes for people what the engine waits for.
[[nodiscard]] SWAPMM_EXPORT std::string describe(const Stall& stall, const Trace& trace, const Plan& plan);

}  // namespace swapmm::v2
