// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/budget_change.hpp>
#include <swapmm/runtime/core/capturing.hpp>
#include <swapmm/runtime/core/course.hpp>
#include <swapmm/runtime/core/entry.hpp>
#include <swapmm/runtime/core/host_access.hpp>
#include <swapmm/runtime/core/parts.hpp>
#include <swapmm/runtime/moves/access_check.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// The inside of a manager: lets one caller in at a time, runs operations and the host's accesses by the plan that is
/// followed or on demand, and turns failures into the facade's exceptions.
///
/// It outlives its manager while tensors refer to it; close() gives back everything but itself.
template <Backend B>
class Core : public std::enable_shared_from_this<Core<B>> {
 public:
  using Rec = Record<B>;

  Core(B backend, const Options& options, std::shared_ptr<ProgramBook> book)
      : options_(options), book_(std::move(book)) {
    inside_ = std::make_unique<Inside>(std::move(backend), options_, *book_);
    book_->prepare_budget(inside_->store.budget());
    book_->use_budget(inside_->store.budget());
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() { close(); }

  // ---- tensors

  Rec& create(std::string_view name, Bytes bytes, Lifetime lifetime) {
    const Entry entry(*this);
    RecordTable<B>& records = inside_->store.records;
    inside_->demand.reserve(records.size() + 1);
    return records.add(name, bytes, lifetime, inside_->store.iteration);
  }

  /// The tensor's handle is gone. Never throws; safe from any thread, while another caller is inside, and after
  /// close().
  void destroy(Rec& record) noexcept {
    if (!gate_.try_enter()) {
      Rec* first = dead_.load(std::memory_order_relaxed);
      do {
        record.next_dead.store(first, std::memory_order_relaxed);
      } while (!dead_.compare_exchange_weak(first, &record, std::memory_order_release, std::memory_order_relaxed));
      return;
    }
    if (!closed()) {
      bury_waiting();
      bury(record);
    }
    gate_.leave();
  }

  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }
  /// For tests, which look from within a call; null once closed.
  [[nodiscard]] const Parts<B>* parts() const { return inside_.get(); }

  // ---- iterations

  void begin_iteration(std::string_view name) {
    const Entry entry(*this);
    translate({"beginning iteration ", name}, [&] { inside_->course.begin(name); });
  }

  void end_iteration() noexcept {
    if (!gate_.try_enter()) {
      ends_late_.store(true, std::memory_order_release);  // inside an operation: the next call ends it
      return;
    }
    if (!closed()) finish_iteration();
    gate_.leave();
  }

  // ---- operations: begin, then the callable, then complete or fail. The gate stays closed in between.

  struct Current {
    Request<B> request;
    Grant<B> grant;
    typename Timeline<B>::Waits waits;
    typename Timeline<B>::Slot* slot = nullptr;
    CommandLabel label;
    bool recorded = true;
    bool followed = false;
  };

  /// Everything is on its way to the device when this returns. Throws with nothing queued for the operation.
  /// With `as_list`, the caller hands current().waits to the operation itself.
  void begin(const Request<B>& request, bool as_list) {
    gate_.enter();
    try {
      check_open();
      translate({"operation ", request.name}, [&] { prepare(request, as_list); });
      gate_.runs(request.name);
    } catch (...) {
      gate_.leave();
      throw;
    }
  }

  /// Runs a call of the backend around the operation's callable; its errors come out as those of the operation.
  template <class Call>
  auto around_callable(Call&& call) -> decltype(call()) {
    return translate({"operation ", current_.request.name}, std::forward<Call>(call));
  }

  /// For an operation that takes the wait list. Throws with nothing queued, as begin() does.
  [[nodiscard]] typename B::WaitList wait_list() {
    try {
      return translate({"operation ", current_.request.name},
                       [&] { return inside_->store.backend.wait_list(current_.waits.span()); });
    } catch (...) {
      give_up_operation();
      gate_.leave();
      throw;
    }
  }

  /// The operation took the wait list and gave no event: maybe nothing of it waits. Then the queue does, from here on.
  void wait_after_all() {
    if (current_.waits.count == 0) return;
    try {
      translate({"operation ", current_.request.name}, [&] {
        inside_->store.issue([&] { inside_->store.backend.wait(QueueKind::compute, current_.waits.span()); });
      });
    } catch (...) {
      fail();
      throw;
    }
  }

