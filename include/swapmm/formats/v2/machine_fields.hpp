// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <vector>

#include <swapmm/formats/json/name_table.hpp>
#include <swapmm/formats/json/reader.hpp>
#include <swapmm/plan/v2/machine.hpp>

// Internal: a machine of version 2 as a part of a text, on its own or inside a plan.

namespace swapmm::v2::formats {

/// A machine that is being read. Lists may come in any order, so that ids are numbers of names until its end.
struct MachineTarget {
  Machine machine;
  json::NameTable memories;
  json::NameTable engines;
  json::NameTable capacities;
  std::vector<CapacityId> shared;  ///< capacities of the current link; copied when complete
};

/// Describes a machine on its own, in a text of version 1 or 2. `target` must outlive the result.
[[nodiscard]] json::Object machine_document(MachineTarget& target);
/// Describes a machine inside a plan, in which `format` and `version` may be missing.
[[nodiscard]] json::Object machine_in_plan(MachineTarget& target);

/// Writes a machine as an object, without a newline behind it.
void write_machine_object(std::ostream& out, const Machine& machine);

}  // namespace swapmm::v2::formats
