// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// The times of closed logs that the device has not reported yet. Operations are numbered from log to log.
class LateTimes {
 public:
  struct Log {
    std::uint64_t sequence = 0;                       ///< its id in the program book
    std::uint64_t first = 0;                          ///< number of its first operation
    std::size_t copies = 0;                           ///< in TimedCopies, since the log before
    Clock end;                                        ///< when this has ended, its times are known
    std::vector<std::chrono::nanoseconds> durations;  ///< of its operations; 0: not known yet
  };

  [[nodiscard]] bool empty() const { return logs_.empty(); }
  [[nodiscard]] std::size_t count() const { return logs_.size(); }
  [[nodiscard]] const Log& oldest() const { return logs_.front(); }
  [[nodiscard]] std::size_t copies() const {
    std::size_t sum = 0;
    for (const Log& log : logs_) sum += log.copies;
    return sum;
  }

  void add(Log log) { logs_.push_back(std::move(log)); }
  [[nodiscard]] Log take_oldest() {
    Log taken = std::move(logs_.front());
    logs_.pop_front();
    return taken;
  }
  /// Ignores operations of other logs.
  void took(std::uint64_t operation, std::chrono::nanoseconds duration) {
    for (Log& log : logs_) {
      if (operation < log.first || operation - log.first >= log.durations.size()) continue;
      log.durations[operation - log.first] = duration;
    }
  }

 private:
  std::deque<Log> logs_;  // oldest first
};

}  // namespace swapmm::runtime