  [[nodiscard]] Current& current() { return current_; }
  [[nodiscard]] B& backend() { return inside_->store.backend; }
  [[nodiscard]] bool in_bundle(const Rec& record) const { return record.stamp == stamp_; }
  /// The address of a part of a tensor of the current bundle.
  const typename B::Address& address(const Rec& record, Bytes offset, Bytes size) {
    if (offset.value == 0 && size == record.bytes) return *record.device.address;
    const Bytes alignment = inside_->store.backend.capabilities().view_alignment;
    if (offset.value % alignment.value != 0) {
      throw misaligned_view(current_.request.name, name_of(record), offset, alignment);
    }
    return translate({"a part of tensor ", record.name}, [&]() -> const typename B::Address& {
      return *inside_->store.addresses.at(record.device.offset + offset, size);
    });
  }

  /// The callable has queued its work. `record_point` records the point behind it in the slot's event. `only_teller`:
  /// no other point tells how the work ended, for it may be on any queue.
  template <class Record>
  void complete(Record&& record_point, bool only_teller = false) {
    try {
      const bool recorded = finish_operation(std::forward<Record>(record_point), only_teller);
      // The operation is booked: what fails from here on is the next call's error, not this operation's.
      try {
        after_operation();
      } catch (...) {
        postpone(std::current_exception(), {"swapping behind operation ", current_.request.name});
        inside_->course.abandon_plan("its commands could not be queued");
        inside_->failures.check_lost();
      }
      if (access_check_ != nullptr && recorded) check_after();  // else nobody knows that it did not fail
    } catch (...) {
      gate_.leave();
      throw;
    }
    gate_.leave();
  }

  /// The callable threw. What it was to write is undefined from now on.
  void fail() noexcept {
    Store<B>& store = inside_->store;
    inside_->recorder.mark_broken();
    Clock after = current_.grant.needs;
    try {
      store.timeline.mark(QueueKind::compute);
      after.join(Clock::point(QueueKind::compute, store.timeline.issued(QueueKind::compute)));
    } catch (...) {
      store.timeline.unrecorded(QueueKind::compute, current_.label.issue);
      inside_->failures.drain_quietly();
    }
    for (const auto& item : current_.request.items) {
      item.record->device.busy.join(after);
      if (item.access != Access::read) lose(*item.record);
    }
    if (current_.followed) {
      inside_->course.abandon_plan("an operation threw");
    } else {
      inside_->demand.end_scratch(current_.request.scratch, after);
    }
    gate_.leave();
  }

  // ---- the host's accesses

  /// Copies into the library's own memory before it returns. Waits only if both of the tensor's host slots are in
  /// use. A part of a tensor needs the tensor's value, and waits for it.
  void upload(Rec& record, Bytes offset, std::span<const std::byte> data) {
    const Entry entry(*this);
    const Who who = about_tensor("upload to tensor ", record);
    translate(who, [&] { inside_->host.upload(record, offset, data, who); });
  }

  /// Waits for the value and copies it out.
  void download(Rec& record, Bytes offset, std::span<std::byte> data) {
    const Entry entry(*this);
    const Who who = about_tensor("download of tensor ", record);
    translate(who, [&] { inside_->host.download(record, offset, data, who); });
  }

  /// Promises the value that the tensor has now. What it returns stays the caller's until end_promise().
  [[nodiscard]] PendingRead& promise(Rec& record, Bytes offset, std::span<std::byte> data) {
    const Entry entry(*this);
    const Who who = about_tensor("download of tensor ", record);
    PendingRead& read = reads_.take();
    try {
      translate(who, [&] { inside_->host.promise(read, record, offset, data, who); });
    } catch (...) {
      reads_.give_back(read);
      throw;
    }
    return read;
  }

  [[nodiscard]] bool collectable(const PendingRead& read) {
    if (read.state != PendingRead::State::waiting) return true;
    const Entry entry(*this);
    return translate({"asynchronous download of tensor ", read.tensor},
                     [&] { return inside_->store.timeline.ended(Clock::point(QueueKind::d2h, read.ready)); });
  }

  void collect(PendingRead& read) {
    if (read.state == PendingRead::State::waiting) {
      const Entry entry(*this);
      translate({"asynchronous download of tensor ", read.tensor},
                [&] { inside_->promises.collect(inside_->store, read); });
    }
    if (read.state == PendingRead::State::abandoned) {
      if (!closed()) inside_->failures.check_lost();
      throw lost_download(read.tensor);
    }
  }

