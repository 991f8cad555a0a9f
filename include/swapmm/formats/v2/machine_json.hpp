// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2 {

/// Reads a machine in format `swapmm-machine` (docs/formats.md) of version 2, or of version 1 as from_version_1()
/// converts it, to the end of the stream, and checks it with check_machine(). A Problem names field and index.
[[nodiscard]] SWAPMM_EXPORT Result<Machine> read_machine(std::istream& in);
/// The same, from a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Machine> read_machine(std::string_view text);

/// Writes a machine in version 2 of the format so that read_machine() gives an equal one, with one memory, engine,
/// capacity or link per line. The machine must pass check_machine(). A name of the machine that is not valid UTF-8 or
/// too long is replaced by a valid one.
SWAPMM_EXPORT void write_machine(std::ostream& out, const Machine& machine);

}  // namespace swapmm::v2
