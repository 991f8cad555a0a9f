// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/plan/plan.hpp>

namespace swapmm {

/// Reads one text of format `swapmm-plan` (docs/formats.md), to the end of the stream. Checks everything that needs
/// no trace: the machine, the form of the digest, that commands exist which others wait for, that offsets are
/// aligned and within the budget, that no tensor is on the device twice at the start. A plan that was read is not
/// yet a valid one: validate() says so. Linear; at most about four times the size of the text in memory (the text
/// itself not counted). A Problem names field and index.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> read_plan(std::istream& in);
/// The same, of a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Plan> read_plan(std::string_view text);

/// Writes what read_plan() reads back as an equal plan, one command a line. Names that are not UTF-8 or too long are
/// made so.
SWAPMM_EXPORT void write_plan(std::ostream& out, const Plan& plan);

}  // namespace swapmm
