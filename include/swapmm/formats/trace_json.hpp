// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm {

/// Reads one text of format `swapmm-trace` (docs/formats.md), to the end of the stream, and checks it with
/// check_trace(). A Problem names field and index. Linear; at most about four times the size of the text in memory
/// (the text itself not counted), up to eight times where the stream cannot tell its length, as a pipe.
[[nodiscard]] SWAPMM_EXPORT Result<Trace> read_trace(std::istream& in);
/// The same, of a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Trace> read_trace(std::string_view text);

/// Writes what read_trace() reads back as an equal trace, one tensor or operation a line. Names that are not UTF-8
/// or too long are made so (U+FFFD, cut at limits::name_bytes). Whether writing succeeded, the stream knows.
SWAPMM_EXPORT void write_trace(std::ostream& out, const Trace& trace);

}  // namespace swapmm
