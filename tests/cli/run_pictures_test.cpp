// SPDX-License-Identifier: Apache-2.0
// swapmm run: the files that show what ran on the device, and lines of progress.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "program.hpp"

using namespace swapmm::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> words_of(std::vector<std::string> options, const std::vector<std::string>& program) {
  options.insert(options.begin(), "run");
  options.emplace_back("--");
  options.insert(options.end(), program.begin(), program.end());
  return options;
}

std::vector<std::string> never(std::vector<std::string> options) {
  return words_of(std::move(options), {"/bin/sh", "-c", "touch " + scratch_file("pictures-started")});
}

/// A variable of the environment, for as long as this exists.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { REQUIRE(setenv(name, value.c_str(), 1) == 0); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("run refuses pictures that have no place, before it starts anything") {
  const std::string missing = scratch_file("no-such-folder/trace.json");
  for (const std::string option : {"--trace-out", "--svg"}) {
    check_refused(never({option, missing}), 2, {option + ": there is no folder " + scratch_file("no-such-folder")});
    check_refused(never({option, scratch_file("no-%p/trace.json")}), 2, {"there is no folder"});
    check_refused(never({option, fs::path(missing).parent_path().parent_path()}), 2, {option, "is a folder"});
    check_refused(never({option, "/dev/null"}), 2, {option + ": /dev/null is not an ordinary file"});
    check_refused(never({option, "-"}), 2, {option + ": stdout is the program's"});
  }
  check_refused(never({"--report", missing}), 2, {"--report: there is no folder " + scratch_file("no-such-folder")});
  check_refused(never({"--report", fs::path(missing).parent_path().parent_path()}), 2, {"--report", "is a folder"});
  check_refused(never({"--report", "-"}), 2, {"--report: stdout is the program's"});
  const std::string both = scratch_file("both.json");
  check_refused(never({"--report", both, "--svg", both}), 2, {both + " is an input, or takes another output"});
  for (const char* const variable : {"SWAPMM_TRACE_OUT", "SWAPMM_SVG"}) {
    const Variable set(variable, missing);
    check_refused(never({}), 2, {std::string(variable) + ": there is no folder"});
  }
  CHECK(!fs::exists(scratch_file("pictures-started")));
}

TEST_CASE("run refuses times between lines of progress that are none") {
  check_refused(never({"--progress=often"}), 2, {"--progress: \"often\" is not a number of seconds"});
  check_refused(never({"--progress=-1"}), 2, {"--progress: \"-1\""});
  check_refused(never({"--progress=1e9"}), 2, {"--progress: \"1e9\""});
  const Variable set("SWAPMM_PROGRESS", "2s");
  check_refused(never({}), 2, {"SWAPMM_PROGRESS: \"2s\""});
  CHECK(!fs::exists(scratch_file("pictures-started")));
}

#ifdef SWAPMM_TEST_LAYER

namespace {

const std::vector<std::string> shows_settings{"/bin/sh", "-c",
                                              "echo \"$SWAPMM_TRACE_OUT|$SWAPMM_SVG|$SWAPMM_PROGRESS\""};

std::string without_folder(std::string text) {
  const std::string here = fs::current_path().string() + "/";
  for (std::size_t at = text.find(here); at != std::string::npos; at = text.find(here))
    text.replace(at, here.size(), "@");
  return text;
}

const std::string loop = "iterations.kept_buffers";

Outcome run_loop_with(std::vector<std::string> options) {
  options.insert(options.begin(), {"--budget", "360448"});
  return run_program(words_of(std::move(options), {SWAPMM_TEST_OPENCL_PROGRAM, loop}));
}

std::vector<std::string> files_that_begin_with(const std::string& name) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(fs::path(scratch_file(name)).parent_path())) {
    if (entry.path().filename().string().starts_with(name)) found.push_back(entry.path().string());
  }
  return found;
}

/// A span of the trace has a duration.
std::vector<boost::json::object> spans_on(const boost::json::object& trace, double thread) {
  std::vector<boost::json::object> found;
  for (const auto& event : trace.at("traceEvents").as_array()) {
    const auto& one = event.as_object();
    if (text_at(one, "ph") == "X" && number(one, "tid") == thread) found.push_back(one);
  }
  return found;
}

double bytes_of(const std::vector<boost::json::object>& copies) {
  double sum = 0;
  for (const auto& copy : copies) sum += number(copy, "args.bytes");
  return sum;
}

}  // namespace

