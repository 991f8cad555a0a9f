// SPDX-License-Identifier: Apache-2.0
#include "pad.hpp"

#include <algorithm>

#include "simulated_networks/random.hpp"

namespace interpreter {
namespace {

std::size_t at(const Digits& digits, std::size_t column) { return column < digits.size() ? digits[column] : 0; }

Digits random_digits(std::mt19937_64& random, std::size_t count) {
  Digits digits(count);
  for (std::size_t& digit : digits) digit = networks::below(random, 10);
  return digits;
}

}  // namespace

std::size_t Addition::digits() const { return std::max(first.size(), second.size()); }

std::vector<bool> Addition::carries() const {
  std::vector<bool> carries;
  bool carry = false;
  for (std::size_t i = 0; i < digits(); ++i) {
    carry = at(first, i) + at(second, i) + (carry ? 1 : 0) > 9;
    carries.push_back(carry);
  }
  return carries;
}

Digits Addition::sum() const {
  const std::vector<bool> carries = this->carries();
  Digits sum;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    const std::size_t carried = i > 0 && carries[i - 1] ? 1 : 0;
    sum.push_back((at(first, i) + at(second, i) + carried) % 10);
  }
  if (!carries.empty() && carries.back()) sum.push_back(1);
  return sum;
}

Addition random_addition(std::mt19937_64& random, std::size_t digits) {
  Addition addition{random_digits(random, digits), random_digits(random, 1 + networks::below(random, digits))};
  if (networks::below(random, 2) == 0) addition.first.swap(addition.second);
  return addition;
}

Pad::Pad(const Addition& addition) {
  rows_[0] = addition.first;
  rows_[1] = addition.second;
  for (Digits& row : rows_) row.resize(addition.digits() + 2, empty);
}

std::size_t Pad::digit(Row row) const {
  const auto number = static_cast<std::size_t>(row);
  return rows_.at(number)[pointers_.at(number)];
}

void Pad::write(Row row, std::size_t digit) {
  const auto number = static_cast<std::size_t>(row);
  rows_.at(number)[pointers_.at(number)] = digit;
}

void Pad::move(Row row, Direction direction) {
  const auto number = static_cast<std::size_t>(row);
  std::size_t& pointer = pointers_.at(number);
  if (direction == Direction::left && pointer + 1 < rows_.at(number).size()) ++pointer;
  if (direction == Direction::right && pointer > 0) --pointer;
}

bool Pad::is_done() const {
  return digit(Row::first) == empty && digit(Row::second) == empty && digit(Row::carry) == empty;
}

std::array<float, observation_size> Pad::observation() const {
  std::array<float, observation_size> seen{};
  for (std::size_t i = 0; i < row_count; ++i) seen.at(i * digit_values + digit(static_cast<Row>(i))) = 1;
  seen.at(row_count * digit_values + (carries_ ? 1 : 0)) = 1;
  return seen;
}

Digits Pad::result() const {
  const Digits& row = rows_[static_cast<std::size_t>(Row::result)];
  return {row.begin(), std::ranges::find(row, empty)};
}

}  // namespace interpreter
