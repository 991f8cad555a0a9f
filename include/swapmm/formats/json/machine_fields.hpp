// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <swapmm/formats/json/reader.hpp>
#include <swapmm/plan/machine.hpp>

// A machine as a part of a text: on its own, and inside a plan. Not part of the public interface.

namespace swapmm::json {

/// Describes a machine; what is read goes to `machine`, which must outlive the result. Inside a plan, `format` and
/// `version` may be left out.
[[nodiscard]] Object machine_fields(Machine& machine, Field::Presence header);

void append_machine(std::string& out, const Machine& machine);

}  // namespace swapmm::json
