// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::runtime {

/// Something whose address tells threads apart. Exported: it is one function in the whole program, whichever library
/// calls it.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT inline const void* this_thread() {
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
      throw NestedOperation("an operation's callable calls the manager: operations, uploads and downloads cannot nest");
    }
    throw ConcurrentUse("two threads use one manager at the same time: order them, or give each its own");
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
  void leave() noexcept { inside_.store(nullptr, std::memory_order_release); }

 private:
  std::atomic<const void*> inside_{nullptr};
};

}  // namespace swapmm::runtime