  /// Collected or given up: the caller is done with it. Waits for another thread that is inside, if it was given up.
  void end_promise(PendingRead& read) noexcept {
    const bool entered = gate_.enter_waiting();
    if (!closed()) inside_->promises.cancel(read);  // one that is done may still stand in the list
    if (entered) gate_.leave();
    reads_.give_back(read);
  }

  // ---- captured iterations, of backends that can capture

  void begin_capture(std::string_view name) {
    const Entry entry(*this);
    translate({"capturing iteration ", name}, [&] { inside_->capturing.begin(name, operations_); });
  }
  [[nodiscard]] bool within_captured_round() {
    const Entry entry(*this);
    return inside_->capturing.within_round();
  }
  [[nodiscard]] auto end_capture() {
    const Entry entry(*this);
    return translate({"capturing iteration ", inside_->course.name()},
                     [&] { return inside_->capturing.end(operations_); });
  }
  /// The caller is about to throw.
  void give_up_capture() noexcept {
    try {
      const Entry entry(*this, false);
      translate({"capturing iteration ", inside_->course.name()}, [&] { inside_->capturing.give_up(); });
    } catch (...) {
      if (!closed()) inside_->failures.postpone(std::current_exception(), false);
    }
  }
  template <class Round>
  void replay(Round& round) {
    const Entry entry(*this);
    translate({"launching captured iteration ", inside_->course.name()}, [&] { inside_->capturing.replay(round); });
    operations_ += round.operations;
  }

  // ---- knowledge

  [[nodiscard]] Report report() {
    const Entry entry(*this, false);
    const Store<B>& store = inside_->store;
    Report report;
    report.device = store.backend.capabilities().device_name;
    report.host_shares_memory = store.backend.capabilities().host_shares_memory;
    report.device_budget = store.budget();
    report.budget_changes = inside_->budget_changes;
    report.device_used = store.used();
    report.device_peak = store.traffic.device_peak;
    report.host_used = store.pool.budget().in_use();
    report.host_peak = store.pool.budget().peak();
    report.pinned_used = store.pool.budget().pinned();
    report.pinned_slabs = store.pool.slabs();
    report.tensors = store.records.alive();
    report.operations = operations_;
    inside_->course.summarize(report);
    report.swap_ins = store.traffic.swap_ins;
    report.swap_outs = store.traffic.swap_outs;
    report.h2d = store.traffic.h2d;
    report.d2h = store.traffic.d2h;
    report.queue_waits = store.timeline.waits_queued();
    report.host_waits = store.timeline.host_waits();
    book_->summarize(report);
    return report;
  }

  // ---- times

  void start_profile() {
    const Entry entry(*this);
    Store<B>& store = inside_->store;
    if (store.profiler.active()) throw UsageError("a profile is being recorded already");
    if (inside_->in_capture) throw UsageError("start_profile() inside a captured iteration");
    translate({"starting a profile", {}}, [&] {
      store.timeline.host_wait(store.timeline.everything());
      store.start_profile();
    });
  }

  [[nodiscard]] bool profiling() {
    const Entry entry(*this, false);
    return inside_->store.profiler.active();
  }

  [[nodiscard]] Profile stop_profile() {
    const Entry entry(*this);
    Store<B>& store = inside_->store;
    if (!store.profiler.active()) throw UsageError("no profile is being recorded");
    return translate({"recording a profile", {}}, [&] {
      try {
        for (const QueueKind queue : all_queues) store.timeline.mark(queue);  // behind the profile's own events
        store.timeline.host_wait(store.timeline.everything());
        return store.stop_profile();
      } catch (...) {
        store.give_up_profile();
        throw;
      }
    });
  }

  /// See MemoryManager::set_budget().
  void set_budget(Bytes bytes) {
    const Entry entry(*this);
    if (!inside_->course.between_iterations()) {
      throw UsageError("set_budget() inside iteration " + in_quotes(inside_->course.name()) + ": end it first");
    }
    if (inside_->in_capture) throw UsageError("set_budget() inside a captured iteration");
    if (inside_->store.profiler.active()) throw UsageError("set_budget() while a profile is being recorded");
    translate({"setting the device budget to ", std::to_string(bytes.value)},
              [&] { BudgetChange<B>(*inside_, inside_->course, *book_).to(bytes); });
  }

  /// Waits until nothing is in flight.
  void synchronize() {
    const Entry entry(*this);
    translate({"synchronize", {}}, [&] { inside_->store.timeline.host_wait(inside_->store.timeline.everything()); });
  }

