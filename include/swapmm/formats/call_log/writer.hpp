// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include <swapmm/ir/calls/call.hpp>

// Internal: writes the format `swapmm-log` (docs/formats.md). Each function appends one whole record, or several, to a
// text. A log is these texts one after the other.

namespace swapmm::call_log {

/// The first line and the first record.
void append_begin(std::string& out, std::uint64_t process, bool has_content);
/// The content of a call's host data, and the call. What is beyond the limits of the format is left out: names are cut,
/// longer sources are only told by their digest, and sizes that a program should not have named are told as the
/// largest.
void append_call(std::string& out, const calls::Call& call);
/// What became known later: the time that a command took on the device.
void append_duration(std::string& out, std::uint64_t sequence, std::chrono::nanoseconds duration);
/// The digest of what a command brought to the host.
void append_digest(std::string& out, std::uint64_t sequence, std::string_view digest);
/// Host data of a call, before it: a log that ends early then has all of it, or nothing of the call.
void append_content(std::string& out, std::uint64_t sequence, std::string_view content);
/// A piece of it, of at most content_piece bytes.
void append_content_piece(std::string& out, std::uint64_t sequence, std::uint64_t position, std::string_view bytes);
/// The process came to its exit. Calls of destructors may follow.
void append_end(std::string& out);

/// All of a log.
void write_call_log(std::ostream& out, const calls::CallLog& log);

}  // namespace swapmm::call_log
