// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>
#include <type_traits>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/core/core.hpp>
#include <swapmm/runtime/order/backend_scopes.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// One operation, from bringing in its bundle to recording the point after its work. The caller is inside the manager
/// until this is destroyed. If it is destroyed before complete(), the operation has failed, and the tensors that it was
/// to write are undefined.
template <Backend B>
class RunningOperation {
 public:
  using Rec = Record<B>;

  /// Queues everything that comes before the operation. If it throws, nothing is queued for the operation. With
  /// `as_list`, the caller passes wait_list() to the operation itself. `request` must outlive this.
  RunningOperation(Core<B>& core, const Request<B>& request, bool as_list);
  RunningOperation(const RunningOperation&) = delete;
  RunningOperation& operator=(const RunningOperation&) = delete;
  ~RunningOperation();

  /// Copies the callable if the plan runs the operation again later: before complete(), because a copy may throw.
  template <class Kept, class Callable>
  void prepare_to_keep(Callable&& callable) {
    if (!is_repeated()) return;
    session_.state.kept.template prepare<Kept>(brought_.repeated, request_, std::forward<Callable>(callable));
  }
  /// Keeps the callable that was copied: after complete().
  void keep() noexcept {
    if (is_repeated()) session_.state.kept.keep(brought_.repeated);
  }
  /// Whether it follows a plan.
  [[nodiscard]] bool is_followed() const { return brought_.followed; }
  /// How often the plan that it follows runs it again.
  [[nodiscard]] std::uint32_t times_repeated() const {
    return is_repeated() ? session_.state.executor.times_repeated(brought_.repeated) : 0;
  }
  /// True if the operation is to run once more at once, for a comparison of what it writes. One that updates something
  /// never runs again.
  [[nodiscard]] bool is_checked_again() const {
    return checked_ && request_.replayable && !request_.again &&
           std::ranges::none_of(request_.items, [](const auto& item) { return item.access == Access::update; });
  }

  // ---- for the callable

  [[nodiscard]] const Core<B>& core() const { return core_; }
  [[nodiscard]] B& backend() const { return store_.backend; }
  [[nodiscard]] const Request<B>& request() const { return request_; }
  /// The work area; null if there is none.
  [[nodiscard]] const typename B::Address* scratch() const { return brought_.grant.scratch; }
  /// A part of the work area, which must be there. `offset` must be aligned as views are.
  [[nodiscard]] const typename B::Address& scratch_part(Bytes offset, Bytes size) {
    return session_.translate({"the work area of operation ", request_.name}, [&]() -> const typename B::Address& {
      return *store_.addresses.at(brought_.grant.scratch_offset + offset, size);
    });
  }
  /// True if the operation's accesses are compared with what it declares.
  [[nodiscard]] bool is_checked() const { return checked_; }
  [[nodiscard]] AccessCheck<B>& access_check() { return session_.access_check(); }

  /// Queues work of the library that is a part of the operation. Errors are thrown as errors of the operation. Until
  /// own_work_is_next() is over, such work changes nothing but the work area: if it fails, all values are as before.
  template <class Queue_it>
  void queue_own(Queue_it&& queue_it) {
    session_.translate(who(), [&] { store_.issue(std::forward<Queue_it>(queue_it)); });
  }
  void own_work_is_next(bool next) { changes_nothing_ = next; }
  /// See Session::spare_event().
  [[nodiscard]] typename B::Event& spare_event(std::size_t number) {
    return session_.translate(who(), [&]() -> typename B::Event& { return session_.spare_event(number); });
  }
  /// What the operation's work waits for if it is to begin after all that was queued so far.
  [[nodiscard]] typename B::WaitList waits_for_own_work();
  /// Makes what is queued next wait for the end of the operation's work, which may be on any queue. Throws WorkFailed
  /// if it has failed.
  void await(typename B::NativeEvent end);

