// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/machine.hpp>

namespace swapmm {

/// Reads one text of format `swapmm-machine` (docs/formats.md), to the end of the stream, and checks it with
/// check_machine(). A Problem names the field.
[[nodiscard]] SWAPMM_EXPORT Result<Machine> read_machine(std::istream& in);
/// The same, of a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Machine> read_machine(std::string_view text);

/// Writes what read_machine() reads back as an equal machine. A name that is not UTF-8 or too long is made so.
SWAPMM_EXPORT void write_machine(std::ostream& out, const Machine& machine);

}  // namespace swapmm
