// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/calls/call.hpp>

// Internal: reads the format `swapmm-log` (docs/formats.md).

namespace swapmm::call_log {

struct ReadOptions {
  bool content = false;  ///< keep the content of host data; otherwise it is checked and dropped
};

/// With which every log begins, and no JSON text.
inline constexpr char first_letter = 's';
/// True if the text begins as a log does.
[[nodiscard]] bool is_call_log(std::string_view text);

/// Reads a log to its end, or to the last whole record if the end is missing (CallLog::incomplete_bytes). Strict: the
/// first record that is not what it should be is a Problem with its number and byte. Takes one record at a time; what
/// it returns takes at most some 600 bytes for each call, and what lists and texts have.
[[nodiscard]] Result<calls::CallLog> read_call_log(std::istream& in, const ReadOptions& options = {});

}  // namespace swapmm::call_log