  [[nodiscard]] Machine machine() {
    const Entry entry(*this, false);
    return inside_->machine(*book_);
  }

  /// Ends everything: waits for a caller of another thread that is inside, and for the device; gives back its memory
  /// and the host's. Tensors and promises that still exist are empty from now on. Never throws.
  void close() noexcept {
    const bool entered = gate_.enter_waiting();  // not where an operation's callable ends the process
    if (!closed()) {
      if (!inside_->failures.lost()) inside_->failures.drain_quietly();
      inside_->promises.settle_all(inside_->store);
      access_check_.reset();
      scrub_all();
      keep_records();
      closed_.store(true, std::memory_order_release);
      inside_.reset();
    }
    if (entered) gate_.leave();
  }

 private:
  struct Inside : Parts<B> {
    Inside(B backend, const Options& options, ProgramBook& book)
        : Parts<B>(std::move(backend), options),
          course(*this, book, options),
          host(*this, course),
          capturing(*this, course) {}
    Course<B> course;
    HostAccess<B> host;
    Capturing<B> capturing;
  };

  // Lets the caller in, or says why not.
  class Entry {
   public:
    explicit Entry(Core& core, bool rethrow = true) : core_(core) {
      core.gate_.enter();
      try {
        core.check_open(rethrow);
      } catch (...) {
        core.gate_.leave();
        throw;
      }
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { core_.gate_.leave(); }

   private:
    Core& core_;
  };

  void check_open(bool rethrow = true) {
    if (closed()) throw UsageError("the manager of this tensor no longer exists");
    if (ends_late_.load(std::memory_order_acquire)) finish_iteration();
    if constexpr (CapturingBackend<B>) {
      if (inside_->store.backend.capturing() && !inside_->in_capture) {
        throw UsageError(
            "another manager of this backend is capturing an iteration, and would record this work into its graph");
      }
    }
    if (!rethrow) return;
    if (dead_.load(std::memory_order_relaxed) != nullptr) bury_waiting();
    inside_->failures.check();
  }

  // ---- errors

  // Runs `call`; failures of the backend come out as the facade's exceptions, with `who` in front.
  template <class Call>
  auto translate(const Who& who, Call&& call) -> decltype(call()) {
    try {
      return call();
    } catch (const QueueFailure& failure) {
      work_failed(failure);
    } catch (const BackendError& error) {
      inside_->failures.backend_failed(who, error);
    } catch (const OutOfMemory& error) {
      throw out_of_memory(who, error);
    } catch (const InternalError& error) {
      throw internal_error(who, error);
    }
  }

  [[noreturn]] void work_failed(const QueueFailure& failure) {
    const auto leave = [&] {
      inside_->recorder.mark_broken();
      inside_->course.abandon_plan("queued work failed");
    };
    try {
      throw inside_->failures.work_failed(failure, inside_->promises);
    } catch (...) {
      leave();
      throw;
    }
  }

  // An error that came too late for the call it belongs to.
  void postpone(const std::exception_ptr& error, const Who& who) noexcept {
    try {
      translate(who, [&] { std::rethrow_exception(error); });
    } catch (const WorkFailed&) {
      inside_->failures.postpone(std::current_exception(), true);
    } catch (...) {
      inside_->failures.postpone(std::current_exception(), false);
    }
  }

  static void lose(Rec& record) noexcept {
    record.device.valid = false;
    record.host.valid = false;
    record.absence = Absence::lost;
  }

  // The program's iteration is over; what fails now is the next call's error.
  void finish_iteration() noexcept {
    ends_late_.store(false, std::memory_order_relaxed);
    try {
      inside_->course.end();
    } catch (...) {
      postpone(std::current_exception(), {"ending iteration ", inside_->course.name()});
      inside_->course.abandon_plan("its end failed");
      inside_->recorder.mark_broken();
    }
  }

  // ---- the end of tensors

  // With Options::scrub. Of a device that is lost nobody can write anything.
  void scrub_all() noexcept {
    try {
      if (!inside_->failures.lost()) inside_->store.scrub_device();
    } catch (...) {  // NOLINT(bugprone-empty-catch): a driver that takes no copy any more; see docs/threat_model.md
    }
    inside_->store.scrub_host_memory();
  }

  // Handles refer to their records for as long as they live: without anything of a device, these stay until the last
  // handle goes.
  void keep_records() noexcept {
    inside_->store.records.swap(records_left_);
    for (Rec& record : records_left_) {
      record.device = {};
      record.host = {};
    }
  }

