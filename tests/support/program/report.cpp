// SPDX-License-Identifier: Apache-2.0
#include "support/program/report.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>

#include "support/program/cpp.hpp"
#include "support/program/shrink.hpp"

namespace swapmm::test {
namespace {

constexpr std::size_t most_tries = 20'000;

/// What failed, without the numbers and names of one program.
std::string kind_of(const std::string& failure) {
  std::string kind = failure.substr(0, failure.find(" (action"));
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

}  // namespace

ProgramFailure report_failure(const TestProgram& program, const std::string& failure, const ProgramJudge& judge,
                              bool in_process) {
  const std::string kind = kind_of(failure);
  ProgramFailure result;
  result.program = shrink(program, [&](const TestProgram& smaller) {
    return ++result.tries <= most_tries && kind_of(judge(smaller).failure) == kind;
  });
  result.verdict = judge(result.program);
  if (in_process && result.program.beside.empty()) {
    result.trace = run_program(result.program, {.keep_trace = true}).first_trace;
    result.cpp = cpp_of(result.program, result.verdict.settings, result.verdict.failed());
  }
  std::ostringstream text;
  text << "what is left of it after shrinking, in " << result.tries << " tries:\n"
       << result.program << "fails with: " << result.verdict.failure << "\n";
  result.text = text.str();
  return result;
}

}  // namespace swapmm::test
