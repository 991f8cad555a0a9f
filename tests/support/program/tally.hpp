// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>

#include "support/program/oracle.hpp"

namespace swapmm::test {

/// What was seen in many programs. Plain numbers, so that processes can share it.
struct ProgramTally {
  std::uint64_t programs = 0;
  std::uint64_t with_plans = 0;  ///< programs that followed one
  std::uint64_t that_drop = 0;   ///< programs of which a read was refused with DroppedValue
  std::uint64_t operations = 0;
  std::uint64_t swaps = 0;
  std::uint64_t iterations_on_demand = 0;
  std::uint64_t iterations_followed = 0;
  std::uint64_t divergences = 0;
  std::uint64_t budget_changes = 0;
  std::uint64_t sampled_rounds = 0;
  std::uint64_t plans_remade = 0;
  std::uint64_t with_files = 0;                ///< programs of which values were in a file
  std::uint64_t with_neighbours = 0;           ///< programs of which values were on a neighbour
  std::uint64_t with_encodings = 0;            ///< programs of which values were encoded on their way
  std::uint64_t that_plan_encodings = 0;       ///< with a plan that encodes values
  std::uint64_t that_tell_neighbours = 0;      ///< with a plan that tells neighbours and host apart
  std::uint64_t that_tell_files = 0;           ///< with a plan that tells host and file apart
  std::uint64_t that_replay = 0;               ///< with a plan that runs operations again
  std::uint64_t with_host_views = 0;           ///< programs that opened some
  std::uint64_t that_follow_beside_views = 0;  ///< of those: that followed a plan
  std::uint64_t view_faults = 0;               ///< touches of host views that waited
  std::uint64_t view_bytes_in = 0;             ///< copied from host views to tensors
  std::uint64_t view_bytes_out = 0;            ///< copied from tensors to host views
  std::uint64_t outlived_looks = 0;            ///< accesses through host views that outlived their tensor
  std::uint64_t with_company = 0;              ///< programs with others beside them
  std::uint64_t that_share_plans = 0;          ///< of those: that have joint plans
  std::uint64_t turns_taken = 0;               ///< copies that waited for one of another device
  std::uint64_t turns_missed = 0;              ///< that could not
  std::uint64_t refused = 0;
  std::uint64_t outlived_refused = 0;
  std::uint64_t too_large = 0;
  std::uint64_t too_large_inside = 0;
  std::uint64_t too_large_followed = 0;
  std::uint64_t too_large_in_flight = 0;
  std::uint64_t repeated = 0;                ///< programs that were run twice, for the same steps
  std::uint64_t without_plans = 0;           ///< programs that were run without plans too, for the same bytes
  std::uint64_t plans_advised = 0;           ///< saved as text and loaded again
  std::uint64_t plans_mutated = 0;           ///< loaded after something in them was changed
  std::uint64_t mutated_refused = 0;         ///< of those, when they were loaded; others are refused later, or followed
  std::uint64_t iterations_changed = 0;      ///< followed in runs with changed plans
  std::array<std::uint64_t, 6> orders{};     ///< programs by simulated::Order
  std::array<std::uint64_t, 12> planners{};  ///< plans that were known in the end, by their place in planners()

  void add(const TestProgram& program, const Scrutiny& scrutiny, const Verdict& verdict);
  void add(const ProgramTally& other);
};

/// For a person.
std::ostream& operator<<(std::ostream& out, const ProgramTally& tally);

}  // namespace swapmm::test
