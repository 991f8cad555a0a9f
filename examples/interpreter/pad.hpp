// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interpreter's environment: a scratch pad on which two numbers are added as on paper.

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace interpreter {

/// A row of the pad, and a pointer to one of its digits.
enum class Row : std::uint8_t { first, second, carry, result, none };
inline constexpr std::size_t row_count = 4;

/// Where a pointer is moved to.
enum class Direction : std::uint8_t { left, right, none };
inline constexpr std::size_t direction_count = 2;

inline constexpr std::size_t empty = 10;         ///< in place of a digit: nothing is written there
inline constexpr std::size_t digit_values = 11;  ///< 0 to 9, and empty
/// The digits under the four pointers and the carry flag, one-hot.
inline constexpr std::size_t observation_size = row_count * digit_values + 2;

/// Digits, the last one first.
using Digits = std::vector<std::size_t>;

/// Two numbers to be added.
struct Addition {
  Digits first;
  Digits second;
  /// Digits of the longer number.
  [[nodiscard]] std::size_t digits() const;
  /// Whether 1 is carried, for each column from the right.
  [[nodiscard]] std::vector<bool> carries() const;
  /// By school arithmetic, for comparison. As long as the longer number, or longer by one digit if 1 is carried.
  [[nodiscard]] Digits sum() const;
};

/// Numbers of at most `digits` digits, one of them of exactly so many. Their first digits may be 0.
[[nodiscard]] Addition random_addition(std::mt19937_64& random, std::size_t digits);

/// Rows of digits with a pointer each, all of which begin at the right.
class Pad {
 public:
  explicit Pad(const Addition& addition);

  /// The digit under the pointer of that row, or `empty`.
  [[nodiscard]] std::size_t digit(Row row) const;
  /// Writes under the pointer of that row.
  void write(Row row, std::size_t digit);
  /// Moves the pointer of that row. It stays on the pad.
  void move(Row row, Direction direction);
  /// What the last sum said about its carry.
  [[nodiscard]] bool carries() const { return carries_; }
  void set_carries(bool carries) { carries_ = carries; }
  /// Whether there is nothing to add under the pointers.
  [[nodiscard]] bool is_done() const;
  /// What the interpreter sees.
  [[nodiscard]] std::array<float, observation_size> observation() const;
  /// The result's digits, up to the first empty place.
  [[nodiscard]] Digits result() const;

 private:
  std::array<Digits, row_count> rows_;
  std::array<std::size_t, row_count> pointers_{};
  bool carries_ = false;
};

}  // namespace interpreter
