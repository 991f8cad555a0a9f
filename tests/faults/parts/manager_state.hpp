// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a manager is doing, in a few words: faults are told apart by it.

#include <cstdint>
#include <string>

namespace swapmm::test {

/// Where the program is.
enum class CourseState : std::uint8_t {
  making,     ///< the manager is being made
  between,    ///< outside of iterations
  observing,  ///< in an iteration on demand; no plan was followed so far
  following,  ///< a plan is followed
  left,       ///< in an iteration on demand, after a plan was followed
  ending,     ///< the manager is being closed
};

/// Of the tensors that the call is about (of all, where it names none) the one that comes last in this list.
enum class Residency : std::uint8_t {
  none,    ///< no tensor has a value
  host,    ///< the value is on the host alone
  clean,   ///< on the device and on the host
  dirty,   ///< on the device alone
  coming,  ///< a copy to the device was queued, and the host has not seen its end
  going,   ///< likewise to the host
};

struct ManagerState {
  CourseState course = CourseState::making;
  Residency residency = Residency::none;
  friend auto operator<=>(const ManagerState&, const ManagerState&) = default;

  /// "following/dirty"
  [[nodiscard]] std::string text() const;
};

}  // namespace swapmm::test