  [[nodiscard]] bool in_bundle(const TensorKey<B>& tensor) const;
  /// The address of a part of a tensor of the bundle.
  const typename B::Address& address(const Rec& record, Bytes offset, Bytes size);
  /// The place of a tensor of the bundle, as an offset in an allocation of the backend.
  [[nodiscard]] typename AddressBook<B>::InArena in_arena(const Rec& record) {
    return session_.translate({"tensor ", record.name},
                              [&] { return store_.addresses.in_arena(record.device.offset); });
  }

  /// The backend's scope around the callable. call() enters and checks it. An entrance whose caller queues the work
  /// between two calls does so itself, before complete(), and on one thread.
  using Scope = decltype(around_operation(std::declval<B&>(), std::string_view()));
  [[nodiscard]] Scope enter_scope();
  void check_scope(Scope& scope);

  /// Runs the callable inside the backend's scope. Errors of the backend are thrown as errors of the operation.
  template <class Callable>
  auto call(Callable&& callable) -> decltype(callable()) {
    Scope scope = enter_scope();
    if constexpr (std::is_void_v<decltype(callable())>) {
      callable();
      check_scope(scope);
    } else {
      auto made = callable();
      check_scope(scope);
      return made;
    }
  }

  /// Returns the wait list, for an operation that takes it. If this throws, nothing is queued, as with the constructor.
  [[nodiscard]] typename B::WaitList wait_list();
  /// Called if the operation took the wait list and returned no event: its work may not wait, so the queue waits here.
  void wait_after_all();

  // ---- the end

  /// Called when the callable has queued its work on the compute queue.
  void complete();
  /// Called when the callable has queued its work, and this event after it. `sole_status_source`: no other point
  /// reports how the work ended, because the work may be on any queue.
  void complete(typename B::NativeEvent event, bool sole_status_source);
  /// Called when an operation that took the wait list has queued its work. `event` is the end of the work, or empty:
  /// then the queue waits for the list here.
  void complete_after_list(typename B::NativeEvent event);
  /// Called instead of complete() if the API refused the work, so that nothing was queued. All values are as before the
  /// operation, except those that a followed plan had dropped because the operation was to overwrite them. Work areas
  /// are freed, and a plan is left.
  void cancel() noexcept {
    if (!ended_) give_up();
  }

 private:
  [[nodiscard]] bool is_repeated() const { return brought_.repeated != none && brought_.followed; }
  // `record_point` records the point after the operation in the event that it receives.
  template <class RecordPoint>
  void complete_with(RecordPoint&& record_point, bool sole_status_source) {
    ended_ = true;
    end_work(std::forward<RecordPoint>(record_point), sole_status_source);
    // The operation is complete: failures from here on are errors of the next call, not of this operation.
    // What nobody needs any more is dead for the plan. On demand its tensors are used below, too.
    if (request_.again && brought_.followed) core_.reclaim_destroyed(session_);
    try {
      session_.controller.complete(request_, brought_.followed, point_);
    } catch (...) {
      session_.postpone(std::current_exception(), {"swapping behind operation ", request_.name});
      session_.controller.abandon_plan("its commands could not be queued");
      session_.state.failures.check_lost();
    }
    if (checked_) check_after();
  }

  [[nodiscard]] Who who() const { return {"operation ", request_.name}; }

  // ---- before the callable

  void start(bool as_list);

  // The stamp distinguishes the bundle's tensors from all others.
  void stamp_bundle();

  void queue_waits(bool as_list);

  // Called if the operation was not queued. Values are unchanged.
  void give_up() noexcept;

  // ---- after the callable

