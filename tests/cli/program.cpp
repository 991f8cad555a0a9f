// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <boost/json/parse.hpp>

#include "test_data.hpp"

namespace swapmm::test {
namespace {

/// Everything is written there, so that the tests leave nothing behind.
class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path() / "swapmm-cli-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
    path = pattern;
  }
  ~Scratch() {
    std::error_code unknown;
    std::filesystem::remove_all(path, unknown);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path path;
};

const Scratch& scratch() {
  static const Scratch folder;
  return folder;
}

void redirect(const std::string& path, int flags, int to) {
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0 || dup2(file, to) < 0) _exit(126);
  close(file);
}

/// What the program writes to a terminal; ends when nobody has it open any more.
std::string read_terminal(int terminal) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t length = 0; (length = read(terminal, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(length));
  }
  return text;
}

const boost::json::value& at(const boost::json::object& answer, std::string_view path) {
  const std::size_t dot = path.find('.');
  const boost::json::value* const found = answer.if_contains(std::string(path.substr(0, dot)));
  INFO(std::string(path));
  REQUIRE(found != nullptr);
  if (dot == std::string_view::npos) return *found;
  REQUIRE(found->is_object());
  return at(found->get_object(), path.substr(dot + 1));
}

}  // namespace

std::string scratch_file(const std::string& name) { return scratch().path / name; }

Outcome run_program(const std::vector<std::string>& arguments, const std::string& in, Stderr err,
                    const std::string& out_path) {
  write_contents(scratch_file("stdin"), in);
  std::vector<std::string> words{SWAPMM_CLI_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string in_path = scratch_file("stdin");
  const std::string err_path = scratch_file("stderr");
  std::array<int, 2> terminal{-1, -1};
  if (err == Stderr::terminal) REQUIRE(openpty(terminal.data(), &terminal[1], nullptr, nullptr, nullptr) == 0);

  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    redirect(in_path, O_RDONLY, STDIN_FILENO);
    redirect(out_path, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    if (err == Stderr::file) redirect(err_path, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    if (err == Stderr::terminal && dup2(terminal[1], STDERR_FILENO) < 0) _exit(126);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  Outcome outcome;
  if (err == Stderr::terminal) {
    close(terminal[1]);
    outcome.err = read_terminal(terminal[0]);
    close(terminal[0]);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (std::filesystem::is_regular_file(out_path)) outcome.out = contents(out_path);  // /dev/full never ends
  if (err == Stderr::file) outcome.err = contents(err_path);
  return outcome;
}

boost::json::object run_json(std::vector<std::string> arguments, int code) {
  arguments.emplace_back("--json");
  const Outcome outcome = run_program(arguments);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == code);
  boost::json::error_code error;
  const boost::json::value value = boost::json::parse(outcome.out, error);
  REQUIRE(!error);
  REQUIRE(value.is_object());
  CHECK(outcome.out.find('\n') == outcome.out.size() - 1);
  return value.get_object();
}

void check_refused(const std::vector<std::string>& arguments, int code, const std::vector<std::string>& texts) {
  const Outcome outcome = run_program(arguments);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == code);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("swapmm"));
  CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(outcome.err.find(text) != std::string::npos);
  }
}

double number(const boost::json::object& answer, std::string_view path) {
  const boost::json::value& value = at(answer, path);
  REQUIRE(value.is_number());
  return value.to_number<double>();
}

std::string text_at(const boost::json::object& answer, std::string_view path) {
  const boost::json::value& value = at(answer, path);
  REQUIRE(value.is_string());
  return {value.get_string().data(), value.get_string().size()};
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_contents(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

std::string two_weights() { return SWAPMM_TEST_DATA "/traces/cli/two_weights.json"; }
std::string lstm() { return SWAPMM_TEST_DATA "/traces/pytorch/lstm.json"; }

std::vector<std::string> room_for_one() { return {"--budget", "5000", "--bandwidth", "1GB/s", "--alignment", "1"}; }

std::string plan_for_two_weights(const std::string& name) {
  std::vector<std::string> arguments{"plan", two_weights(), "--out", scratch_file(name)};
  for (const std::string& word : room_for_one()) arguments.push_back(word);
  REQUIRE(run_program(arguments).code == 0);
  return scratch_file(name);
}

}  // namespace swapmm::test
