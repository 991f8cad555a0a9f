// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace swapmm {

/// The reason why a pure function has no result: one sentence for people, with field, index and numbers.
struct Problem {
  std::string message;  ///< the sentence
};

/// A value, or the Problem that prevented it. The pure layers return this type; the facade turns problems into
/// exceptions.
template <class T>
class [[nodiscard]] Result {
 public:
  /// @{
  /// Implicit, so that a function can return a value or a Problem.
  Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}            // NOLINT(*-explicit-*)
  Result(Problem problem) : content_(std::in_place_index<1>, std::move(problem)) {}  // NOLINT(*-explicit-*)
  /// @}

  /// True for a value, false for a Problem.
  [[nodiscard]] bool has_value() const { return content_.index() == 0; }
  /// The same as has_value().
  explicit operator bool() const { return has_value(); }

  /// @{
  /// The value. Requires has_value(); this is asserted, and undefined behaviour without assertions.
  T& value() & {
    assert(has_value());
    return *std::get_if<0>(&content_);
  }
  const T& value() const& {
    assert(has_value());
    return *std::get_if<0>(&content_);
  }
  T&& value() && {
    assert(has_value());
    return std::move(*std::get_if<0>(&content_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  /// @}

  /// The Problem. Requires !has_value(), which is asserted, too.
  [[nodiscard]] const Problem& problem() const {
    assert(!has_value());
    return *std::get_if<1>(&content_);
  }

 private:
  std::variant<T, Problem> content_;
};

/// The value of a check that passed: nothing.
struct Done {};
/// Result of a check: Done, or a Problem.
using Check = Result<Done>;

}  // namespace swapmm
