// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/program/model.hpp"
#include "support/program/runner.hpp"
#include "support/progress_watch.hpp"
#include "support/refusal.hpp"
#include "support/tensor_names.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// What the host holds has a limit that values alone do not exceed: what the library takes for itself may.
[[nodiscard]] bool limits_host_memory(const TestProgram& program);

/// The host may have no room for a value.
[[nodiscard]] bool host_memory_may_run_out(const TestProgram& program);

/// Judges how the calls of a program end: those that must be refused are, and others are not. The first thing that does
/// not hold becomes the failure of the run.
class ProgramCalls {
 public:
  ProgramCalls(const TestProgram& program, RunResult& result);

  /// What the program does next, for messages; behind the last action: nothing.
  void go_to(std::size_t position) {
    position_ = position;
    progress_.step(position);
    last_ = accepted;
  }
  [[nodiscard]] std::size_t position() const { return position_; }

  /// Something does not hold. The first one counts.
  void fail(const std::string& text);

  /// True where the call was accepted.
  template <class Call>
  bool check(Expected expected, Call&& call) {
    last_ = attempt(std::forward<Call>(call), text_, &lost_);
    return judge(expected);
  }

  /// How the last call of this action ended; what it said if it was refused.
  [[nodiscard]] Refusal last() const { return last_; }
  [[nodiscard]] const std::string& refusal() const { return text_; }
  /// Host memory may run out, in any call.
  [[nodiscard]] bool may_run_out() const { return limited_; }
  /// From now on values are read where a steady program did not read them.
  void allow_drops() { steady_ = false; }

  /// What a read of that tensor may meet.
  [[nodiscard]] Expected expected_of_read(const ModelTensor& tensor) const;
  /// The host has read these bytes: they must be the slices' versions.
  void check_bytes(std::span<const std::byte> bytes, const SlicedBytes& layout, const SliceRange& range,
                   const SliceVersions& versions);
  /// The last call was refused, and may have said that this tensor's value was dropped.
  void note_drop(ModelTensor& tensor);

 private:
  [[nodiscard]] bool judge(Expected expected);

  const TestProgram& program_;
  RunResult& result_;
  bool limited_;  // host memory may run out
  bool steady_;   // so far
  std::size_t position_ = 0;
  ProgressWatch progress_;
  Refusal last_ = accepted;
  std::string text_;              // of the last refusal
  std::vector<TensorName> lost_;  // by it
};

}  // namespace swapmm::test
