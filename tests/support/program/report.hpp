// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <swapmm/ir/trace.hpp>

#include "support/program/oracle.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// A program that does not hold, as small as it could be made.
struct ProgramFailure {
  TestProgram program;
  std::size_t tries = 0;       ///< programs that were run until it was found
  Verdict verdict;             ///< of it
  std::string text;            ///< everything that a person needs to begin with
  std::string cpp;             ///< the same program as C++; empty where the process ended
  std::optional<Trace> trace;  ///< of its first iteration that ended, where there is one
};

using ProgramJudge = std::function<Verdict(const TestProgram&)>;

/// Shrinks the program, of which `judge` says that failure, to one that fails in the same way, however different its
/// numbers. `in_process`: it may be run by this process, which it does not end.
[[nodiscard]] ProgramFailure report_failure(const TestProgram& program, const std::string& failure,
                                            const ProgramJudge& judge, bool in_process = true);

}  // namespace swapmm::test
