// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include <swapmm/base/export.hpp>

namespace swapmm::pages {

/// The access that faulted. `unknown`: the processor does not tell.
enum class Want : std::uint8_t { read, write, unknown };

/// What makes the blocks of an area usable.
class FaultTarget {
 public:
  FaultTarget() = default;
  FaultTarget(const FaultTarget&) = delete;
  FaultTarget& operator=(const FaultTarget&) = delete;
  virtual ~FaultTarget() = default;
  /// True if the calling thread holds what serve() waits for, so that it must not wait for serve().
  /// Async-signal-safe.
  [[nodiscard]] virtual bool is_held_by_caller() const noexcept = 0;
  /// Makes the block with this byte usable. Called by the service's thread. Throws if there is no value.
  virtual void serve(std::size_t offset, Want want) = 0;
};

/// A fault that a thread waits for. On that thread's stack.
struct FaultRequest {
  enum class State : std::uint32_t { waiting, served, refused };
  FaultTarget* target = nullptr;
  std::size_t offset = 0;
  Want want = Want::unknown;
  std::atomic<std::uint32_t> state{static_cast<std::uint32_t>(State::waiting)};
  std::array<char, 400> error{};  ///< why it was refused
  FaultRequest* next = nullptr;

  [[nodiscard]] bool was_served() const noexcept {
    return state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(State::served);
  }
};

/// A thread that serves faults, one at a time, in the order in which they came. The thread that faulted cannot do it:
/// it is in a signal handler, and may be on a small stack and hold locks.
class FaultService {
 public:
  /// Starts the thread, which blocks all signals. It calls `starts` before it serves, and `ends` at its end. Returns
  /// after `starts`. Throws std::system_error if there can be no thread.
  SWAPMM_TEMPLATE_EXPORT FaultService(std::function<void()> starts, std::function<void()> ends);
  FaultService(const FaultService&) = delete;
  FaultService& operator=(const FaultService&) = delete;
  SWAPMM_TEMPLATE_EXPORT ~FaultService();

  /// Passes the request to the thread, and returns when it is served or refused. Async-signal-safe.
  void wait_for(FaultRequest& request) noexcept;

 private:
  void run();
  static void serve(FaultRequest& request) noexcept;

  std::function<void()> starts_;
  std::function<void()> ends_;
  std::atomic<FaultRequest*> requests_{nullptr};  // the latest first
  std::atomic<std::uint32_t> signal_{0};          // changes when there is something to do
  std::atomic<bool> stops_{false};
  std::atomic<std::uint32_t> started_{0};
  int process_;
  std::thread thread_;
};

}  // namespace swapmm::pages