  template <class RecordPoint>
  void end_work(RecordPoint&& record_point, bool sole_status_source) {
    Timeline<B>& timeline = store_.timeline;
    timeline.gained(QueueKind::compute, waits_);
    const bool tells_alone = sole_status_source && !session_.state.in_capture;
    if (!brought_.recorded && !tells_alone) {
      timeline.unrecorded(QueueKind::compute, label_.issue);
      book_values(session_.state.executor.current_point());
      return;
    }
    try {
      if (brought_.recorded) {
        store_.issue([&] { record_point(slot_->event); });
        book_values(timeline.commit(QueueKind::compute, label_));
      } else {
        store_.issue([&] { record_point(timeline.next_without_point()); });
        timeline.commit_without_point(label_);
        book_values(session_.state.executor.current_point());
      }
    } catch (...) {
      // The work has ended, because issue() has waited for it; only the point after it is missing.
      const QueuePoint at = timeline.issued(QueueKind::compute);
      timeline.unrecorded(QueueKind::compute, label_.issue);
      // Must run before other events are queried, because they would consume the failure.
      const std::exception_ptr news = after_unrecorded(std::current_exception(), sole_status_source);
      book_values(at);
      session_.postpone(news, {"recording the end of operation ", request_.name});
      if (brought_.followed) session_.controller.abandon_plan("an event could not be recorded");
      brought_.followed = false;
      checked_ = false;  // whether it succeeded is not known
      session_.state.failures.check_lost();
    }
  }

  void book_values(QueuePoint at) noexcept;

  // The API refused the point after an operation, and no other point reports whether the work failed. Its event is
  // checked nevertheless, and another point is requested; if that fails, the work counts as failed. Returns the failure
  // to report.
  std::exception_ptr after_unrecorded(const std::exception_ptr& refusal, bool sole_status_source) noexcept;

  void check_after();

  // Called if the callable threw. The tensors that it was to write are undefined from now on.
  void fail() noexcept;

  Core<B>& core_;
  typename Core<B>::Entry entry_;  // leaves the manager; destroyed last
  Session<B>& session_;
  Store<B>& store_;
  const Request<B>& request_;
  typename PlanController<B>::Brought brought_;
  typename Timeline<B>::Waits waits_;
  typename Timeline<B>::Slot* slot_ = nullptr;
  CommandLabel label_;
  std::uint64_t stamp_ = 0;
  QueuePoint point_ = 0;          // at or after the end of the work
  bool checked_ = false;          // its accesses are checked
  bool changes_nothing_ = false;  // what is being queued for it
  bool ended_ = false;
};

// Defined outside the class, so not inline: if a backend's library instantiates this class, programs do not compile it
// again. What only these functions call on the way of each operation is inline: that saves a tenth of the instructions.

template <Backend B>
RunningOperation<B>::RunningOperation(Core<B>& core, const Request<B>& request, bool as_list)
    : core_(core), entry_(core), session_(*entry_.session()), store_(session_.state.store), request_(request) {
  try {
    start(as_list);
    entry_.runs(request_.name);
  } catch (...) {
    session_.rethrow(who());
  }
}

template <Backend B>
RunningOperation<B>::~RunningOperation() {
  if (!ended_) fail();
}

template <Backend B>
bool RunningOperation<B>::in_bundle(const TensorKey<B>& tensor) const {
  return tensor.record->use.stamp == stamp_ && tensor.record->tensor.serial == tensor.serial;
}

template <Backend B>
const typename B::Address& RunningOperation<B>::address(const Record<B>& record, Bytes offset, Bytes size) {
  if (offset.value == 0 && size == record.bytes) return *record.device.address;
  const Bytes alignment = store_.backend.capabilities().view_alignment;
  if (offset.value % alignment.value != 0) {
    throw misaligned_view(request_.name, name_of(record), offset, alignment);
  }
  return session_.translate({"a part of tensor ", record.name}, [&]() -> const typename B::Address& {
    return *store_.addresses.at(record.device.offset + offset, size);
  });
}

template <Backend B>
typename RunningOperation<B>::Scope RunningOperation<B>::enter_scope() {
  return session_.translate(who(), [&] { return around_operation(store_.backend, request_.name); });
}

template <Backend B>
void RunningOperation<B>::check_scope(Scope& scope) {
  session_.translate(who(), [&] { scope.check(); });
}

template <Backend B>
typename B::WaitList RunningOperation<B>::wait_list() {
  try {
    return store_.backend.wait_list(waits_.span());
  } catch (...) {
    give_up();
    session_.rethrow(who());
  }
}

