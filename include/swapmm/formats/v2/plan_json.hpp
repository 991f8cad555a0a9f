// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2 {

/// Reads a plan in format `swapmm-plan` (docs/formats.md) of version 2, or of version 1 as from_version_1() converts
/// it, to the end of the stream, and checks everything that needs no trace: that each command has the fields that its
/// kind needs, that names exist, and check_plan(). Such a plan may still be invalid for its trace; validate() checks
/// that. Plan::forms are in the order in which `initial`, then `commands`, first name them. About linear time. Takes at
/// most about six times the size of the text in memory, in addition to the text. A stream that cannot go back, such as
/// a pipe, is read into memory first. A Problem names field and index.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> read_plan(std::istream& in);
/// The same, from a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> read_plan(std::string_view text);

/// Writes a plan in version 2 of the format so that read_plan() gives an equal one, with one place or command per line.
/// The plan must pass check_plan(), and the lists of its prediction must be empty or have all links and memories. Its
/// forms come back in the order described above. Names that are not valid UTF-8 or too long are replaced by valid ones.
SWAPMM_EXPORT void write_plan(std::ostream& out, const Plan& plan);

}  // namespace swapmm::v2
