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
  /// A caller's stay inside: the gate opens again when it is destroyed, and nowhere else. It may be none.
  class Stay {
   public:
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    ~Stay() {
      if (gate_ == nullptr) return;
      gate_->operation_ = {};
      gate_->inside_.store(nullptr, std::memory_order_release);
    }
    /// The caller is inside.
    explicit operator bool() const { return gate_ != nullptr; }
    /// For errors: the caller, who is inside, runs this operation. The text must exist as long as the stay.
    void runs(std::string_view operation) noexcept { gate_->operation_ = operation; }

   private:
    friend class Gate;
    explicit Stay(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };

  /// Throws NestedOperation or ConcurrentUse if somebody is inside.
  [[nodiscard]] Stay enter() {
    const void* inside = nullptr;
    if (inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire)) return Stay(this);
    if (inside == this_thread()) {
      std::string operation(operation_);
      const std::string text = "the callable of operation \"" + operation +
                               "\" calls the manager: operations, uploads and downloads cannot nest";
      throw NestedOperation(text, {.operation = std::move(operation)});
    }
    throw ConcurrentUse("two threads use one manager at the same time: order them, or give each its own manager");
  }
  /// None if somebody is inside.
  [[nodiscard]] Stay try_enter() noexcept {
    const void* inside = nullptr;
    const bool entered = inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire);
    return Stay(entered ? this : nullptr);
  }
  /// Waits for another thread to leave. None if this thread is inside already.
  [[nodiscard]] Stay enter_waiting() noexcept {
    for (;;) {
      const void* inside = nullptr;
      if (inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire)) return Stay(this);
      if (inside == this_thread()) return Stay(nullptr);
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<const void*> inside_{nullptr};  // the thread
  std::string_view operation_;                // that the thread runs
};

}  // namespace swapmm::runtime
