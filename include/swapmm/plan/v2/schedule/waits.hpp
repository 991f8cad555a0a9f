// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// A plan whose commands run one after another, between the operations.
struct SerialPlan {
  /// Without waits. Tensors are not divided, and plain.
  std::vector<Command> commands;
  /// For each command, the operation before which it runs; n for those behind all operations. Ascending.
  std::vector<std::uint32_t> before;
  std::vector<Place> initial;
};

/// Gives each command the waits that it needs: for what puts, uses or gives back the places that it changes, and for
/// what puts the values that it reads; and a position, if its engine runs operations, too. Everything else may run at
/// the same time. The serial plan is right if its steps run one after another, iteration after iteration; then the
/// result is right, too. Takes steps times their waits.
void write_waits(const Trace& trace, const Machine& machine, SerialPlan& plan);

/// Writes the waits of a plan anew whose commands are in an order in which they can run one after another, between the
/// operations that they wait for and those that wait for them. Tensors are not divided, and plain.
void write_waits(const Trace& trace, Plan& plan);

}  // namespace swapmm::v2::planning
