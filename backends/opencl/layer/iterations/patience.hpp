// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

namespace swapmm::opencl::layer {

/// How long commands may be held back. Natively the device would have nothing to do then, so it is not for long: 100 ms
/// after the last command, and 2 s in all.
///
/// With SWAPMM_WAIT=values, a program waits and computes while commands of its last step are held back, so it is 3 s
/// and 30 s at least; and where a step takes longer, as long as one may take: twice the longest of the last four steps
/// behind the last command, and four of them in all, but never more than 60 s and 120 s.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Patience(bool waits_for_values) : waits_for_values_(waits_for_values) {}

  /// Called when a whole iteration has ended.
  void iteration_ended(Clock::time_point now) {
    if (last_end_) {
      steps_[next_] = now - *last_end_;
      next_ = (next_ + 1) % steps_.size();
    }
    last_end_ = now;
  }
  /// Called when the program does something else than one iteration after the other.
  void interrupted() { last_end_.reset(); }

  /// Without another command.
  [[nodiscard]] Clock::duration pause() const {
    using std::chrono::seconds;
    if (!waits_for_values_) return std::chrono::milliseconds(100);
    return std::clamp<Clock::duration>(2 * longest_step(), seconds(3), seconds(60));
  }
  /// In all.
  [[nodiscard]] Clock::duration time() const {
    using std::chrono::seconds;
    if (!waits_for_values_) return seconds(2);
    return std::clamp<Clock::duration>(4 * longest_step(), seconds(30), seconds(120));
  }

 private:
  [[nodiscard]] Clock::duration longest_step() const { return *std::max_element(steps_.begin(), steps_.end()); }

  bool waits_for_values_;
  std::array<Clock::duration, 4> steps_{};  // from the end of one whole iteration to that of the next one
  std::size_t next_ = 0;
  std::optional<Clock::time_point> last_end_;
};

}  // namespace swapmm::opencl::layer
