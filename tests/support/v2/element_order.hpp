// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

#include "support/v2/part_accesses.hpp"

namespace swapmm::test::general {

/// Whether the command has no engine.
[[nodiscard]] inline bool takes_no_time(const swapmm::v2::Command& command) {
  return command.kind == swapmm::v2::CommandKind::allocate || command.kind == swapmm::v2::CommandKind::release;
}

/// Which elements of a plan wait for which, in so many iterations: operations, then commands, of one iteration after
/// the other. Written from docs/formats.md.
class ElementOrder {
 public:
  ElementOrder(const Trace& trace, const swapmm::v2::Plan& plan, const Parts& parts, std::size_t iterations);

  /// Elements of an iteration.
  [[nodiscard]] std::size_t steps() const { return steps_; }

 private:
  void add_command(const swapmm::v2::Command& command, std::size_t step);
  /// In all iterations k: `step` of iteration k + `from_shift` comes before `next` of iteration k + `to_shift`.
  void add(std::size_t step, std::int64_t from_shift, std::size_t next, std::int64_t to_shift);
  /// For each element all that takes time and has ended when it starts. If that of one contains that of another, it is
  /// never earlier; if both are the same, both always happen at the same time.
  void find_order(const swapmm::v2::Plan& plan);

  std::size_t n_;
  std::size_t steps_;
  std::int64_t iterations_;

 public:
  /// What decides about commands that happen at the same time.
  struct AtOneTime {
    std::size_t before = 0;   ///< how much that takes time has ended
    std::uint32_t chain = 0;  ///< how many that always happen at that time wait for one another, up to this one
  };
  std::vector<std::vector<std::size_t>> followers;
  std::vector<int> missing;  ///< how many it waits for
  std::vector<AtOneTime> at_one_time;
};

}  // namespace swapmm::test::general