TEST_CASE("run passes whole names of files on, since the program may go elsewhere") {
  const auto shown = [](std::vector<std::string> options) {
    return without_folder(run_program(words_of(std::move(options), shows_settings)).out);
  };
  CHECK(shown({}) == "||\n");
  CHECK(shown({"--trace-out", "a-%p.json", "--svg", "/tmp/b.svg", "--progress"}) == "@a-%p.json|/tmp/b.svg|2\n");
  CHECK(shown({"--progress=0.25"}) == "||0.25\n");
  const Variable trace("SWAPMM_TRACE_OUT", "t.json");
  const Variable svg("SWAPMM_SVG", "s.svg");
  const Variable progress("SWAPMM_PROGRESS", "7");
  CHECK(shown({}) == "@t.json|@s.svg|7\n");
  CHECK(shown({"--trace-out", "a.json", "--progress=3"}) == "@a.json|@s.svg|3\n");
}

TEST_CASE("run --progress does not take the program for its value") {
  CHECK(run_program({"run", "--progress", "/bin/echo", "a"}).out == "a\n");
}

TEST_CASE("run writes what ran on the device, with the process id in the name") {
  const std::string report = scratch_file("pictures.json");
  const Outcome plain = run_loop_with({"-q"});
  const Outcome outcome =
      run_loop_with({"--trace-out", scratch_file("shown-%p.json"), "--report", report, "--progress=3600"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out == plain.out);
  const auto told = boost::json::parse(contents(report)).as_object();
  const std::vector<std::string> files = files_that_begin_with("shown-");
  REQUIRE(files.size() == 1);
  CHECK(files.front() ==
        scratch_file("shown-" + std::to_string(static_cast<std::uint64_t>(number(told, "process"))) + ".json"));
  const auto trace = boost::json::parse(contents(files.front())).as_object();
  const auto commands = spans_on(trace, 1);
  const auto to_device = spans_on(trace, 2);
  const auto to_host = spans_on(trace, 3);
  CHECK(static_cast<double>(commands.size()) == number(told, "commands"));
  CHECK(static_cast<double>(to_device.size()) == number(told, "swap_ins"));
  CHECK(static_cast<double>(to_host.size()) == number(told, "swap_outs"));
  CHECK(bytes_of(to_device) == number(told, "bytes_to_device"));
  CHECK(bytes_of(to_host) == number(told, "bytes_to_host"));
  std::set<std::string> names;
  for (const auto& command : commands) names.insert(text_at(command, "name"));
  CHECK(names == std::set<std::string>{"affine", "blend", "initial bytes", "read", "write"});
}

TEST_CASE("run draws the last iteration") {
  const std::string file = scratch_file("drawn.svg");
  const Outcome outcome = run_loop_with({"-q", "--svg", file});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  boost::property_tree::ptree tree;
  std::istringstream in(contents(file));
  boost::property_tree::read_xml(in, tree);
  REQUIRE(tree.size() == 1);
  const std::string title = tree.get<std::string>("svg.title");
  CHECK(title.starts_with("swapmm_opencl_cases (process "));
  CHECK(title.ends_with("), context 1, the last iteration of 16 commands"));
  // It begins with a write and ends with a read; commands that are too short to be seen share a rectangle.
  const std::string text = contents(file);
  CHECK(text.find("write") != std::string::npos);
  CHECK(text.find("read") != std::string::npos);
  CHECK(text.find("initial bytes") == std::string::npos);
}

TEST_CASE("run says what a picture could not be written for, and the program's exit code stays") {
  const std::string folder = scratch_file("goes-away");
  fs::create_directory(folder);
  const std::string program = SWAPMM_TEST_OPENCL_PROGRAM;
  const Outcome outcome = run_program(
      words_of({"-q", "--trace-out", folder + "/trace.json"},
               {"/bin/sh", "-c", "rmdir " + folder + "; " + program + " recorded.loop > /dev/null; exit $(($? + 5))"}));
  CHECK(outcome.code == 5);
  CHECK(outcome.err == "swapmm: cannot write " + folder + "/trace.json: No such file or directory\n");
}

TEST_CASE("run shows progress on stderr, also if it is quiet") {
  const Outcome outcome = run_loop_with({"-q", "--progress=0.000000001"});
  REQUIRE(outcome.code == 0);
  const auto lines = std::count(outcome.err.begin(), outcome.err.end(), '\n');
  CHECK(lines > 600);
  const std::size_t last = outcome.err.rfind("swapmm: ");
  const std::string wanted = "swapmm: " + std::to_string(lines) + " commands, ";
  CHECK(outcome.err.substr(last, wanted.size()) == wanted);
  CHECK(outcome.err.ends_with(" of 0.3 MiB used\n"));
}

#endif
