// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>

#include "faults/loop/loop.hpp"

namespace swapmm::test {

/// Of all loops so far, by class and way.
class FaultTable {
 public:
  /// `new_calls`: the calls that failed are others than those added before.
  void add(const FaultKind& kind, const LoopResult& result, bool new_calls);
  [[nodiscard]] std::size_t runs() const { return runs_; }
  [[nodiscard]] const Reached& reached() const { return reached_; }
  void print(std::ostream& out) const;

 private:
  struct Cell {
    std::size_t calls = 0;
    std::size_t hidden = 0;
  };
  std::map<FaultKind, Cell> cells_;
  Reached reached_;
  std::size_t runs_ = 0;
};

}  // namespace swapmm::test
