// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <swapmm/formats/json/reader.hpp>
#include <swapmm/plan/machine.hpp>

// Internal: a machine as a part of a text, on its own or inside a plan.

namespace swapmm::json {

/// Describes a machine. Values that are read are stored in `machine`, which must outlive the result. Inside a plan,
/// `format` and `version` may be missing.
[[nodiscard]] Object machine_fields(Machine& machine, Field::Presence header);

void append_machine(std::string& out, const Machine& machine);

}  // namespace swapmm::json