template <Backend B>
typename B::WaitList RunningOperation<B>::waits_for_own_work() {
  typename B::Event& event = spare_event(0);
  const typename B::Event* const waits = &event;
  return session_.translate(who(), [&] {
    store_.issue([&] {
      store_.backend.record(QueueKind::compute, event);
      store_.backend.flush(QueueKind::compute);  // the work may be on another queue
    });
    return store_.backend.wait_list({&waits, 1});
  });
}

template <Backend B>
void RunningOperation<B>::await(typename B::NativeEvent end) {
  if constexpr (std::is_constructible_v<bool, const typename B::NativeEvent&>) {
    if (!end) return;  // the work is on the compute queue
  }
  typename B::Event& event = spare_event(1);
  const auto adopt = [&] { store_.backend.adopt(event, std::move(end)); };
  if constexpr (requires { store_.backend.is_of_queue(end); }) {
    // What waits on this backend's queues does not tell that it waited for work that failed.
    session_.translate(who(), [&] {
      if (store_.backend.is_of_queue(end)) return;
      store_.issue(adopt);
      try {
        store_.backend.wait(event);
      } catch (const BackendError& error) {
        if (error.kind == BackendError::Kind::device_lost) throw;
        throw QueueFailure{QueueKind::compute, label_, nullptr, std::current_exception()};
      }
    });
  } else {
    const typename B::Event* const waits = &event;
    queue_own([&] {
      adopt();
      store_.backend.wait(QueueKind::compute, {&waits, 1});
    });
  }
}

template <Backend B>
void RunningOperation<B>::wait_after_all() {
  if (waits_.count == 0) return;
  session_.translate(who(), [&] { store_.issue([&] { store_.backend.wait(QueueKind::compute, waits_.span()); }); });
}

template <Backend B>
void RunningOperation<B>::complete() {
  complete_with([&](typename B::Event& slot) { store_.backend.record(QueueKind::compute, slot); }, false);
}

template <Backend B>
void RunningOperation<B>::complete(typename B::NativeEvent event, bool sole_status_source) {
  complete_with([&](typename B::Event& slot) { store_.backend.adopt(slot, std::move(event)); }, sole_status_source);
}

template <Backend B>
void RunningOperation<B>::complete_after_list(typename B::NativeEvent event) {
  bool sole_status_source = true;
  if constexpr (std::is_constructible_v<bool, const typename B::NativeEvent&>) {
    sole_status_source = static_cast<bool>(event);
    if (!event) wait_after_all();
  }
  complete(std::move(event), sole_status_source);
}

template <Backend B>
inline void RunningOperation<B>::start(bool as_list) {
  stamp_bundle();
  session_.controller.bring(request_, stamp_, brought_);
  try {
    checked_ = !brought_.followed && session_.options.check_access;
    if (checked_) session_.access_check().before(request_);
    label_.what = CommandLabel::What::operation;
    label_.issue = store_.timeline.next_issue();
    label_.set_name(request_.name);
    waits_ = store_.timeline.waits(QueueKind::compute, brought_.grant.needs);
    if (brought_.recorded) slot_ = &store_.timeline.next(QueueKind::compute);
    queue_waits(as_list);
  } catch (...) {
    give_up();
    throw;
  }
}

template <Backend B>
inline void RunningOperation<B>::stamp_bundle() {
  stamp_ = ++session_.stamp;
  for (const auto& item : request_.items) {
    const TensorKey<B> tensor{item.record, item.serial};
    if (!tensor.exists()) {
      const auto position = static_cast<std::size_t>(&item - request_.items.data());
      throw no_tensor_in_bundle(request_.name, position, name_of(tensor));
    }
    if (item.record->use.stamp == stamp_) throw twice_in_bundle(request_.name, name_of(*item.record));
    if (item.record->tensor.constant && item.access != Access::read) {
      throw constant_written("operation " + in_quotes(request_.name), name_of(*item.record));
    }
    item.record->use.stamp = stamp_;
  }
}

