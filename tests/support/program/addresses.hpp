// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/report.hpp>

#include "support/program/device.hpp"

namespace swapmm::test {

/// The places of all tensors and work areas, per iteration. A followed plan is address-stable: each operation sees
/// those of the same place in the cycle before.
class AddressHistory {
 public:
  void begin_iteration() { iterations_.emplace_back(); }
  void add(const ProgramPlace& place) { iterations_.back().push_back(place); }

  /// To be called when an iteration has ended, with the report of then: what does not hold, or nothing.
  [[nodiscard]] std::string check(const Report& report, std::string_view iteration);

 private:
  std::vector<std::vector<ProgramPlace>> iterations_{1};  // the first one: before any iteration
  std::size_t stable_from_ = 0;
  std::vector<std::size_t> periods_;  // that the plan followed since then may have
  Report last_report_;
};

}  // namespace swapmm::test
