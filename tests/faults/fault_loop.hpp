// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loop over every call that can fail: n = 1, 2, 3, ... until nothing fires any more, for a class and a mode.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "faults/scenarios.hpp"

namespace swapmm::test {

/// The kinds of faults: what is broken, and how.
struct FaultKind {
  Fault::Source source;
  FaultClass fault_class;  // of a backend
  FaultMode mode;

  [[nodiscard]] std::string row() const;     ///< the class
  [[nodiscard]] std::string column() const;  ///< the mode
};
[[nodiscard]] const std::vector<FaultKind>& fault_kinds();

/// One run. Returns its problems, and whether the fault fired.
struct RunResult {
  bool fired = false;
  bool hidden = false;
  std::vector<std::string> problems;
};
/// What the loop over one kind in one scenario saw.
struct LoopResult {
  std::size_t sites = 0;   ///< values of n that fired
  std::size_t runs = 0;    ///< with a fault that fired
  std::size_t hidden = 0;  ///< of them without an error to anybody
  std::vector<std::string> problems;

  void add(RunResult run);
};

/// One round: the device's steps in orders drawn from `round`. With a stride above 1 most values of n are left out.
[[nodiscard]] LoopResult loop(const Scenario& scenario, const FaultKind& kind, std::uint64_t round,
                              std::uint64_t stride = 1);

[[nodiscard]] RunResult run_with_fault(const Scenario& scenario, const Fault& fault, std::uint64_t seed,
                                       AllocationSites* sites = nullptr);

/// Of all loops so far, by class and mode.
class FaultTable {
 public:
  /// `new_places`: the places are others than those added before.
  void add(const FaultKind& kind, const LoopResult& result, bool new_places);
  [[nodiscard]] std::size_t runs() const;
  [[nodiscard]] std::size_t sites(const FaultKind& kind) const;
  void print(std::ostream& out) const;

 private:
  struct Cell {
    FaultKind kind;
    std::size_t sites = 0;
    std::size_t runs = 0;
    std::size_t hidden = 0;
  };
  [[nodiscard]] const Cell* find(const FaultKind& kind) const;
  std::vector<Cell> cells_;
};

}  // namespace swapmm::test
