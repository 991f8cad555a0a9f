// SPDX-License-Identifier: Apache-2.0
#pragma once

// Progress, promise O6 of docs/reliability.md: a call of the library that never comes back ends the test program with a
// report, instead of a hang that somebody else has to end.

#include <cstdint>

namespace swapmm::test {

/// What a test is at, from its making to its end. Where it stays at one step for many seconds of the processor's time,
/// the program ends with exit code 1 and says where it was: 8, or SWAPMM_TEST_PATIENCE. Of several tests at the same
/// time, it is enough if one of them goes on.
class ProgressWatch {
 public:
  /// `test`: for persons, "random program"; lasts as long as the program.
  ProgressWatch(const char* test, std::uint64_t seed);
  ProgressWatch(const ProgressWatch&) = delete;
  ProgressWatch& operator=(const ProgressWatch&) = delete;
  ~ProgressWatch();

  /// The test begins another step.
  void step(std::uint64_t number);
};

}  // namespace swapmm::test
