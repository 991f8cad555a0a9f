// SPDX-License-Identifier: Apache-2.0
#pragma once

// The programs that the interpreter learns, and how they are run. A program calls other programs and primitives:
//
//   ADD           nothing left: end. Else ADD1, SHIFT left, ADD, SHIFT right, end
//   ADD1          SUM; if it carries: CARRY; end
//   CARRY         MOVE carry left, INCREMENT, MOVE carry right, end
//   SHIFT where   MOVE first where, MOVE second where, MOVE carry where, MOVE result where, end
//
// ADD calls itself, as in Cai, Shin and Song, "Making neural programming architectures generalize via recursion"
// (2017): so no call has more steps for longer numbers.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pad.hpp"

namespace interpreter {

/// Programs, and then primitives, each of which is a network of its own.
enum class Program : std::uint8_t { add, add1, carry, shift, sum, increment, move };
inline constexpr std::size_t program_count = 7;
inline constexpr std::size_t longest_call = 5;  ///< steps of the longest of the programs above

[[nodiscard]] inline bool is_primitive(Program program) { return program >= Program::sum; }

/// A program or primitive with its arguments.
struct Call {
  Program program = Program::add;
  Row row = Row::none;
  Direction direction = Direction::none;
};

/// What a program does next: it ends, or calls another one.
struct Step {
  bool is_end = false;
  Call call{};
};

/// A call that has not ended yet.
struct Frame {
  Call call{};
  std::size_t number = 0;  ///< of calls before it
  std::size_t steps = 0;   ///< that it has done
};

/// What the program must do next: the supervision.
[[nodiscard]] Step right_step(const Frame& frame, const Pad& pad);

/// The most that an interpreter that may be wrong can do.
struct Limits {
  std::size_t steps = 0;
  std::size_t depth = 0;
};
/// More than any right run on numbers of so many digits needs.
[[nodiscard]] inline Limits limits_for(std::size_t digits) { return {40 * (digits + 2), digits + 6}; }

/// How a run ended.
struct Run {
  bool ended = false;       ///< false: it came to a limit
  std::size_t steps = 0;    ///< of all calls
  std::size_t deepest = 0;  ///< calls that were open at once
  bool operator==(const Run&) const = default;
};

/// Runs ADD. `decide(depth, frame)` returns the next step of the innermost call, `act(call)` runs a primitive.
template <class Decide, class Act>
[[nodiscard]] Run interpret(const Limits& limits, const Decide& decide, const Act& act) {
  Run run;
  std::size_t calls = 1;
  std::vector<Frame> open{Frame{}};
  for (; !open.empty() && run.steps < limits.steps && open.size() <= limits.depth; ++run.steps) {
    run.deepest = open.size() > run.deepest ? open.size() : run.deepest;
    const Step step = decide(open.size() - 1, open.back());
    ++open.back().steps;
    if (step.is_end) {
      open.pop_back();
    } else if (is_primitive(step.call.program)) {
      act(step.call);
    } else {
      open.push_back({.call = step.call, .number = calls++});
    }
  }
  run.ended = open.empty();
  return run;
}

}  // namespace interpreter
