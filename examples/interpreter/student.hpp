// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core.hpp"
#include "pad.hpp"
#include "primitive.hpp"
#include "programs.hpp"

namespace interpreter {

/// What the interpreter found by itself.
struct Answer {
  Run run;
  Digits sum;
  bool operator==(const Answer&) const = default;
  [[nodiscard]] bool is_right(const Addition& addition) const { return run.ended && sum == addition.sum(); }
};

/// The interpreter with its primitives: learns to add, and adds.
template <class Memory>
class Student {
 public:
  Student(Memory& memory, std::uint64_t seed)
      : memory_(memory),
        random_(seed),
        sum_(memory, Program::sum, random_),
        increment_(memory, Program::increment, random_),
        move_(memory, Program::move, random_),
        core_(memory, random_) {}

  /// A primitive, to practise it by itself.
  [[nodiscard]] Primitive<Memory>& primitive(Program program) {
    return program == Program::sum ? sum_ : program == Program::increment ? increment_ : move_;
  }
  /// See Core::totals().
  [[nodiscard]] std::vector<float> totals() const { return core_.totals(); }

  /// One step of training, as one iteration. The right programs are run with the primitives' networks: what these
  /// answer is on the pad that the core sees. Which operations there are depends on the digits, so that is the
  /// iteration's name.
  void learn(const Addition& addition, float rate) {
    [[maybe_unused]] const auto iteration = memory_.iteration(name_of(addition));
    Pad pad(addition);
    std::vector<Lesson> lessons;
    const auto decide = [&](std::size_t /*depth*/, const Frame& frame) {
      const Step step = right_step(frame, pad);
      if (frame.number == lessons.size()) lessons.push_back({.program = frame.call.program});
      note(frame, pad, step, lessons[frame.number]);
      return step;
    };
    (void)interpret(limits_for(addition.digits()), decide, [&](const Call& call) { run_primitive(call, pad); });
    core_.learn(lessons, rate);
  }

  /// Adds by itself, as one iteration: the host reads after each step what the core has decided.
  [[nodiscard]] Answer add(const Addition& addition) {
    [[maybe_unused]] const auto iteration = memory_.iteration("add");
    Pad pad(addition);
    const auto decide = [&](std::size_t depth, const Frame& frame) { return core_.decide(depth, frame, pad); };
    const Run run =
        interpret(limits_for(addition.digits()), decide, [&](const Call& call) { run_primitive(call, pad); });
    return {run, pad.result()};
  }

  /// All weights. Waits for the device.
  [[nodiscard]] std::vector<std::vector<float>> weights() const {
    std::vector<std::vector<float>> all;
    const auto add = [&](const auto& network) {
      for (const auto* parameter : network.parameters()) all.push_back(memory_.download(parameter->weights));
    };
    add(sum_);
    add(increment_);
    add(move_);
    add(core_);
    return all;
  }

 private:
  static std::string name_of(const Addition& addition) {
    std::string name = "learn carries ";
    for (const bool carry : addition.carries()) name += carry ? '1' : '0';
    return name;
  }

  static void note(const Frame& frame, const Pad& pad, const Step& step, Lesson& lesson) {
    const std::vector<float> seen = seen_by(frame.call, pad);
    const std::vector<float> right = right_choices(step);
    lesson.seen.insert(lesson.seen.end(), seen.begin(), seen.end());
    lesson.right.insert(lesson.right.end(), right.begin(), right.end());
    ++lesson.steps;
  }

  void run_primitive(const Call& call, Pad& pad) {
    act(call, primitive(call.program).answers_to(question_of(call, pad)), pad);
  }

  Memory& memory_;
  std::mt19937_64 random_;
  Primitive<Memory> sum_;
  Primitive<Memory> increment_;
  Primitive<Memory> move_;
  Core<Memory> core_;
};

}  // namespace interpreter