  void bury_waiting() noexcept {
    Rec* record = dead_.exchange(nullptr, std::memory_order_acquire);
    while (record != nullptr) {
      Rec* const next = record->next_dead.load(std::memory_order_relaxed);
      bury(*record);
      record = next;
    }
  }

  void bury(Rec& record) noexcept {
    inside_->store.records.end(record);
    inside_->recorder.destroyed(record);
    inside_->course.forget_upload(record);
    if (record.role != none && inside_->follower.active()) return;  // the plan still has its place; see Follower::bind
    inside_->reclaim(record);
  }

  // ---- operations

  void prepare(const Request<B>& request, bool as_list) {
    ++stamp_;
    for (const auto& item : request.items) {
      if (item.record->stamp == stamp_) {
        throw twice_in_bundle(request.name, name_of(*item.record));
      }
      item.record->stamp = stamp_;
    }
    // What can never fit is refused at once: before a plan is left, an iteration's times are waited for, or anything
    // else changes. (What a captured iteration does not expect is refused below.)
    const bool expected = inside_->course.expects(request);
    if (!expected && !inside_->in_capture) inside_->demand.check_fits(request);
    Store<B>& store = inside_->store;
    Follower<B>& follower = inside_->follower;
    current_.request = request;
    current_.slot = nullptr;
    current_.followed = false;
    current_.recorded = true;
    current_.label = {};
    try {
      if (inside_->course.follows(request, expected)) {
        current_.followed = true;
        current_.grant = follower.bring(request);
        current_.recorded = follower.current_is_recorded();
      } else {
        inside_->course.observe(request);
        current_.grant = inside_->demand.bring(request, stamp_);
        if (options_.check_access) check_before(request);
      }
      current_.label.what = CommandLabel::What::operation;
      current_.label.issue = store.timeline.next_issue();
      current_.label.set_name(request.name);
      current_.waits = store.timeline.waits(QueueKind::compute, current_.grant.needs);
      if (current_.recorded) current_.slot = &store.timeline.next(QueueKind::compute);
      queue_waits(as_list);
    } catch (const DroppedValue&) {
      inside_->course.keep_from_now_on(request);
      give_up_operation();
      throw;
    } catch (...) {
      give_up_operation();
      throw;
    }
  }

  void queue_waits(bool as_list) {
    Store<B>& store = inside_->store;
    const bool timed = store.timing && !current_.followed && inside_->course.logging();
    const bool profiled = store.profiler.active();
    const bool sampled = store.sampler.active();
    if (as_list && !timed && !profiled && !sampled) return;
    store.issue([&] {
      if (current_.waits.count != 0) {
        [[maybe_unused]] const auto around =
            annotate(store.backend, AnnotationKind::device_wait, current_.request.name);
        store.backend.wait(QueueKind::compute, current_.waits.span());
      }
      if (timed) store.backend.record(QueueKind::compute, current_.slot->start);
      if (profiled) store.profiler.begin(QueueKind::compute, current_.request.name, Bytes{});
      if (sampled) store.sampler.begin(QueueKind::compute, Bytes{});
    });
    if (timed) current_.label.timing = inside_->recorder.operation_timing();
    store.timeline.gained(QueueKind::compute, current_.waits);
    current_.waits.count = 0;
  }

  void check_before(const Request<B>& request) {
    if (access_check_ == nullptr) access_check_ = std::make_unique<AccessCheck<B>>(inside_->store, inside_->demand);
    // Poison takes the place of values that are to be overwritten: should the operation not come about, they stay.
    for (const auto& item : request.items) {
      Rec& record = *item.record;
      if (item.access != Access::write || !record.device.valid) continue;
      if (!record.host.valid) {
        inside_->store.ensure_block_for_swap_out(record);
        inside_->store.swap_out(record, inside_->store.before_swap_out(record));
      }
      record.device.valid = false;
    }
    access_check_->before(request);
  }

  void check_after() {
    try {
      access_check_->after(current_.request);
    } catch (const AccessViolation&) {
      throw;
    } catch (...) {
      postpone(std::current_exception(), {"checking operation ", current_.request.name});
      inside_->failures.check_lost();
    }
  }

  // The operation was not queued: whatever was brought stays, work areas and the plan do not.
  void give_up_operation() noexcept {
    inside_->recorder.mark_broken();
    if (current_.followed || inside_->follower.active()) {
      inside_->course.abandon_plan("an operation failed");
    } else {
      inside_->demand.end_scratch(current_.request.scratch, current_.grant.needs);
    }
  }

