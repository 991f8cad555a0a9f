// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace swapmm::test {

/// Says how far a run has come: on a terminal in one line that changes, in a log by a line now and then.
class Progress {
 public:
  explicit Progress(std::uint64_t count);
  void show(std::uint64_t done);
  /// Ends the line. The time since the beginning.
  double end();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  std::uint64_t count_;
  bool terminal_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  bool line_ = false;
};

}  // namespace swapmm::test
