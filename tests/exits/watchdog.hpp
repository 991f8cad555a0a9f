// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace swapmm::test {

/// How a process ended.
struct Ending {
  bool in_time = false;               ///< it was gone within the limit after it said that it leaves
  int code = -1;                      ///< what it returned; -1: it did not
  int signal = 0;                     ///< what killed it; 0: nothing
  std::string output;                 ///< what it wrote to its standard output, behind that word
  std::chrono::milliseconds took{0};  ///< from that word to its end
};

/// From a process that says so to its end: the promise is 2 s, of a core that is its own. Where more processes want to
/// run than there are cores, it is as many times that; and sanitizers look for leaks meanwhile.
#ifdef SWAPMM_TEST_IS_SLOW
inline constexpr std::chrono::seconds time_to_leave{20};
#else
inline constexpr std::chrono::seconds time_to_leave{2};
#endif
/// Before it: loading a driver takes what it takes.
inline constexpr std::chrono::seconds time_to_arrive{100};

/// The word: written by announce_leaving() in the process that is watched.
void announce_leaving();
/// One line to the standard output, at once: it works while the process ends.
void say(const std::string& line);

/// Runs a program and watches it. Past the limit it is killed, and all that it left behind.
[[nodiscard]] Ending watch(const std::vector<std::string>& command);

}  // namespace swapmm::test
