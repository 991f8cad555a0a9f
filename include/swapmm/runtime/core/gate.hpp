// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm::runtime {

/// Returns an address that identifies the calling thread; it is even. Exported, so that the program and all libraries
/// share one function.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT inline const void* this_thread() {
  alignas(2) static thread_local const char token[2] = {};
  return &token[0];
}

/// Admits one caller at a time. By default, a second caller gets an exception and does not wait: threads that share a
/// manager must order their calls, and this detects if they do not.
class Gate {
 public:
  /// `callers_wait`: callers wait while another thread is inside, and enter in the order in which they came.
  explicit Gate(bool callers_wait = false) : callers_wait_(callers_wait) {}

  /// A caller's stay inside. The gate opens again when this is destroyed. May be empty.
  class Stay {
   public:
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    ~Stay() {
      if (gate_ == nullptr) return;
      gate_->operation_ = {};
      gate_->inside_.store(nullptr, std::memory_order_release);
      if (gate_->callers_wait_) gate_->next_turn();
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

  /// Throws NestedOperation if this thread is inside. If another thread is, throws ConcurrentUse or waits.
  [[nodiscard]] Stay enter() {
    const void* inside = nullptr;
    if (callers_wait_) {
      if (wait_for_turn()) return Stay(this);
      inside = this_thread();
    } else if (enter_alone(inside)) {
      return Stay(this);
    }
    if (inside == this_thread()) throw nested();
    throw ConcurrentUse("two threads use one manager at the same time: order them, or give each its own manager");
  }
  /// Returns an empty stay if a caller is inside.
  [[nodiscard]] Stay try_enter() noexcept { return try_enter_as(this_thread()); }
  /// The same for what any thread may do at any time, and what does not take long. Nobody is refused because of it:
  /// others wait.
  [[nodiscard]] Stay try_enter_briefly() noexcept { return try_enter_as(briefly(this_thread())); }
  /// Waits for another thread to leave. Returns an empty stay if this thread is already inside.
  [[nodiscard]] Stay enter_waiting() noexcept { return enter_waiting_as(this_thread()); }
  /// The same for what does not take long, and what any thread may do at any time. Nobody is refused because of it.
  [[nodiscard]] Stay enter_waiting_briefly() noexcept { return enter_waiting_as(briefly(this_thread())); }

  /// Names the thread that serves the faults of host views, by its this_thread(); null: there is none. It waits for the
  /// caller that is inside, and callers wait for it.
  void serve_from(const void* thread) noexcept { server_.store(thread, std::memory_order_release); }
  /// Host views that there are; for any thread, also one that is not inside.
  std::atomic<std::size_t> host_views{0};

  /// True if this thread is inside.
  [[nodiscard]] bool has_caller() const noexcept { return is_this_thread(inside_.load(std::memory_order_relaxed)); }

 private:
  static constexpr int yields_before_sleep = 32;

  // Who is inside for a short time.
  static const void* briefly(const void* thread) noexcept { return static_cast<const char*>(thread) + 1; }
  static bool is_brief(const void* inside) noexcept { return (reinterpret_cast<std::uintptr_t>(inside) & 1U) != 0; }
  static bool is_this_thread(const void* inside) noexcept {
    return inside == this_thread() || inside == briefly(this_thread());
  }

  Stay enter_waiting_as(const void* who) noexcept {
    if (callers_wait_) return Stay(wait_for_turn() ? this : nullptr);
    for (;;) {
      const void* inside = nullptr;
      if (inside_.compare_exchange_strong(inside, who, std::memory_order_acquire)) return Stay(this);
      if (is_this_thread(inside)) return Stay(nullptr);
      std::this_thread::yield();
    }
  }

  Stay try_enter_as(const void* who) noexcept {
    if (callers_wait_) return Stay(take_free_turn() ? this : nullptr);
    for (;;) {
      const void* inside = nullptr;
      if (inside_.compare_exchange_strong(inside, who, std::memory_order_acquire)) return Stay(this);
      if (is_this_thread(inside) || !is_brief(inside)) return Stay(nullptr);
      std::this_thread::yield();
    }
  }

  // Returns false, and who is inside, if this thread is not to wait for that.
  bool enter_alone(const void*& inside) noexcept {
    int yields = 0;
    while (!inside_.compare_exchange_strong(inside, this_thread(), std::memory_order_acquire)) {
      const void* const server = server_.load(std::memory_order_acquire);
      const bool one_serves = server != nullptr && (inside == server || this_thread() == server);
      if (is_this_thread(inside)) inside = this_thread();
      if (inside == this_thread() || !(one_serves || is_brief(inside))) return false;
      inside = nullptr;
      if (++yields < yields_before_sleep) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
    return true;
  }

  [[nodiscard]] NestedOperation nested() const {
    std::string operation(operation_);
    const std::string caller = operation.empty() ? "code that the manager runs, such as a planner,"
                                                 : "the callable of operation \"" + operation + "\"";
    const std::string text = caller + " calls the manager: operations, uploads and downloads cannot nest";
    return {text, {.operation = std::move(operation)}};
  }

  // ---- the queue of callers, if callers wait. Each takes the next number, and enters when the number is called.

  // Returns false if this thread is inside.
  bool wait_for_turn() noexcept {
    if (inside_.load(std::memory_order_relaxed) == this_thread()) return false;
    // Sequentially consistent, as in next_turn(): either this thread sees the call, or the caller before sees that this
    // thread waits.
    const std::uint32_t number = numbers_taken_.fetch_add(1);
    int yields = 0;
    for (std::uint32_t called = called_.load(); called != number; called = called_.load()) {
      if (yields < yields_before_sleep) {
        ++yields;
        std::this_thread::yield();
      } else {
        called_.wait(called);
      }
    }
    inside_.store(this_thread(), std::memory_order_relaxed);
    return true;
  }
  bool take_free_turn() noexcept {
    std::uint32_t number = called_.load(std::memory_order_acquire);
    if (!numbers_taken_.compare_exchange_strong(number, number + 1)) return false;
    inside_.store(this_thread(), std::memory_order_relaxed);
    return true;
  }
  void next_turn() noexcept {
    const std::uint32_t next = called_.load(std::memory_order_relaxed) + 1;
    called_.store(next);
    if (numbers_taken_.load() != next) called_.notify_all();
  }

  std::atomic<const void*> inside_{nullptr};  // the thread that is inside
  std::atomic<const void*> server_{nullptr};  // see serve_from()
  std::string_view operation_;                // that the thread runs
  const bool callers_wait_;
  std::atomic<std::uint32_t> numbers_taken_{0};
  std::atomic<std::uint32_t> called_{0};  // the number whose turn it is; the next one to be taken if nobody is inside
};

}  // namespace swapmm::runtime
