// SPDX-License-Identifier: Apache-2.0
#pragma once

// A backend that wraps another one and makes one chosen call fail in one chosen way. Tests loop over the calls, so
// every call that can fail in an API has failed in a test.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/testing/fault_plan.hpp>
#include <swapmm/backend/testing/fault_state.hpp>
#include <swapmm/backend/testing/neighbour_memory_of.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/blocks/encoding_types.hpp>

namespace swapmm {

/// A backend whose calls fail as planned. Otherwise it behaves like the backend B. Handles of one Faulty share the
/// plan. May be used by one thread at a time.
template <class B>
class Faulty {
 public:
  /// An object whose first use may fail, as the fault plan says.
  template <class Inner>
  using Lazy = detail::LazilyFailing<Inner>;
  /// Such an object of B.
  template <class Inner>
  class Wrapped {
   public:
    /// Of a NeighbourMemory.
    [[nodiscard]] std::size_t path() const { return object_.inner.path(); }

   private:
    friend class Faulty;
    explicit Wrapped(Lazy<Inner> object) : object_(std::move(object)) {}
    Lazy<Inner> object_;
  };

  /// @{
  /// The types of B; the last three memories if it has them.
  using Queue = typename B::Queue;
  using NativeEvent = typename B::NativeEvent;
  using WaitList = typename B::WaitList;
  using Where = CallSite;  ///< the place of a call
  using DeviceMemory = Wrapped<typename B::DeviceMemory>;
  using NeighbourMemory = Wrapped<typename detail::NeighbourMemoryOf<B>::Type>;
  using Encoder = Wrapped<typename runtime::EncodingTypes<B>::Encoder>;
  using EncodedMemory = Wrapped<typename runtime::EncodingTypes<B>::Memory>;
  /// @}

  /// Host memory of B.
  class HostMemory {
   public:
    /// @{
    /// The first byte.
    [[nodiscard]] std::byte* data() { return object_.inner.data(); }
    [[nodiscard]] const std::byte* data() const { return object_.inner.data(); }
    /// @}
    /// The memory of B.
    [[nodiscard]] typename B::HostMemory& inner() { return object_.inner; }

   private:
    friend class Faulty;
    explicit HostMemory(Lazy<typename B::HostMemory> object) : object_(std::move(object)) {}
    Lazy<typename B::HostMemory> object_;
  };

  /// An address of B.
  class Address {
   public:
    /// Throws if the address, or its memory, fails at its first use.
    [[nodiscard]] const typename B::Address& inner() const {
      object_.use();
      return object_.inner;
    }
    /// The argument() of B's address. Throws like inner().
    [[nodiscard]] Argument argument() const requires requires(const typename B::Address& address) {
      address.argument();
    }
    { return inner().argument(); }

   private:
    friend class Faulty;
    explicit Address(Lazy<typename B::Address> object) : object_(std::move(object)) {}
    Lazy<typename B::Address> object_;
  };

  /// An event of B.
  class Event {
   private:
    friend class Faulty;
    explicit Event(Lazy<typename B::Event> object) : object_(std::move(object)) {}
    Lazy<typename B::Event> object_;
    std::optional<FaultPlan> failed_;       // a failure of the work before this point
    std::optional<FaultPlan> file_failed_;  // the same of a file's work, which later work does not share
  };

  /// A view of B.
  template <class T>
  struct View : B::template View<T> {
    View() = default;
    /// The first `count` elements at that address. Throws if the address fails at its first use.
    View(const Address& address, std::size_t count) : B::template View<T>(address.inner(), count) {}
  };

  /// Wraps `inner`, whose calls fail as the plan says; {} for no fault.
  explicit Faulty(B inner, const FaultPlan& plan = {})
      : inner_(std::move(inner)), state_(std::make_shared<detail::FaultState>(plan)) {}

  /// The wrapped backend.
  [[nodiscard]] B& inner() { return inner_; }

  /// Number of calls that failed so far. Failures of the modes late and lazy appear later, or never.
  [[nodiscard]] std::uint64_t fired() const { return state_->fired(); }
  /// Number of calls of a class so far.
  [[nodiscard]] std::uint64_t calls(FaultClass fault_class) const { return state_->calls(fault_class); }
  /// Resets all counts, and injects this fault from now on; {} for none.
  void restart(const FaultPlan& plan) { state_->restart(plan); }
  /// Lets the chooser decide which calls fail, until restart().
  void choose_by(FaultChooser chooser) { state_->choose_by(std::move(chooser)); }
  /// A call in the test's own operations that may throw CallbackFault.
  void fault_point(Where where = Where::current()) {
    const auto plan = state_->gate(FaultClass::user_callback, where);
    if (!plan) return;
    state_->count_fired();
    throw CallbackFault(injected_error(*plan).what());
  }
  /// Wraps the work that the test's own operations queue on the compute queue.
  template <class Queue_it>
  void launch(Queue_it&& queue_it, Where where = Where::current()) {
    const auto plan = enter(FaultClass::launch, where);
    if (is(plan, FaultMode::slow)) delay(QueueKind::compute);
    if (is(plan, FaultMode::late)) fail(QueueKind::compute);
    queue_it();
    leave(plan);
  }

