// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string_view>

#include <swapmm/base/export.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm {

/// Reads a trace in format `swapmm-trace` of version 1 or 2 (docs/formats.md) to the end of the stream, and checks it
/// with check_trace(). Trace::engines are in the order in which the operations first name them. A Problem names field
/// and index. Linear time. Takes at most about four times the size of the text in memory, in addition to the text. A
/// stream that cannot go back, such as a pipe, is read into memory first.
[[nodiscard]] SWAPMM_EXPORT Result<Trace> read_trace(std::istream& in);
/// The same, from a text in memory.
[[nodiscard]] SWAPMM_EXPORT Result<Trace> read_trace(std::string_view text);

/// Writes a trace so that read_trace() gives an equal one, with one tensor or operation per line; in version 1 of the
/// format unless needs_version_2(). In names of the trace, tensors and operations, bytes that are not UTF-8 become
/// U+FFFD, and what exceeds limits::name_bytes is cut. A trace that needs version 2 must pass check_trace(). Its
/// engines come back in the order in which the operations first name them. Check the stream for errors afterwards.
SWAPMM_EXPORT void write_trace(std::ostream& out, const Trace& trace);

}  // namespace swapmm
