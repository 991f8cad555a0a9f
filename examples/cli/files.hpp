// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <swapmm/ir/calls/call.hpp>
#include <swapmm/ir/calls/run.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/machine.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/v2/plan.hpp>

// Files in and out. "-" is stdin or stdout. All throw a Failure that begins with the file's name: ExitCode::io where
// something cannot be read or written, ExitCode::bad_file where it is not what it should be.

namespace swapmm::cli {

/// The text of a file. At most one byte more than the formats allow: whoever reads it refuses it then. Stdin is read
/// once: ExitCode::usage where two files are "-".
[[nodiscard]] std::string load_text(const std::string& path);

[[nodiscard]] Trace load_trace(const std::string& path);
/// Also one that only version 2 of the format can say; load_trace() and trace_from() refuse those.
[[nodiscard]] Trace load_any_trace(const std::string& path);

/// A plan that passes validate() for that trace; ExitCode::no with the first violations where it does not.
[[nodiscard]] Plan load_valid_plan(const std::string& path, const Trace& trace);
[[nodiscard]] Plan valid_plan_from(const std::string& path, std::string_view text, const Trace& trace);

/// What a text says that it is, by its field "format".
enum class Format : std::uint8_t { trace, plan };
[[nodiscard]] Format format_of(const std::string& path, std::string_view text);
[[nodiscard]] Trace trace_from(const std::string& path, std::string_view text);
[[nodiscard]] Plan plan_from(const std::string& path, std::string_view text);
[[nodiscard]] Machine machine_from(const std::string& path, std::string_view text);

/// Whether a text says that it is of version 2, or of a later one: those are refused by what reads version 2.
[[nodiscard]] bool is_version_2(std::string_view text);
/// A machine or a plan of version 2, or one of version 1 as version 2.
[[nodiscard]] v2::Machine machine_v2_from(const std::string& path, std::string_view text);
[[nodiscard]] v2::Plan plan_v2_from(const std::string& path, std::string_view text);
/// The same, and the plan passes v2::validate() for that trace.
[[nodiscard]] v2::Plan valid_plan_v2_from(const std::string& path, std::string_view text, const Trace& trace);

/// True if the file begins as a log of calls does. Stdin never does: a log may be larger than what it may hold.
[[nodiscard]] bool is_log(const std::string& path);
/// A log of calls, with the content of host data if `content`.
[[nodiscard]] calls::CallLog load_log(const std::string& path, bool content);
/// What its calls do with memory.
[[nodiscard]] calls::Run run_from(const std::string& path, const calls::CallLog& log);

/// ExitCode::usage where one would overwrite another: of the outputs, those that are "-" and the answer as JSON are
/// stdout; others may be neither the same file nor one that is read.
void check_outputs(bool json, std::initializer_list<std::string_view> paths,
                   std::initializer_list<std::string_view> inputs);

/// ExitCode::io if there is no folder for the file, or if it is a folder: what takes long must not be lost then.
void check_can_be_written(const std::string& path);

/// Writes the whole text.
void save_text(const std::string& path, std::string_view text);

}  // namespace swapmm::cli
