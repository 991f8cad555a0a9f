// SPDX-License-Identifier: Apache-2.0
#pragma once

// A backend around a backend, in which one chosen call goes wrong in one chosen way. Tests loop over the calls, so
// that every place where an API can fail is a place where the library was seen to survive it.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/fault_plan.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/error.hpp>

namespace swapmm {

/// The plan, and what has happened, behind all handles of one Faulty backend.
class FaultState {
 public:
  FaultPlan plan;

  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] std::uint64_t fired() const { return fired_; }
  [[nodiscard]] std::uint64_t calls(FaultClass fault_class) const {
    return calls_[static_cast<std::size_t>(fault_class)];
  }
  /// Forgets the calls and the faults so far, a lost device too. Events that failed stay failed.
  void restart(const FaultPlan& with) {
    plan = with;
    calls_ = {};
    fired_ = 0;
    lost_ = false;
  }

  /// Counts a call; the mode in which it goes wrong, if it does. Throws what fails before anything is done.
  std::optional<FaultMode> gate(FaultClass fault_class) {
    const std::uint64_t call = ++calls_[static_cast<std::size_t>(fault_class)];
    if (lost_) throw injected_error(plan);
    if (plan.n == 0 || plan.fault_class != fault_class || !applicable(fault_class, plan.mode)) return std::nullopt;
    if (call != plan.n && !(plan.mode == FaultMode::for_ever && call > plan.n)) return std::nullopt;
    return plan.mode;
  }
  void count_fired() { ++fired_; }
  void lose_device() { lost_ = true; }

  /// Of each queue: it waits for something that failed as planned, and its next event will say so.
  std::array<std::optional<FaultPlan>, queue_count> failing;

 private:
  std::array<std::uint64_t, fault_class_count> calls_{};
  std::uint64_t fired_ = 0;
  bool lost_ = false;
};

template <class B>
class Faulty {
 public:
  /// An object whose first use may fail, as planned.
  template <class Inner>
  struct Lazy {
    Inner inner;
    mutable std::optional<FaultPlan> fails_at_use;

    void use() const {
      if (const auto plan = std::exchange(fails_at_use, std::nullopt)) throw injected_error(*plan);
    }
  };

  class DeviceMemory {
   private:
    friend class Faulty;
    explicit DeviceMemory(Lazy<typename B::DeviceMemory> object) : object_(std::move(object)) {}
    Lazy<typename B::DeviceMemory> object_;
  };

  class HostMemory {
   public:
    [[nodiscard]] std::byte* data() { return object_.inner.data(); }
    [[nodiscard]] const std::byte* data() const { return object_.inner.data(); }
    [[nodiscard]] typename B::HostMemory& inner() { return object_.inner; }

   private:
    friend class Faulty;
    explicit HostMemory(Lazy<typename B::HostMemory> object) : object_(std::move(object)) {}
    Lazy<typename B::HostMemory> object_;
  };

  class Address {
   public:
    /// Throws where the address, or the memory it lies in, fails at its first use.
    [[nodiscard]] const typename B::Address& inner() const {
      object_.use();
      return object_.inner;
    }

   private:
    friend class Faulty;
    explicit Address(Lazy<typename B::Address> object) : object_(std::move(object)) {}
    Lazy<typename B::Address> object_;
  };

  class Event {
   private:
    friend class Faulty;
    explicit Event(Lazy<typename B::Event> object) : object_(std::move(object)) {}
    Lazy<typename B::Event> object_;
    std::optional<FaultPlan> failed_;  // the work before this point, as planned
  };

  using Queue = typename B::Queue;
  using NativeEvent = typename B::NativeEvent;
  using WaitList = typename B::WaitList;

  template <class T>
  struct View : B::template View<T> {
    View(const Address& address, std::size_t count) : B::template View<T>(address.inner(), count) {}
  };

  explicit Faulty(B inner, const FaultPlan& plan = {})
      : inner_(std::move(inner)), state_(std::make_shared<FaultState>()) {
    state_->plan = plan;
  }

  [[nodiscard]] B& inner() { return inner_; }