  static bool is_device_lost(const std::exception_ptr& error) noexcept {
    try {
      std::rethrow_exception(error);
    } catch (const BackendError& known) {
      return known.kind == BackendError::Kind::device_lost;
    } catch (...) {
      return false;
    }
  }

  // The point behind an operation was refused, and it alone would tell whether the work failed. It is looked at all the
  // same, and another one is asked for; where there is none, the work counts as failed. Returns what is to be told.
  std::exception_ptr after_unrecorded(const std::exception_ptr& refusal, bool only_teller) noexcept {
    if (is_device_lost(refusal)) return refusal;
    const auto unknown = [&] {
      return std::make_exception_ptr(QueueFailure{QueueKind::compute, current_.label, refusal});
    };
    if (only_teller) return unknown();
    Timeline<B>& timeline = inside_->store.timeline;
    try {
      // A call that throws may have recorded the event all the same: then that one tells, and no later one. In a
      // capture nothing has run, and no event may be asked.
      if (!inside_->in_capture && inside_->store.backend.status(current_.slot->event) == EventStatus::failed) {
        return std::make_exception_ptr(QueueFailure{QueueKind::compute, current_.label});
      }
      timeline.host_wait(timeline.everything());
      return refusal;
    } catch (const QueueFailure&) {
      return std::current_exception();
    } catch (...) {
      return is_device_lost(std::current_exception()) ? std::current_exception() : unknown();
    }
  }

  // Returns whether the point behind the operation is recorded.
  template <class Record>
  bool finish_operation(Record&& record_point, bool only_teller) {
    Store<B>& store = inside_->store;
    store.timeline.gained(QueueKind::compute, current_.waits);
    Sequence at = 0;
    if (current_.recorded) {
      try {
        store.issue([&] { record_point(current_.slot->event); });
        at = store.timeline.commit(QueueKind::compute, current_.label);
      } catch (...) {
        // The work has ended, for issue() has waited for it; only the point behind it is missing.
        at = store.timeline.issued(QueueKind::compute);
        store.timeline.unrecorded(QueueKind::compute, current_.label.issue);
        // Before other events, which would take the news with them.
        const std::exception_ptr news = after_unrecorded(std::current_exception(), only_teller);
        book_operation(at);
        postpone(news, {"recording the end of operation ", current_.request.name});
        if (current_.followed) inside_->course.abandon_plan("an event could not be recorded");
        current_.followed = false;
        inside_->failures.check_lost();
        return false;
      }
    } else {
      store.timeline.unrecorded(QueueKind::compute, current_.label.issue);
      at = inside_->follower.current_point();
    }
    book_operation(at);
    return true;
  }

  void book_operation(Sequence at) noexcept {
    ++operations_;
    if (inside_->store.profiler.active()) inside_->store.profiler.end(QueueKind::compute, at);
    if (inside_->store.sampler.active()) inside_->store.sampler.end(QueueKind::compute);
    for (const auto& item : current_.request.items) {
      Rec& record = *item.record;
      record.device.busy[QueueKind::compute] = at;
      if (item.access == Access::read) continue;
      record.device.ready[QueueKind::compute] = at;
      record.device.valid = true;
      record.device.issue = current_.label.issue;
      record.host.valid = false;
      record.written_in = inside_->store.iteration;
    }
    point_ = at;
  }

  void after_operation() {
    if (current_.followed) return inside_->follower.complete();
    if (inside_->follower.active()) return;
    Demand<B>& demand = inside_->demand;
    demand.end_scratch(current_.request.scratch, Clock::point(QueueKind::compute, point_));
    if (options_.demand_mode != DemandMode::per_operation) return;
    for (const auto& item : current_.request.items) demand.evict(*item.record);
  }

  Options options_;
  std::shared_ptr<ProgramBook> book_;
  std::unique_ptr<Inside> inside_;
  std::unique_ptr<AccessCheck<B>> access_check_;
  RecordTable<B> records_left_;  // once closed
  std::atomic<bool> closed_{false};
  Gate gate_;
  ReadPool reads_;
  std::atomic<Rec*> dead_{nullptr};
  std::atomic<bool> ends_late_{false};  // the iteration's end came while another call was inside

  Current current_;
  std::uint64_t stamp_ = 0;
  Sequence point_ = 0;

  std::uint64_t operations_ = 0;
};

}  // namespace swapmm::runtime
