// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

namespace swapmm::runtime {

/// True if `time` is greater than `other` by more than noise, that is, by more than 1 %.
[[nodiscard]] constexpr bool slower(std::chrono::nanoseconds time, std::chrono::nanoseconds other) {
  return static_cast<double>(time.count()) > 1.01 * static_cast<double>(other.count());
}

/// The times of the last few runs of the same round or iteration.
class RoundTimes {
 public:
  void add(std::chrono::nanoseconds time) {
    last_[next_] = time;
    next_ = (next_ + 1) % last_.size();
    count_ = std::min(count_ + 1, last_.size());
  }
  void clear() { count_ = next_ = 0; }
  [[nodiscard]] std::size_t count() const { return count_; }

  /// Returns the median. For an even number of times it is the lower of the two in the middle, because disturbances
  /// only make runs longer.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> median() const {
    if (count_ == 0) return std::nullopt;
    auto sorted = last_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((count_ - 1) / 2);
    std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count_));
    return *middle;
  }

 private:
  std::array<std::chrono::nanoseconds, 5> last_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

/// The durations of one operation in its last few samples.
class DurationSamples {
 public:
  /// A duration of 0 means unknown.
  void add(std::chrono::nanoseconds duration) {
    if (duration.count() == 0) return;
    std::rotate(last_.rbegin(), last_.rbegin() + 1, last_.rend());
    last_[0] = duration;
  }
  /// Returns the shortest duration; 0 if none is known. One disturbed sample does no harm (the first run of an
  /// operation often includes its compilation), and a lasting change is seen after as many samples as are kept.
  [[nodiscard]] std::chrono::nanoseconds estimate() const {
    std::chrono::nanoseconds least{0};
    for (const auto duration : last_) {
      if (duration.count() != 0 && (least.count() == 0 || duration < least)) least = duration;
    }
    return least;
  }

 private:
  std::array<std::chrono::nanoseconds, 3> last_{};
};

}  // namespace swapmm::runtime