  /// @{
  /// See swapmm::Backend. A call fails if the plan says so.
  [[nodiscard]] const Capabilities& capabilities() const { return inner_.capabilities(); }

  [[nodiscard]] DeviceMemory allocate(Bytes size, Where where = Where::current()) {
    return DeviceMemory(make(FaultClass::device_allocation, where, [&] { return inner_.allocate(size); }));
  }
  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind kind, Where where = Where::current()) {
    const FaultClass fault_class =
        kind == HostKind::pinned ? FaultClass::pinned_allocation : FaultClass::pageable_allocation;
    return HostMemory(make(fault_class, where, [&] { return inner_.allocate_host(size, kind); }));
  }
  [[nodiscard]] Address address(DeviceMemory& memory, Bytes offset, Bytes size, Where where = Where::current()) {
    auto made =
        make(FaultClass::address_creation, where, [&] { return inner_.address(memory.object_.inner, offset, size); });
    // Memory that an API allocates only at its first use is first used through an address, so the fault passes to it.
    if (auto plan = std::exchange(memory.object_.fails_at_use, std::nullopt)) made.fails_at_use = plan;
    return Address(std::move(made));
  }
  [[nodiscard]] Event make_event(Where where = Where::current()) {
    return Event(make(FaultClass::event_creation, where, [&] { return inner_.make_event(); }));
  }

