// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm {

/// Reads a machine in format `swapmm-machine` (docs/formats.md) to the end of the stream, and checks it with
/// check_machine(). A Problem names the field.
[[nodiscard]] SWAPMM_EXPORT Result<Machine> read_machine(std::istream& in);
/// The same, from a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Machine> read_machine(std::string_view text);

/// Writes a machine so that read_machine() gives an equal one. A name that is not valid UTF-8 or too long is replaced
/// by a valid one.
SWAPMM_EXPORT void write_machine(std::ostream& out, const Machine& machine);

}  // namespace swapmm
