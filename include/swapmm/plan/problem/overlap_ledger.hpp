// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// A stretch of operations between two uses of a value: over it the tensor stays, or goes out and comes back. Slots
/// count operations on from the use in front; those at or above n are of the next iteration.
struct Absence {
  TensorId tensor{};
  std::uint32_t first = 0;    ///< the first operation without the tensor in its bundle; for a new input: available_from
  std::uint32_t end = 0;      ///< the operation that needs it again
  std::uint32_t version = 0;  ///< in OverlapLedger::versions; no_version where the host has the value anyway
  bool is_arrival = false;    ///< an input's first arrival: it cannot stay, it was not there
  // The decision:
  bool stays = false;
  std::uint32_t leaves = 0;   ///< gap, from first on
  std::uint32_t returns = 0;  ///< gap, from leaves on, up to end
  std::uint32_t gone = 0;     ///< gap, from leaves on: nobody gets its bytes before
  std::uint32_t queued = 0;   ///< gap whose place in the queue it gets
};

/// A value that the device wrote and the host has not.
struct Version {
  TensorId tensor{};
  std::uint32_t write = 0;          ///< operation
  std::uint32_t first_absence = 0;  ///< these follow one another
  std::uint32_t absences = 0;
  // The decision:
  std::uint32_t rank = 0;    ///< of the copies from one gap on: the lower, the sooner
  std::uint32_t copied = 0;  ///< gap from which the host gets it, counted like `write`; 0: as soon as it is written
};

inline constexpr std::uint32_t no_version = 0xffffffff;
inline constexpr std::uint32_t no_absence = 0xffffffff;

/// What the operations leave over for copies: bytes of room, and time of the links.
struct OverlapLedger {
  explicit OverlapLedger(const PlanningCase& planning);

  const PlanningCase& planning;
  std::vector<Absence> absences;  ///< by tensor; an arrival first, then in the order of its uses from a write on
  std::vector<Version> versions;
  std::vector<std::uint32_t> first_use;  ///< per tensor, in the list below
  /// Per use of each tensor the absence behind it, or no_absence: what is not needed again goes for good.
  std::vector<std::uint32_t> absence_after;
  std::vector<std::uint32_t> arrival;              ///< per tensor, or no_absence
  std::vector<std::chrono::nanoseconds> copy_in;   ///< per tensor
  std::vector<std::chrono::nanoseconds> copy_out;  ///< per tensor
  std::vector<std::uint32_t> shortest_first;       ///< absences, those that hold room for the least time first
  /// Per operation the time that copies may take until the next one starts: its duration, and a stall that is
  /// known to follow.
  std::vector<std::chrono::nanoseconds> time;
};

}  // namespace swapmm::planning
