// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/linked_stores.hpp>
#include <swapmm/plan/problem/planning_case.hpp>

namespace swapmm::planning {

/// A stretch of operations between two uses of a value, or from its last use on for as long as it lingers. Over it the
/// tensor stays, or goes out and comes back (if the value lingers, it only goes out, and `returns` is `end`). Slots
/// count operations from the use before the stretch on; slots from n on belong to the next iteration.
struct Absence {
  TensorId tensor{};
  std::uint32_t first = 0;    ///< the first operation without the tensor in its bundle; for a new input: available_from
  std::uint32_t end = 0;      ///< the operation that needs it again
  std::uint32_t version = 0;  ///< position in OverlapLedger::versions; no_version if the host has the value anyway
  bool is_arrival = false;    ///< the first arrival of an input, over which the tensor cannot stay
  bool lingers = false;  ///< the value lingers until `end`, and nothing needs it there: if it goes, it never returns
  bool to_overwrite = false;  ///< it lingers until the operation at `end` overwrites it, and so may not be lost before
  // The decision:
  bool stays = false;
  std::uint32_t leaves = 0;   ///< gap in which the tensor leaves; not before first
  std::uint32_t returns = 0;  ///< gap in which it returns; from leaves to end
  std::uint32_t gone = 0;     ///< gap; no other tensor gets its bytes before
  std::uint32_t queued = 0;   ///< gap that determines the place of its swap-in in the queue
  std::uint8_t store = 0;     ///< with LinkedStores: where it is, if it has no version; the same for all of a tensor
};

/// A value that the device wrote and that the host does not have.
struct Version {
  TensorId tensor{};
  std::uint32_t write = 0;          ///< operation that wrote it
  std::uint32_t first_absence = 0;  ///< first of its absences, which are consecutive
  std::uint32_t absences = 0;
  // The decision:
  std::uint32_t rank = 0;  ///< order among the copies from one gap on; lower is sooner
  /// Gap from which it is copied to the host, counted like `write`. 0: as soon as it is written.
  std::uint32_t copied = 0;
  std::uint8_t store = 0;  ///< with LinkedStores: where it is copied to
};

inline constexpr std::uint32_t no_version = 0xffffffff;
inline constexpr std::uint32_t no_absence = 0xffffffff;

/// The resources that the operations leave for copies: bytes of room, and time of the links.
struct OverlapLedger {
  explicit OverlapLedger(const PlanningCase& planning, const LinkedStores* stores = nullptr);

  const PlanningCase& planning;
  const LinkedStores* stores = nullptr;  ///< none: the machine's host alone
  std::vector<Absence> absences;         ///< by tensor; an arrival first, then in the order of its uses from a write on
  std::vector<Version> versions;
  std::vector<std::uint32_t> first_use;  ///< per tensor: position of its first use in absence_after
  /// Per use of each tensor: the absence after it; no_absence if the value is not needed again.
  std::vector<std::uint32_t> absence_after;
  std::vector<std::uint32_t> arrival;              ///< per tensor, or no_absence
  std::vector<std::chrono::nanoseconds> copy_in;   ///< per tensor
  std::vector<std::chrono::nanoseconds> copy_out;  ///< per tensor
  std::vector<std::uint32_t> shortest_first;       ///< absences, sorted by the time for which they hold room
  /// The time of the copy with which a tensor returns from an absence.
  [[nodiscard]] std::chrono::nanoseconds copy_back(const Absence& absence) const {
    return absence.lingers ? std::chrono::nanoseconds{0} : copy_in[index(absence.tensor)];
  }
  /// Per operation: the time that copies may take until the next one starts. This is its duration, plus a stall that is
  /// known to follow.
  std::vector<std::chrono::nanoseconds> time;
};

}  // namespace swapmm::planning
