// SPDX-License-Identifier: Apache-2.0
#include "programs.hpp"

#include <stdexcept>

namespace interpreter {
namespace {

constexpr Step end{.is_end = true};
Step call(Program program, Row row = Row::none, Direction direction = Direction::none) {
  return {.call = {program, row, direction}};
}

Step add(std::size_t step, const Pad& pad) {
  switch (step) {
    case 0: return pad.is_done() ? end : call(Program::add1);
    case 1: return call(Program::shift, Row::none, Direction::left);
    case 2: return call(Program::add);
    case 3: return call(Program::shift, Row::none, Direction::right);
    default: return end;
  }
}

Step add1(std::size_t step, const Pad& pad) {
  if (step == 0) return call(Program::sum);
  return step == 1 && pad.carries() ? call(Program::carry) : end;
}

Step carry(std::size_t step) {
  switch (step) {
    case 0: return call(Program::move, Row::carry, Direction::left);
    case 1: return call(Program::increment);
    case 2: return call(Program::move, Row::carry, Direction::right);
    default: return end;
  }
}

Step shift(std::size_t step, Direction direction) {
  return step < row_count ? call(Program::move, static_cast<Row>(step), direction) : end;
}

}  // namespace

Step right_step(const Frame& frame, const Pad& pad) {
  switch (frame.call.program) {
    case Program::add: return add(frame.steps, pad);
    case Program::add1: return add1(frame.steps, pad);
    case Program::carry: return carry(frame.steps);
    case Program::shift: return shift(frame.steps, frame.call.direction);
    default: throw std::logic_error("a primitive has no steps");
  }
}

}  // namespace interpreter
