// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

// The built command, run with arguments as a shell would give them.

namespace swapmm::test {

/// A file in a folder of this process, gone at its end.
[[nodiscard]] std::string scratch_file(const std::string& name);

struct Outcome {
  int code = -1;   ///< -1: it did not end by itself
  int signal = 0;  ///< that ended it
  std::string out;
  std::string err;
};

/// stderr may be a terminal.
enum class Stderr { file, terminal };

[[nodiscard]] Outcome run_program(const std::vector<std::string>& arguments, const std::string& in = "",
                                  Stderr err = Stderr::file, const std::string& out_path = scratch_file("stdout"));

/// Runs it with --json; checks that it ends with that code and prints one JSON object, and gives that.
[[nodiscard]] boost::json::object run_json(std::vector<std::string> arguments, int code = 0);

/// Checks that it ends with that code, prints nothing on stdout, and names each of the texts in one line on stderr.
void check_refused(const std::vector<std::string>& arguments, int code, const std::vector<std::string>& texts);

/// A number in an answer: number(answer, "predicted.iteration_ns"). Fails where there is none.
[[nodiscard]] double number(const boost::json::object& answer, std::string_view path);
[[nodiscard]] std::string text_at(const boost::json::object& answer, std::string_view path);

[[nodiscard]] std::string contents(const std::string& path);
void write_contents(const std::string& path, std::string_view text);

/// Of tests/data.
[[nodiscard]] std::string two_weights();
[[nodiscard]] std::string lstm();

/// A plan for two_weights() with room for one of its tensors, and 1 GB/s; `name` is its file.
[[nodiscard]] std::string plan_for_two_weights(const std::string& name);
[[nodiscard]] std::vector<std::string> room_for_one();

}  // namespace swapmm::test
