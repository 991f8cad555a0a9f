// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// Reads a plan in format `swapmm-plan` (docs/formats.md) to the end of the stream, and checks everything that needs no
/// trace: the machine, the form of the digest, that all commands exist that others wait for, that offsets are aligned
/// and within the budget, and that no tensor is on the device twice at the start. Such a plan may still be invalid for
/// its trace; validate() checks that. Linear time. Takes at most about four times the size of the text in memory, in
/// addition to the text. A Problem names field and index.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> read_plan(std::istream& in);
/// The same, from a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> read_plan(std::string_view text);

/// Writes a plan so that read_plan() gives an equal one, with one command per line. Names that are not valid UTF-8 or
/// too long are replaced by valid ones.
SWAPMM_EXPORT void write_plan(std::ostream& out, const Plan& plan);

}  // namespace swapmm
