// SPDX-License-Identifier: Apache-2.0
#include "primitive.hpp"

#include <stdexcept>

namespace interpreter {
namespace {

/// Values one after another, each as a 1 among zeros.
class OneHot {
 public:
  /// If the value is not below `count`, all are 0.
  OneHot& add(std::size_t value, std::size_t count) {
    const std::size_t first = values_.size();
    values_.resize(first + count, 0.0F);
    if (value < count) values_[first + value] = 1;
    return *this;
  }
  [[nodiscard]] std::vector<float> values() const { return values_; }

 private:
  std::vector<float> values_;
};

std::vector<float> sum_question(std::size_t first, std::size_t second, std::size_t carry) {
  return OneHot().add(first, digit_values).add(second, digit_values).add(carry, digit_values).values();
}
std::vector<float> increment_question(std::size_t digit) { return OneHot().add(digit, digit_values).values(); }
std::vector<float> move_question(Row row, Direction direction) {
  return OneHot()
      .add(static_cast<std::size_t>(row), row_count)
      .add(static_cast<std::size_t>(direction), direction_count)
      .values();
}

std::size_t value_of(std::size_t digit) { return digit == empty ? 0 : digit; }

std::vector<Case> sum_cases() {
  std::vector<Case> cases;
  for (std::size_t first = 0; first < digit_values; ++first) {
    for (std::size_t second = 0; second < digit_values; ++second) {
      for (const std::size_t carry : {empty, std::size_t{1}}) {
        const std::size_t sum = value_of(first) + value_of(second) + value_of(carry);
        cases.push_back({sum_question(first, second, carry), {sum % 10, sum / 10}});
      }
    }
  }
  return cases;
}

std::vector<Case> increment_cases() {
  std::vector<Case> cases;
  for (std::size_t digit = 0; digit < digit_values; ++digit) {
    cases.push_back({increment_question(digit), {(value_of(digit) + 1) % 10}});
  }
  return cases;
}

std::vector<Case> move_cases() {
  std::vector<Case> cases;
  for (std::size_t row = 0; row < row_count; ++row) {
    for (const Direction direction : {Direction::left, Direction::right}) {
      std::vector<std::size_t> answers(row_count, static_cast<std::size_t>(Direction::none));
      answers[row] = static_cast<std::size_t>(direction);
      cases.push_back({move_question(static_cast<Row>(row), direction), answers});
    }
  }
  return cases;
}

}  // namespace

PrimitiveTask task_of(Program primitive) {
  switch (primitive) {
    case Program::sum: return {"SUM", 48, {10, 2}, sum_cases()};
    case Program::increment: return {"INCREMENT", 16, {10}, increment_cases()};
    case Program::move: return {"MOVE", 16, Choices(row_count, direction_count + 1), move_cases()};
    default: throw std::logic_error("a program is not a primitive");
  }
}

std::vector<float> question_of(const Call& call, const Pad& pad) {
  switch (call.program) {
    case Program::sum: return sum_question(pad.digit(Row::first), pad.digit(Row::second), pad.digit(Row::carry));
    case Program::increment: return increment_question(pad.digit(Row::carry));
    case Program::move: return move_question(call.row, call.direction);
    default: throw std::logic_error("a program is not a primitive");
  }
}

void act(const Call& call, const std::vector<std::size_t>& answers, Pad& pad) {
  switch (call.program) {
    case Program::sum:
      pad.write(Row::result, answers[0]);
      pad.set_carries(answers[1] == 1);
      break;
    case Program::increment: pad.write(Row::carry, answers[0]); break;
    case Program::move:
      for (std::size_t i = 0; i < row_count; ++i) pad.move(static_cast<Row>(i), static_cast<Direction>(answers[i]));
      break;
    default: throw std::logic_error("a program is not a primitive");
  }
}

}  // namespace interpreter
