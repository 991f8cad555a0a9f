// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>
#include <utility>
#include <vector>

#include <swapmm/formats/call_log/reader.hpp>
#include <swapmm/formats/json/reader.hpp>
#include <swapmm/formats/machine_json.hpp>
#include <swapmm/formats/plan_json.hpp>
#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/machine_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/validate.hpp>

#include "failure.hpp"

namespace swapmm::cli {
namespace {

/// Of errno, which the call that failed has set.
[[noreturn]] void fail(const std::string& path, const std::string& what) {
  const int error = errno;
  throw Failure(ExitCode::io,
                path + ": cannot be " + what + (error != 0 ? ": " + std::generic_category().message(error) : ""));
}

std::string read_all(std::istream& in) {
  std::string text;
  std::array<char, 65536> piece{};
  while (in && text.size() <= limits::file_bytes) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

std::string load_stdin() {
  static bool is_read = false;
  if (std::exchange(is_read, true)) throw Failure(ExitCode::usage, "only one file can be \"-\": stdin is read once");
  errno = 0;
  std::string text = read_all(std::cin);
  if (std::ferror(stdin) != 0) fail("stdin", "read");
  return text;
}

std::ifstream opened(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) {
    throw Failure(ExitCode::io, path + ": cannot be read: it is a folder");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "opened");
  return file;
}

template <class T>
T taken(const std::string& path, Result<T> result) {
  if (!result) throw Failure(ExitCode::bad_file, path + ": " + result.problem().message);
  return *std::move(result);
}

void check_valid(const std::string& path, const std::vector<Violation>& violations) {
  if (violations.empty()) return;
  throw Failure(ExitCode::no, path + ": not a valid plan for this trace: " + violations.front().message +
                                  " (`swapmm check` tells all)");
}

}  // namespace

std::string load_text(const std::string& path) {
  if (path == "-") return load_stdin();
  std::ifstream file = opened(path);
  std::string text = read_all(file);
  if (file.bad()) fail(path, "read");
  return text;
}

Trace trace_from(const std::string& path, std::string_view text) {
  Trace trace = taken(path, read_trace(text));
  if (!needs_version_2(trace)) return trace;
  throw Failure(ExitCode::bad_file,
                path +
                    ": it has engines, ranges, forms or operations that may run again, which only the "
                    "commands plan, fit, compare, check, explain, simulate and, with a plan, show know "
                    "(docs/formats.md, version 2)");
}
Plan plan_from(const std::string& path, std::string_view text) { return taken(path, read_plan(text)); }
Machine machine_from(const std::string& path, std::string_view text) { return taken(path, read_machine(text)); }

bool is_version_2(std::string_view text) { return json::find_version(text).value_or(1) >= 2; }
v2::Machine machine_v2_from(const std::string& path, std::string_view text) {
  return taken(path, v2::read_machine(text));
}
v2::Plan plan_v2_from(const std::string& path, std::string_view text) { return taken(path, v2::read_plan(text)); }

v2::Plan valid_plan_v2_from(const std::string& path, std::string_view text, const Trace& trace) {
  v2::Plan plan = plan_v2_from(path, text);
  check_valid(path, v2::validate(trace, plan));
  return plan;
}

Trace load_trace(const std::string& path) { return trace_from(path, load_text(path)); }

Trace load_any_trace(const std::string& path) { return taken(path, read_trace(load_text(path))); }

Plan load_valid_plan(const std::string& path, const Trace& trace) {
  return valid_plan_from(path, load_text(path), trace);
}

Plan valid_plan_from(const std::string& path, std::string_view text, const Trace& trace) {
  Plan plan = plan_from(path, text);
  check_valid(path, validate(trace, plan));
  return plan;
}

Format format_of(const std::string& path, std::string_view text) {
  Format format = Format::trace;
  const json::Word word{{"swapmm-trace", "swapmm-plan"},
                        [&](std::size_t i) { format = i == 0 ? Format::trace : Format::plan; }};
  json::Object document;
  document.fields = {json::required("format", word)};
  taken(path, json::read(text, document));
  return format;
}

bool is_log(const std::string& path) {
  // A JSON text begins with another letter.
  if (path == "-") return std::cin.peek() == call_log::first_letter;
  std::ifstream file = opened(path);
  std::string begin(16, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return call_log::is_call_log(begin);
}

calls::CallLog load_log(const std::string& path, bool content) {
  if (path == "-") return taken(path, call_log::read_call_log(std::cin, {content}));
  std::ifstream file = opened(path);
  calls::CallLog log = taken(path, call_log::read_call_log(file, {content}));
  if (file.bad()) fail(path, "read");
  return log;
}

calls::Run run_from(const std::string& path, const calls::CallLog& log) { return taken(path, calls::resolve(log)); }

void check_outputs(bool json, std::initializer_list<std::string_view> paths,
                   std::initializer_list<std::string_view> inputs) {
  const auto wanted = std::count(paths.begin(), paths.end(), "-") + (json ? 1 : 0);
  if (wanted > 1) throw Failure(ExitCode::usage, "stdout takes one thing: give the others a file");
  std::vector<std::filesystem::path> taken;
  const auto is_taken = [&](const std::filesystem::path& file) {
    return std::ranges::any_of(taken, [&](const std::filesystem::path& other) {
      std::error_code unknown;
      return file == other || std::filesystem::equivalent(file, other, unknown);
    });
  };
  const auto whole = [](std::string_view path) { return std::filesystem::absolute(path).lexically_normal(); };
  for (const std::string_view path : inputs) {
    if (!path.empty() && path != "-") taken.push_back(whole(path));
  }
  for (const std::string_view path : paths) {
    if (path.empty() || path == "-") continue;
    const std::filesystem::path file = whole(path);
    std::error_code unknown;
    if (std::filesystem::is_character_file(file, unknown)) continue;  // /dev/null
    if (is_taken(file)) {
      throw Failure(ExitCode::usage, std::string(path) + " is an input, or takes another output: give another file");
    }
    taken.push_back(file);
  }
}

void check_can_be_written(const std::string& path) {
  const std::filesystem::path file = std::filesystem::absolute(path);
  std::error_code unknown;
  if (!std::filesystem::is_directory(file.parent_path(), unknown)) {
    throw Failure(ExitCode::io, path + ": there is no folder " + file.parent_path().string());
  }
  if (std::filesystem::is_directory(file, unknown)) throw Failure(ExitCode::io, path + ": it is a folder");
}

void save_text(const std::string& path, std::string_view text) {
  const auto size = static_cast<std::streamsize>(text.size());
  if (path == "-") {
    std::cout.write(text.data(), size);
    return;
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  if (!file) fail(path, "opened");
  file.write(text.data(), size);
  file.close();
  if (!file) fail(path, "written");
}

}  // namespace swapmm::cli
