// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm {

/// Reads a trace in format `swapmm-trace` (docs/formats.md) to the end of the stream, and checks it with check_trace().
/// A Problem names field and index. Linear time. Takes at most about four times the size of the text in memory, in
/// addition to the text; up to eight times if the stream does not know its length, such as a pipe.
[[nodiscard]] SWAPMM_EXPORT Result<Trace> read_trace(std::istream& in);
/// The same, from a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Trace> read_trace(std::string_view text);

/// Writes a trace so that read_trace() gives an equal one, with one tensor or operation per line. In names, bytes that
/// are not UTF-8 become U+FFFD, and what exceeds limits::name_bytes is cut. Check the stream for errors afterwards.
SWAPMM_EXPORT void write_trace(std::ostream& out, const Trace& trace);

}  // namespace swapmm