  /// Calls that went wrong so far. Those of the modes late and lazy show later, or never.
  [[nodiscard]] std::uint64_t fired() const { return state_->fired(); }
  [[nodiscard]] std::uint64_t calls(FaultClass fault_class) const { return state_->calls(fault_class); }
  /// Forgets what was, counts from 0 again, and injects this from now on; {} for nothing.
  void restart(const FaultPlan& plan) { state_->restart(plan); }
  /// For the test's own operations to call.
  void fault_point() {
    if (!state_->gate(FaultClass::user_callback)) return;
    state_->count_fired();
    throw CallbackFault(injected_error(state_->plan).what());
  }

  [[nodiscard]] const Capabilities& capabilities() const { return inner_.capabilities(); }

  [[nodiscard]] DeviceMemory allocate(Bytes size) {
    return DeviceMemory(make(FaultClass::device_allocation, [&] { return inner_.allocate(size); }));
  }
  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind kind) {
    const FaultClass fault_class =
        kind == HostKind::pinned ? FaultClass::pinned_allocation : FaultClass::pageable_allocation;
    return HostMemory(make(fault_class, [&] { return inner_.allocate_host(size, kind); }));
  }
  [[nodiscard]] Address address(DeviceMemory& memory, Bytes offset, Bytes size) {
    auto made = make(FaultClass::address_creation, [&] { return inner_.address(memory.object_.inner, offset, size); });
    // Memory that the API allocates at its first use is used through an address.
    if (auto plan = std::exchange(memory.object_.fails_at_use, std::nullopt)) made.fails_at_use = plan;
    return Address(std::move(made));
  }
  [[nodiscard]] Event make_event() {
    return Event(make(FaultClass::event_creation, [&] { return inner_.make_event(); }));
  }

  void copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes size,
                      std::span<const Event* const> waits, Event& event) {
    copy(FaultClass::copy_to_device, QueueKind::h2d, to, from, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_to_device(to.object_.inner, from.object_.inner, from_offset, size, w, event.object_.inner);
    });
  }
  void copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes size,
                    std::span<const Event* const> waits, Event& event) {
    copy(FaultClass::copy_to_host, QueueKind::d2h, from, to, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_to_host(to.object_.inner, to_offset, from.object_.inner, size, w, event.object_.inner);
    });
  }

  void wait(QueueKind queue, std::span<const Event* const> waits) {
    call(FaultClass::barrier_wait, [&] {
      inner_.wait(queue, inner_events(waits));
      pass_on_failure(queue, waits);
    });
  }
  void record(QueueKind queue, Event& event) {
    const auto mode = enter(FaultClass::record);
    event.object_.use();
    if (mode == FaultMode::slow) delay(queue);
    inner_.record(queue, event.object_.inner);
    end_span(queue, mode, event);
    leave(mode);
  }
  void flush(QueueKind queue) {
    call(FaultClass::flush, [&] { inner_.flush(queue); });
  }

  [[nodiscard]] Queue& queue() {
    const auto mode = enter(FaultClass::queue_access);
    if (mode == FaultMode::slow) delay(QueueKind::compute);
    leave(mode);
    return inner_.queue();
  }
  [[nodiscard]] WaitList wait_list(std::span<const Event* const> waits) {
    const auto mode = enter(FaultClass::queue_access);
    WaitList list = inner_.wait_list(inner_events(waits));
    pass_on_failure(QueueKind::compute, waits);
    leave(mode);
    return list;
  }
  void adopt(Event& event, NativeEvent native) {
    const auto mode = enter(FaultClass::adopt);
    event.object_.use();
    inner_.adopt(event.object_.inner, std::move(native));
    end_span(QueueKind::compute, mode, event);
    leave(mode);
  }

  [[nodiscard]] EventStatus status(const Event& event) {
    if (state_->lost()) return EventStatus::failed;
    EventStatus result = EventStatus::running;
    call(FaultClass::status_query, [&] { result = inner_.status(event.object_.inner); });
    return result == EventStatus::complete && event.failed_ ? EventStatus::failed : result;
  }
  void wait(const Event& event) {
    call(FaultClass::host_wait, [&] { inner_.wait(event.object_.inner); });
    if (event.failed_) throw injected_error(*event.failed_);
  }
  void finish() {
    try {
      call(FaultClass::finish, [&] { inner_.finish(); });
    } catch (const BackendError&) {
      inner_.finish();  // nothing runs any more, whatever is thrown
      throw;
    }
  }

  void set_timing(bool on) {
    call(FaultClass::timing, [&] { inner_.set_timing(on); });
  }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event& from, const Event& to) {
    std::optional<std::chrono::nanoseconds> result;
    call(FaultClass::timing, [&] { result = inner_.elapsed(from.object_.inner, to.object_.inner); });
    if (from.failed_ || to.failed_) return std::nullopt;
    return result;
  }

  void note_host_access(const HostMemory& memory, Bytes offset, Bytes size, bool write) requires
      requires(B b, const typename B::HostMemory& host) {
    b.note_host_access(host, offset, size, write);
  }
  { inner_.note_host_access(memory.object_.inner, offset, size, write); }

 private:
  using InnerEvent = typename B::Event;

  static constexpr bool can_delay = requires(B b) { b.delay(QueueKind::compute); };

  /// The mode in which this call goes wrong after it was accepted, if it does.
  std::optional<FaultMode> enter(FaultClass fault_class) {
    const auto mode = state_->gate(fault_class);
    if (!mode || (*mode == FaultMode::slow && !can_delay)) return std::nullopt;
    state_->count_fired();
    if (*mode == FaultMode::device_lost) {
      state_->lose_device();
      inner_.finish();  // nothing of a lost device touches memory any more
    }
    if (*mode == FaultMode::device_lost || *mode == FaultMode::once || *mode == FaultMode::for_ever) {
      throw injected_error(state_->plan);
    }
    return mode;
  }
  void leave(std::optional<FaultMode> mode) {
    if (mode == FaultMode::blind) throw injected_error(state_->plan);
  }
  template <class Call>
  void call(FaultClass fault_class, Call&& inner_call) {
    const auto mode = enter(fault_class);
    inner_call();
    leave(mode);
  }

  template <class Make>
  auto make(FaultClass fault_class, Make&& make_inner) {
    const auto mode = enter(fault_class);
    Lazy<decltype(make_inner())> made{make_inner(), std::nullopt};
    if (mode == FaultMode::lazy) made.fails_at_use = state_->plan;
    leave(mode);
    return made;
  }

  template <class Copy>
  void copy(FaultClass fault_class, QueueKind queue, const Address& address, const HostMemory& host,
            std::span<const Event* const> waits, Event& event, Copy&& inner_copy) {
    const auto mode = enter(fault_class);
    address.object_.use();
    host.object_.use();
    event.object_.use();
    pass_on_failure(queue, waits);
    if (mode == FaultMode::late || state_->failing[index(queue)]) {
      // Its place in the queue stays, so that it fails when it would have ended.
      inner_.wait(queue, inner_events(waits));
      inner_.record(queue, event.object_.inner);
    } else {
      if (mode == FaultMode::slow) delay(queue);
      inner_copy(inner_events(waits));
    }
    end_span(queue, mode, event);
    leave(mode);
  }

  std::span<const InnerEvent* const> inner_events(std::span<const Event* const> events) {
    scratch_.clear();
    for (const Event* event : events) scratch_.push_back(&event->object_.inner);
    return scratch_;
  }
  /// Work behind an event that failed fails too.
  void pass_on_failure(QueueKind queue, std::span<const Event* const> waits) {
    for (const Event* event : waits) {
      if (event->failed_) state_->failing[index(queue)] = event->failed_;
    }
  }
  /// The event now stands for all work on the queue since the one before.
  void end_span(QueueKind queue, std::optional<FaultMode> mode, Event& event) {
    event.failed_ = std::exchange(state_->failing[index(queue)], std::nullopt);
    if (mode == FaultMode::late) event.failed_ = state_->plan;
  }
  void delay(QueueKind queue) {
    if constexpr (can_delay) inner_.delay(queue);
  }

  B inner_;
  std::shared_ptr<FaultState> state_;
  std::vector<const InnerEvent*> scratch_;
};

}  // namespace swapmm
