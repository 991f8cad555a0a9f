// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <swapmm/base/error.hpp>

namespace swapmm::runtime {

/// Something whose address tells threads apart.
[[nodiscard]] inline const void* this_thread() {
  static thread_local const char token = 0;
  return &token;
}

/// Lets one caller in at a time; a second one gets an exception, not a wait. A manager is not meant to be shared
/// between threads without the program's own order, and this finds out where it is.
class Gate {
 public:
  void enter() {
    const void* inside = nullptr;
    if (inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire)) return;
    if (inside == this_thread()) {
      std::string operation(operation_);
      throw NestedOperation("the callable of operation \"" + operation +
                                "\" calls the manager: operations, uploads and downloads cannot nest",
                            {.operation = std::move(operation)});
    }
    throw ConcurrentUse("two threads use one manager at the same time: order them, or give each its own manager");
  }
  [[nodiscard]] bool try_enter() noexcept {
    const void* inside = nullptr;
    return inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire);
  }
  /// Waits for another thread to leave. False where this thread is inside already.
  [[nodiscard]] bool enter_waiting() noexcept {
    for (;;) {
      if (try_enter()) return true;
      if (inside_.load(std::memory_order_relaxed) == this_thread()) return false;
      std::this_thread::yield();
    }
  }
  void leave() noexcept {
    operation_ = {};
    inside_.store(nullptr, std::memory_order_release);
  }
  /// For errors: whoever is inside runs this operation. The text must stay until leave().
  void runs(std::string_view operation) noexcept { operation_ = operation; }

 private:
  std::atomic<const void*> inside_{nullptr};
  std::string_view operation_;  // of the thread that is inside
};

}  // namespace swapmm::runtime
