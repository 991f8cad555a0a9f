// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::runtime {

/// Returns an address that identifies the calling thread. Exported, so that the program and all libraries share one
/// function.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT inline const void* this_thread() {
  static thread_local const char token = 0;
  return &token;
}

/// Admits one caller at a time; a second caller gets an exception and does not wait. Threads that share a manager must
/// order their calls, and this detects if they do not.
class Gate {
 public:
  /// A caller's stay inside. The gate opens again when this is destroyed. May be empty.
  class Stay {
   public:
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    ~Stay() {
      if (gate_ == nullptr) return;
      gate_->operation_ = {};
      gate_->inside_.store(nullptr, std::memory_order_release);
    }
    /// True if the caller is inside.
    explicit operator bool() const { return gate_ != nullptr; }
    /// Sets the name of the operation that the caller runs, for errors. The text must outlive the stay.
    void runs(std::string_view operation) noexcept { gate_->operation_ = operation; }

   private:
    friend class Gate;
    explicit Stay(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };

  /// Throws NestedOperation or ConcurrentUse if a caller is inside.
  [[nodiscard]] Stay enter() {
    const void* inside = nullptr;
    if (inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire)) return Stay(this);
    if (inside == this_thread()) {
      std::string operation(operation_);
      const std::string caller = operation.empty() ? "code that the manager runs, such as a planner,"
                                                   : "the callable of operation \"" + operation + "\"";
      const std::string text = caller + " calls the manager: operations, uploads and downloads cannot nest";
      throw NestedOperation(text, {.operation = std::move(operation)});
    }
    throw ConcurrentUse("two threads use one manager at the same time: order them, or give each its own manager");
  }
  /// Returns an empty stay if a caller is inside.
  [[nodiscard]] Stay try_enter() noexcept {
    const void* inside = nullptr;
    const bool entered = inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire);
    return Stay(entered ? this : nullptr);
  }
  /// Waits for another thread to leave. Returns an empty stay if this thread is already inside.
  [[nodiscard]] Stay enter_waiting() noexcept {
    for (;;) {
      const void* inside = nullptr;
      if (inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire)) return Stay(this);
      if (inside == this_thread()) return Stay(nullptr);
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<const void*> inside_{nullptr};  // the thread that is inside
  std::string_view operation_;                // that the thread runs
};

}  // namespace swapmm::runtime