template <Backend B>
inline void RunningOperation<B>::queue_waits(bool as_list) {
  const bool timed = store_.timing && !brought_.followed && !request_.again && session_.controller.logging();
  const bool profiled = store_.profiler.active();
  const bool sampled = store_.sampler.active();
  if (as_list && !timed && !profiled && !sampled) return;
  store_.issue([&] {
    if (waits_.count != 0) {
      [[maybe_unused]] const auto around = annotate(store_.backend, AnnotationKind::device_wait, request_.name);
      store_.backend.wait(QueueKind::compute, waits_.span());
    }
    if (timed) store_.backend.record(QueueKind::compute, slot_->start);
    if (profiled) store_.profiler.begin(QueueKind::compute, request_.name, Bytes{});
    if (sampled) store_.sampler.begin(QueueKind::compute, Bytes{});
  });
  if (timed) label_.timing = session_.state.recorder.operation_timing();
  store_.timeline.gained(QueueKind::compute, waits_);
  waits_.count = 0;
}

template <Backend B>
void RunningOperation<B>::give_up() noexcept {
  ended_ = true;
  session_.controller.give_up(request_, brought_.grant.needs);
}

template <Backend B>
inline void RunningOperation<B>::book_values(QueuePoint at) noexcept {
  if (!request_.again) ++session_.operations;
  if (store_.profiler.active()) store_.profiler.end(QueueKind::compute, at);
  if (store_.sampler.active()) store_.sampler.end(QueueKind::compute);
  for (const auto& item : request_.items) {
    Rec& record = *item.record;
    record.device.busy.set(QueueKind::compute, at);
    if (item.access == Access::read) continue;
    record.device.ready.set(QueueKind::compute, at);
    record.device.valid = true;
    record.device.issue = label_.issue;
    record.host.valid = false;
    record.value.written_in = store_.iteration;
  }
  point_ = at;
}

template <Backend B>
std::exception_ptr RunningOperation<B>::after_unrecorded(const std::exception_ptr& refusal,
                                                         bool sole_status_source) noexcept {
  if (Failures<B>::is_device_lost(refusal)) return refusal;
  const auto unknown = [&] { return std::make_exception_ptr(QueueFailure{QueueKind::compute, label_, refusal}); };
  if (sole_status_source) return unknown();
  if (session_.state.in_capture) return refusal;  // nothing has run, and no event may be queried
  Timeline<B>& timeline = store_.timeline;
  try {
    // A call that throws may have recorded the event nevertheless. Then this event reports the status, and no later
    // one.
    if (store_.backend.status(slot_->event) == EventStatus::failed) {
      return std::make_exception_ptr(QueueFailure{QueueKind::compute, label_});
    }
    timeline.host_wait(timeline.everything());
    return refusal;
  } catch (const QueueFailure&) {
    return std::current_exception();
  } catch (...) {
    return Failures<B>::is_device_lost(std::current_exception()) ? std::current_exception() : unknown();
  }
}

template <Backend B>
void RunningOperation<B>::check_after() {
  try {
    session_.access_check().after(request_);
    if (request_.replayable) session_.access_check().compare_runs(request_);
  } catch (const AccessViolation&) {
    throw;
  } catch (...) {
    session_.postpone(std::current_exception(), {"checking operation ", request_.name});
    session_.state.failures.check_lost();
  }
}

template <Backend B>
void RunningOperation<B>::fail() noexcept {
  session_.state.recorder.mark_broken();
  Clock after = brought_.grant.needs;
  try {
    store_.timeline.mark(QueueKind::compute);
    after.join(Clock::point(QueueKind::compute, store_.timeline.issued(QueueKind::compute)));
  } catch (...) {
    store_.timeline.unrecorded(QueueKind::compute, label_.issue);
    session_.state.failures.drain_quietly();
  }
  for (const auto& item : request_.items) {
    item.record->device.busy.join(after);
    if (item.access != Access::read && !changes_nothing_) store_.lose(*item.record);
  }
  session_.controller.failed(request_, brought_.followed, after);
}

}  // namespace swapmm::runtime