  void copy_to_device(const Address& to, const HostMemory& from, Bytes from_offset, Bytes size,
                      std::span<const Event* const> waits, Event& event, Where where = Where::current()) {
    const auto plan = enter(FaultClass::copy_to_device, where);
    copy(plan, QueueKind::h2d, to, from, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_to_device(to.object_.inner, from.object_.inner, from_offset, size, w, event.object_.inner);
    });
  }
  void copy_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes size,
                    std::span<const Event* const> waits, Event& event, Where where = Where::current()) {
    const auto plan = enter(FaultClass::copy_to_host, where);
    copy(plan, QueueKind::d2h, from, to, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_to_host(to.object_.inner, to_offset, from.object_.inner, size, w, event.object_.inner);
    });
  }

  void copy_part_to_device(const Address& to, Bytes to_offset, const HostMemory& from, Bytes from_offset, Bytes size,
                           std::span<const Event* const> waits, Event& event,
                           Where where = Where::current()) requires FileBackend<B> {
    const auto plan = enter(FaultClass::copy_to_device, where);
    copy(plan, QueueKind::staged_h2d, to, from, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_part_to_device(to.object_.inner, to_offset, from.object_.inner, from_offset, size, w,
                                 event.object_.inner);
    });
  }
  void copy_part_to_host(HostMemory& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                         std::span<const Event* const> waits, Event& event,
                         Where where = Where::current()) requires FileBackend<B> {
    const auto plan = enter(FaultClass::copy_to_host, where);
    copy(plan, QueueKind::staged_d2h, from, to, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_part_to_host(to.object_.inner, to_offset, from.object_.inner, from_offset, size, w,
                               event.object_.inner);
    });
  }
  void copy_on_device(const Address& to, Bytes to_offset, const Address& from, Bytes from_offset, Bytes size,
                      Where where = Where::current()) requires DeviceCopyBackend<B> {
    launch([&] { inner_.copy_on_device(to.inner(), to_offset, from.inner(), from_offset, size); }, where);
  }
  void read_file(FileMemory& file, Bytes file_offset, HostMemory& to, Bytes to_offset, Bytes size,
                 std::span<const Event* const> waits, Event& event,
                 Where where = Where::current()) requires FileBackend<B> {
    const auto plan = enter(FaultClass::read_file, where);
    use_file(plan, QueueKind::file_read, to, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.read_file(file, file_offset, to.object_.inner, to_offset, size, w, event.object_.inner);
    });
  }
  void write_file(FileMemory& file, Bytes file_offset, const HostMemory& from, Bytes from_offset, Bytes size,
                  std::span<const Event* const> waits, Event& event,
                  Where where = Where::current()) requires FileBackend<B> {
    const auto plan = enter(FaultClass::write_file, where);
    use_file(plan, QueueKind::file_write, from, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.write_file(file, file_offset, from.object_.inner, from_offset, size, w, event.object_.inner);
    });
  }

  [[nodiscard]] NeighbourMemory allocate_at(const Neighbour& neighbour, Bytes size, std::size_t path,
                                            Where where = Where::current()) requires NeighbourBackend<B> {
    return NeighbourMemory(
        make(FaultClass::device_allocation, where, [&] { return inner_.allocate_at(neighbour, size, path); }));
  }
  void copy_from_neighbour(const Address& to, const NeighbourMemory& from, Bytes from_offset, Bytes size,
                           std::span<const Event* const> waits, Event& event,
                           Where where = Where::current()) requires NeighbourBackend<B> {
    const auto plan = enter(FaultClass::copy_to_device, where);
    copy(plan, neighbour_in_queue(from.path()), to, from, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_from_neighbour(to.object_.inner, from.object_.inner, from_offset, size, w, event.object_.inner);
    });
  }
  void copy_to_neighbour(NeighbourMemory& to, Bytes to_offset, const Address& from, Bytes size,
                         std::span<const Event* const> waits, Event& event,
                         Where where = Where::current()) requires NeighbourBackend<B> {
    const auto plan = enter(FaultClass::copy_to_host, where);
    copy(plan, neighbour_out_queue(to.path()), from, to, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_to_neighbour(to.object_.inner, to_offset, from.object_.inner, size, w, event.object_.inner);
    });
  }
  void read_neighbour(const NeighbourMemory& from, Bytes offset, std::span<std::byte> to,
                      Where where = Where::current()) requires NeighbourBackend<B> {
    call(FaultClass::host_wait, where, [&] { inner_.read_neighbour(from.object_.inner, offset, to); });
  }
  void write_neighbour(NeighbourMemory& to, Bytes offset, std::span<const std::byte> from,
                       Where where = Where::current()) requires NeighbourBackend<B> {
    call(FaultClass::host_wait, where, [&] { inner_.write_neighbour(to.object_.inner, offset, from); });
  }

  [[nodiscard]] Encoder make_encoder(Bytes largest, Where where = Where::current()) requires EncodingBackend<B> {
    return Encoder(make(FaultClass::device_allocation, where, [&] { return inner_.make_encoder(largest); }));
  }
  [[nodiscard]] EncodedMemory allocate_encoded(const ZeroElements& elements,
                                               Where where = Where::current()) requires EncodingBackend<B> {
    return EncodedMemory(make(FaultClass::pinned_allocation, where, [&] { return inner_.allocate_encoded(elements); }));
  }
  void copy_encoded_to_host(Encoder& encoder, EncodedMemory& to, const Address& from, const ZeroElements& elements,
                            std::span<const Event* const> waits, Event& event,
                            Where where = Where::current()) requires EncodingBackend<B> {
    const auto plan = enter(FaultClass::copy_to_host, where);
    encoder.object_.use();
    copy(plan, QueueKind::d2h, from, to, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_encoded_to_host(encoder.object_.inner, to.object_.inner, from.object_.inner, elements, w,
                                  event.object_.inner);
    });
  }
  void copy_encoded_to_device(Encoder& encoder, const Address& to, const EncodedMemory& from,
                              const ZeroElements& elements, std::span<const Event* const> waits, Event& event,
                              Where where = Where::current()) requires EncodingBackend<B> {
    const auto plan = enter(FaultClass::copy_to_device, where);
    encoder.object_.use();
    copy(plan, QueueKind::h2d, to, from, waits, event, [&](std::span<const InnerEvent* const> w) {
      inner_.copy_encoded_to_device(encoder.object_.inner, to.object_.inner, from.object_.inner, elements, w,
                                    event.object_.inner);
    });
  }
  void read_encoded(const EncodedMemory& from, const ZeroElements& elements, Bytes offset, std::span<std::byte> to,
                    Where where = Where::current()) requires EncodingBackend<B> {
    call(FaultClass::host_wait, where, [&] { inner_.read_encoded(from.object_.inner, elements, offset, to); });
  }
  void write_encoded(EncodedMemory& to, const ZeroElements& elements, Bytes offset, std::span<const std::byte> from,
                     Where where = Where::current()) requires EncodingBackend<B> {
    call(FaultClass::host_wait, where, [&] { inner_.write_encoded(to.object_.inner, elements, offset, from); });
  }

  void wait(QueueKind queue, std::span<const Event* const> waits, Where where = Where::current()) {
    const auto plan = enter(FaultClass::barrier_wait, where);
    if (is(plan, FaultMode::slow)) delay(queue);
    inner_.wait(queue, inner_events(waits));
    pass_on_failure(queue, waits);
    leave(plan);
  }
  void record(QueueKind queue, Event& event, Where where = Where::current()) {
    const auto plan = enter(FaultClass::record, where);
    event.object_.use();
    if (is(plan, FaultMode::slow)) delay(queue);
    if (is(plan, FaultMode::late) && failures_stick()) fail(queue);
    inner_.record(queue, event.object_.inner);
    end_span(queue, plan, event);
    leave(plan);
  }
  void flush(QueueKind queue, Where where = Where::current()) {
    call(FaultClass::flush, where, [&] { inner_.flush(queue); });
  }

  [[nodiscard]] Queue& queue(Where where = Where::current()) {
    const auto plan = enter(FaultClass::queue_access, where);
    if (is(plan, FaultMode::slow)) delay(QueueKind::compute);
    leave(plan);
    return inner_.queue();
  }
  [[nodiscard]] WaitList wait_list(std::span<const Event* const> waits, Where where = Where::current()) {
    const auto plan = enter(FaultClass::queue_access, where);
    WaitList list = inner_.wait_list(inner_events(waits));
    pass_on_failure(QueueKind::compute, waits);
    leave(plan);
    return list;
  }
  void adopt(Event& event, NativeEvent native, Where where = Where::current()) {
    const auto plan = enter(FaultClass::adopt, where);
    event.object_.use();
    if (is(plan, FaultMode::late) && failures_stick()) {
      fail(QueueKind::compute);
      inner_.record(QueueKind::compute, event.object_.inner);
    } else {
      inner_.adopt(event.object_.inner, std::move(native));
    }
    end_span(QueueKind::compute, plan, event);
    leave(plan);
  }

  [[nodiscard]] EventStatus status(const Event& event, Where where = Where::current()) {
    if (state_->lost()) return EventStatus::failed;
    EventStatus result = EventStatus::running;
    call(FaultClass::status_query, where, [&] { result = inner_.status(event.object_.inner); });
    const bool failed = event.failed_ || event.file_failed_;
    return result == EventStatus::complete && failed ? EventStatus::failed : result;
  }
  void wait(const Event& event, Where where = Where::current()) {
    call(FaultClass::host_wait, where, [&] { inner_.wait(event.object_.inner); });
    if (event.failed_) throw injected_error(*event.failed_);
    if (event.file_failed_) throw injected_error(*event.file_failed_);
  }
  void finish(Where where = Where::current()) {
    try {
      call(FaultClass::finish, where, [&] { inner_.finish(); });
    } catch (const BackendError&) {
      inner_.finish();  // nothing runs any more, whatever is thrown
      throw;
    }
  }

  void set_timing(bool on, Where where = Where::current()) {
    call(FaultClass::timing, where, [&] { inner_.set_timing(on); });
  }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event& from, const Event& to,
                                                                Where where = Where::current()) {
    std::optional<std::chrono::nanoseconds> result;
    call(FaultClass::timing, where, [&] { result = inner_.elapsed(from.object_.inner, to.object_.inner); });
    if (from.failed_ || to.failed_ || from.file_failed_ || to.file_failed_) return std::nullopt;
    return result;
  }

  [[nodiscard]] bool can_wait_for(const Faulty& other) const requires TurnTakingBackend<B> {
    return inner_.can_wait_for(other.inner_);
  }
  [[nodiscard]] bool is_of_queue(const NativeEvent& event) requires requires(B b) { b.is_of_queue(event); }
  { return inner_.is_of_queue(event); }
  void note_host_access(const HostMemory& memory, Bytes offset, Bytes size, bool write) requires
      requires(B b, const typename B::HostMemory& host) {
    b.note_host_access(host, offset, size, write);
  }
  { inner_.note_host_access(memory.object_.inner, offset, size, write); }
  /// @}

 private:
  using InnerEvent = typename B::Event;
  // Functions that only backends for tests have.
  static constexpr bool can_delay = requires(B b) { b.delay(QueueKind::compute); };
  static constexpr bool can_fail = requires(B b) { b.fail(QueueKind::compute); };

  [[nodiscard]] bool failures_stick() const { return inner_.capabilities().failures_stick; }
  [[nodiscard]] static bool is(const std::optional<FaultPlan>& plan, FaultMode mode) {
    return plan && plan->mode == mode;
  }
  /// Returns whether a call of the class can fail in that mode on the wrapped backend.
  [[nodiscard]] bool possible(FaultClass fault_class, FaultMode mode) const {
    if (mode == FaultMode::slow) return can_delay;
    const bool uses_file = fault_class == FaultClass::read_file || fault_class == FaultClass::write_file;
    if (mode == FaultMode::late && uses_file) return can_fail;
    if (mode == FaultMode::late) return can_fail || (!failures_stick() && fault_class != FaultClass::launch);
    return true;
  }

  /// Counts the call, and throws if it fails at once. Returns the fault plan if it fails after it was accepted.
  std::optional<FaultPlan> enter(FaultClass fault_class, const Where& where) {
    const auto plan = state_->gate(fault_class, where);
    if (!plan || !possible(fault_class, plan->mode)) return std::nullopt;
    state_->count_fired();
    if (plan->mode == FaultMode::device_lost) {
      state_->lose_device(*plan);
      inner_.finish();  // a lost device no longer touches memory
    }
    if (plan->mode == FaultMode::device_lost || plan->mode == FaultMode::once || plan->mode == FaultMode::for_ever) {
      throw injected_error(*plan);
    }
    return plan;
  }
  void leave(const std::optional<FaultPlan>& plan) {
    if (is(plan, FaultMode::blind)) throw injected_error(*plan);
  }
  template <class Call>
  void call(FaultClass fault_class, const Where& where, Call&& inner_call) {
    const auto plan = enter(fault_class, where);
    inner_call();
    leave(plan);
  }

  template <class Make>
  auto make(FaultClass fault_class, const Where& where, Make&& make_inner) {
    const auto plan = enter(fault_class, where);
    Lazy<decltype(make_inner())> made{make_inner(), std::nullopt};
    if (is(plan, FaultMode::lazy)) made.fails_at_use = plan;
    leave(plan);
    return made;
  }

  /// `other`: the memory at the other end.
  template <class Memory, class Copy>
  void copy(const std::optional<FaultPlan>& plan, QueueKind queue, const Address& address, const Memory& other,
            std::span<const Event* const> waits, Event& event, Copy&& inner_copy) {
    address.object_.use();
    other.object_.use();
    event.object_.use();
    pass_on_failure(queue, waits);
    if (is(plan, FaultMode::late) || state_->failing[index(queue)]) {
      // Its place in the queue is kept, so that it fails at the time at which it would have ended.
      inner_.wait(queue, inner_events(waits));
      if (failures_stick()) fail(queue);
      inner_.record(queue, event.object_.inner);
    } else {
      if (is(plan, FaultMode::slow)) delay(queue);
      inner_copy(inner_events(waits));
    }
    end_span(queue, plan, event);
    leave(plan);
  }

  template <class Use>
  void use_file(const std::optional<FaultPlan>& plan, QueueKind queue, const HostMemory& host,
                std::span<const Event* const> waits, Event& event, Use&& inner_use) {
    host.object_.use();
    event.object_.use();
    event.failed_.reset();
    event.file_failed_.reset();
    if (is(plan, FaultMode::late)) event.file_failed_ = plan;
    if (queue == QueueKind::file_write) {  // it must not write what work that failed has left
      for (const Event* const waited : waits) {
        if (waited->failed_) event.file_failed_ = waited->failed_;
      }
    }
    if (event.file_failed_) fail(queue);
    if (is(plan, FaultMode::slow)) delay(queue);
    inner_use(inner_events(waits));
    leave(plan);
  }

  std::span<const InnerEvent* const> inner_events(std::span<const Event* const> events) {
    scratch_.clear();
    for (const Event* event : events) scratch_.push_back(&event->object_.inner);
    return scratch_;
  }
  /// Makes work after a failed event fail, too.
  void pass_on_failure(QueueKind queue, std::span<const Event* const> waits) {
    for (const Event* event : waits) {
      if (event->failed_) state_->failing[index(queue)] = event->failed_;
    }
  }
  /// Makes the event report failures of all work on the queue since the previous event.
  void end_span(QueueKind queue, const std::optional<FaultPlan>& plan, Event& event) {
    event.failed_ = std::exchange(state_->failing[index(queue)], std::nullopt);
    event.file_failed_.reset();
    if (is(plan, FaultMode::late) && !failures_stick()) event.failed_ = plan;
  }
  void delay(QueueKind queue) {
    if constexpr (can_delay) inner_.delay(queue);
  }
  void fail(QueueKind queue) {
    if constexpr (can_fail) inner_.fail(queue);
  }

  B inner_;
  std::shared_ptr<detail::FaultState> state_;
  std::vector<const InnerEvent*> scratch_;
};

}  // namespace swapmm
