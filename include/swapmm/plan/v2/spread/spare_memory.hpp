// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// A machine on which memories that operations need only a part of are two: the first bytes for the operations, and the
/// rest as a store for other devices.
class SpareMemory {
 public:
  /// None if no memory has much to spare that another device is linked to, both ways.
  [[nodiscard]] static std::optional<SpareMemory> find(const Trace& trace, const Machine& machine);

  [[nodiscard]] const Machine& machine() const { return divided_; }
  /// A plan for this machine as one for the machine that it was made of, with its prediction.
  [[nodiscard]] Plan for_whole(const Trace& trace, Plan plan) const;

 private:
  /// Where the bytes are of a memory that the whole machine does not have.
  struct Spare {
    MemoryId memory{};
    Bytes offset;
  };

  explicit SpareMemory(const Machine& machine) : whole_(machine), divided_(machine) {}
  void divide(MemoryId memory, Bytes needed);

  Machine whole_;
  Machine divided_;
  std::vector<Spare> spares_;        // of the memories behind those of the whole machine
  std::vector<LinkId> link_copied_;  // of the links behind those of the whole machine
};

}  // namespace swapmm::v2::planning
