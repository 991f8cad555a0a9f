// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/budget_change.hpp>
#include <swapmm/runtime/core/entrance_options.hpp>
#include <swapmm/runtime/core/gate.hpp>
#include <swapmm/runtime/core/neighbour_change.hpp>
#include <swapmm/runtime/core/run_again.hpp>
#include <swapmm/runtime/core/session.hpp>
#include <swapmm/runtime/core/tensor_registry.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/promises.hpp>

namespace swapmm::runtime {

/// The implementation of a manager, which its facade calls: admits one caller at a time, forwards the call to the
/// class that does the work, and turns failures into the facade's exceptions. Operations enter as RunningOperation.
///
/// It outlives its manager while tensors refer to it; close() releases everything except the object itself.
template <Backend B>
class Core : public std::enable_shared_from_this<Core<B>> {
 public:
  using Rec = Record<B>;

  Core(B backend, const Options& options, std::shared_ptr<ProgramBook> book, const EntranceOptions& entrance = {});
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  /// A caller inside an open manager. The caller is inside until this is destroyed.
  class Entry {
   public:
    /// Waits or throws if another caller is inside (see EntranceOptions). Throws if the manager is closed, or, unless
    /// `report_failures` is false, if something failed since the last call.
    explicit Entry(Core& core, bool report_failures = true)
        : stay_(core.gate_.enter()), session_(core.open_session(report_failures)) {}
    [[nodiscard]] Session<B>* session() const { return &session_; }
    [[nodiscard]] Session<B>* operator->() const { return &session_; }
    /// Sets the name of the operation that the caller runs. The text must outlive this.
    void runs(std::string_view operation) noexcept { stay_.runs(operation); }

   private:
    Gate::Stay stay_;
    Session<B>& session_;
  };

  // ---- tensors

  Rec& create(std::string_view name, Bytes bytes, Lifetime lifetime, std::size_t element_bytes = 4);
  /// A tensor whose value is in `source` from `offset` on, for good. Throws UsageError.
  Rec& create_constant(std::string_view name, Bytes bytes, const std::shared_ptr<FileMemory>& source, Bytes offset);

  /// Called when the tensor's handle is destroyed. Never throws. May be called by any thread, while another caller is
  /// inside, and after close().
  void destroy(Rec& record) noexcept;

  /// For a caller that is inside: reclaims what was destroyed since it entered.
  void reclaim_destroyed(Session<B>& session) noexcept { registry_.reclaim_deferred(session); }

  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }
  /// For tests that inspect the state within a call; null once closed.
  [[nodiscard]] const SessionState<B>* session_state() const { return closed() ? nullptr : &session_->state; }
  [[nodiscard]] B& backend() { return session_->state.store.backend; }
  [[nodiscard]] Gate& gate() { return gate_; }

  // ---- iterations

  void begin_iteration(std::string_view name);

  void end_iteration() noexcept;

  /// True while a plan is followed, in an iteration or between two.
  [[nodiscard]] bool follows_plan();
  /// While a plan is followed: see PlanExecutor::next_drops_are_certain().
  [[nodiscard]] bool next_drops_are_certain();
  /// Tells that the program waits: whatever was called before may not be kept waiting any longer, except the last
  /// `open` operations. Plans then know which values can be proven dead in time (see EntranceOptions::certainly_dead).
  /// To be called for iterations that follow no plan.
  void note_wait(std::size_t open);
  /// All that was copied between device and host so far.
  [[nodiscard]] Bytes swapped();

  // ---- the host's accesses

  /// Copies into the library's own memory before it returns. Waits only if both of the tensor's host slots are in
  /// use. A part of a tensor needs the tensor's value, and waits for it.
  void upload(const TensorKey<B>& tensor, Bytes offset, std::span<const std::byte> data);

  /// Waits for the value and copies it to the caller's memory.
  void download(const TensorKey<B>& tensor, Bytes offset, std::span<std::byte> data);

  /// Returns the tensor for the errors of `what`. Throws UsageError if the tensor, or its manager, no longer exists.
  [[nodiscard]] TensorName tensor_name(const TensorKey<B>& tensor, std::string_view what);

  /// Promises the value that the tensor has now. The caller may use the result until end_promise().
  [[nodiscard]] PendingRead& promise(const TensorKey<B>& tensor, Bytes offset, std::span<std::byte> data);

  [[nodiscard]] bool collectable(const PendingRead& read);
  void collect(PendingRead& read);

  /// Ends a promise that was collected or given up. If it was given up, waits for another thread that is inside.
  void end_promise(PendingRead& read) noexcept;

  // ---- captured iterations. These do nothing if the backend cannot capture; the facade then does not call them.

  void begin_capture(std::string_view name);
  [[nodiscard]] bool within_captured_round();
  [[nodiscard]] auto end_capture() {
    if constexpr (CapturingBackend<B>) {
      const Entry entry(*this);
      return entry->translate({"capturing iteration ", entry->controller.name()},
                              [&] { return entry->capture.end(entry->operations); });
    }
  }
  /// Ends a capture whose caller is about to throw. Waits for another thread that is inside.
  void give_up_capture() noexcept;
  template <class Round>
  void replay(Round& round) {
    const Entry entry(*this);
    entry->translate({"launching captured iteration ", entry->controller.name()},
                     [&] { entry->capture.replay(round); });
    entry->operations += round.operations;
  }

  // ---- queries

  [[nodiscard]] Report report();
  /// The same without plans and what the scheduler knows. Cheap enough for every operation if `report` is used again.
  void count(Report& report);

  [[nodiscard]] Machine machine();

  // ---- times

  void start_profile();

  [[nodiscard]] bool profiling();

  [[nodiscard]] Profile stop_profile();

  // ---- the whole manager

  /// See MemoryManager::set_budget(). 0: no device memory until a later call, for the layer, which lends its budget to
  /// other managers.
  void set_budget(Bytes bytes);

  /// See MemoryManager::set_neighbour_budget().
  void set_neighbour_budget(const Neighbour& neighbour, Bytes bytes);

  /// Waits until nothing is in flight.
  void synchronize();

  /// Returns host memory to the API, for another manager: what is unused, and copies of values that are also on the
  /// device, until that makes `wanted` bytes. Waits for the device.
  void give_back_host(Bytes wanted);

  /// Ends everything: waits for a caller of another thread that is inside and for the device, and releases device and
  /// host memory. Tensors and promises that still exist are empty afterwards. Never throws.
  void close() noexcept;

 private:
  // For a caller that is inside.
  Session<B>& open_session(bool report_failures);
  void finish_iteration() noexcept;

  std::shared_ptr<ProgramBook> book_;
  ProgramBook::Owner owns_book_;
  std::unique_ptr<Session<B>> session_;  // null once closed
  TensorRegistry<B> registry_;
  ReadPool reads_;
  Gate gate_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> ends_late_{false};  // the iteration ended while another call was inside
};

// Defined outside the class, so not inline: if a backend's library instantiates this class, programs do not compile it
// again.

template <Backend B>
Core<B>::Core(B backend, const Options& options, std::shared_ptr<ProgramBook> book, const EntranceOptions& entrance)
    : book_(std::move(book)),
      owns_book_(*book_),
      session_(std::make_unique<Session<B>>(std::move(backend), options, *book_, entrance)),
      gate_(entrance.callers_wait) {
  const PlanBudget budget{session_->state.store.budget(), session_->state.store.neighbours_budget()};
  book_->set_callables_until_end(entrance.callables_until_end);
  book_->prepare_budgets({budget});
  book_->use_budget(budget);
}

template <Backend B>
Core<B>::~Core() {
  close();
}

template <Backend B>
Record<B>& Core<B>::create(std::string_view name, Bytes bytes, Lifetime lifetime, std::size_t element_bytes) {
  const Entry entry(*this);
  return registry_.create(*entry.session(), name, bytes, lifetime, element_bytes);
}

template <Backend B>
Record<B>& Core<B>::create_constant(std::string_view name, Bytes bytes, const std::shared_ptr<FileMemory>& source,
                                    Bytes offset) {
  const Entry entry(*this);
  Store<B>& store = entry->state.store;
  const ConstantPlace place{source.get(), offset, bytes};
  check_constant(name, place, store.pool.file() != nullptr);
  auto block = store.pool.constant(source, offset, bytes);
  Record<B>& record = registry_.create(*entry.session(), name, bytes, Lifetime::observed, 1);
  store.records.make_constant(record, std::move(block));
  return record;
}

template <Backend B>
void Core<B>::destroy(Record<B>& record) noexcept {
  const Gate::Stay stay = gate_.try_enter_briefly();
  if (!stay) return registry_.defer_destroy(record);
  if (closed()) return;
  registry_.reclaim_deferred(*session_);
  registry_.reclaim(*session_, record);
}

template <Backend B>
void Core<B>::begin_iteration(std::string_view name) {
  const Entry entry(*this);
  entry->translate({"beginning iteration ", name}, [&] { entry->controller.begin(name); });
}

template <Backend B>
void Core<B>::end_iteration() noexcept {
  const Gate::Stay stay = gate_.try_enter();
  if (!stay) return ends_late_.store(true, std::memory_order_release);  // inside an operation: the next call ends it
  if (!closed()) finish_iteration();
}

template <Backend B>
bool Core<B>::follows_plan() {
  const Entry entry(*this, false);
  return entry->controller.follows_plan();
}

template <Backend B>
bool Core<B>::next_drops_are_certain() {
  const Entry entry(*this, false);
  return !entry->controller.follows_plan() || entry->state.executor.next_drops_are_certain();
}

template <Backend B>
void Core<B>::note_wait(std::size_t open) {
  const Entry entry(*this, false);
  constexpr std::size_t most = std::size_t{1} << 30U;
  entry->state.recorder.wait(static_cast<std::uint32_t>(std::min(open, most)));
}

template <Backend B>
Bytes Core<B>::swapped() {
  const Entry entry(*this, false);
  const Traffic& traffic = entry->state.store.traffic;
  return traffic.h2d + traffic.d2h;
}

template <Backend B>
void Core<B>::upload(const TensorKey<B>& tensor, Bytes offset, std::span<const std::byte> data) {
  run_again_before_upload(*this, tensor);
  const Entry entry(*this);
  Rec& record = registry_.existing(tensor, "upload");
  const Who who = about_tensor("upload to tensor ", record);
  entry->translate(who, [&] { entry->host.upload(record, offset, data, who); });
}

template <Backend B>
void Core<B>::download(const TensorKey<B>& tensor, Bytes offset, std::span<std::byte> data) {
  run_again_before_read(*this, tensor);
  const Entry entry(*this);
  Rec& record = registry_.existing(tensor, "download");
  const Who who = about_tensor("download of tensor ", record);
  entry->translate(who, [&] { entry->host.download(record, offset, data, who); });
}

template <Backend B>
TensorName Core<B>::tensor_name(const TensorKey<B>& tensor, std::string_view what) {
  const Entry entry(*this);
  return name_of(registry_.existing(tensor, what));
}

template <Backend B>
PendingRead& Core<B>::promise(const TensorKey<B>& tensor, Bytes offset, std::span<std::byte> data) {
  run_again_before_read(*this, tensor);
  const Entry entry(*this);
  Rec& record = registry_.existing(tensor, "download");
  const Who who = about_tensor("download of tensor ", record);
  PendingRead& read = reads_.take();
  try {
    entry->translate(who, [&] { entry->host.promise(read, record, offset, data, who); });
  } catch (...) {
    reads_.give_back(read);
    throw;
  }
  return read;
}

template <Backend B>
bool Core<B>::collectable(const PendingRead& read) {
  if (read.state != PendingRead::State::waiting) return true;
  const Entry entry(*this);
  return entry->translate({"asynchronous download of tensor ", read.tensor},
                          [&] { return entry->state.store.timeline.ended(read.ready); });
}

template <Backend B>
void Core<B>::collect(PendingRead& read) {
  if (read.state == PendingRead::State::waiting) {
    const Entry entry(*this);
    entry->translate({"asynchronous download of tensor ", read.tensor},
                     [&] { entry->state.promises.collect(entry->state.store, read); });
  }
  const bool is_lost = read.state == PendingRead::State::abandoned;
  if (const Gate::Stay stay = gate_.enter_waiting(); !closed()) {
    if (read.decides) session_->controller.host_has_read();
    if (is_lost) session_->state.failures.check_lost();
  }
  if (is_lost) throw lost_download(read.tensor);
}

template <Backend B>
void Core<B>::end_promise(PendingRead& read) noexcept {
  {
    const Gate::Stay stay = gate_.enter_waiting_briefly();
    if (!closed()) session_->state.promises.cancel(read);  // a read that is done may still be in the list
  }
  reads_.give_back(read);
}

template <Backend B>
void Core<B>::begin_capture([[maybe_unused]] std::string_view name) {
  if constexpr (CapturingBackend<B>) {
    const Entry entry(*this);
    entry->translate({"capturing iteration ", name}, [&] { entry->capture.begin(name, entry->operations); });
  }
}

template <Backend B>
bool Core<B>::within_captured_round() {
  if constexpr (CapturingBackend<B>) {
    const Entry entry(*this);
    return entry->capture.within_round();
  } else {
    return false;
  }
}

template <Backend B>
void Core<B>::give_up_capture() noexcept {
  if constexpr (CapturingBackend<B>) {
    const Gate::Stay stay = gate_.enter_waiting();
    if (closed()) return;
    try {
      session_->capture.give_up();
    } catch (...) {
      session_->postpone(std::current_exception(), {"capturing iteration ", session_->controller.name()});
    }
  }
}

template <Backend B>
Report Core<B>::report() {
  const Entry entry(*this, false);
  Report report;
  entry->summarize(report);
  book_->summarize(report);
  return report;
}

template <Backend B>
void Core<B>::count(Report& report) {
  const Entry entry(*this, false);
  entry->summarize(report);
  report.plans_found = book_->plans_found();
}

template <Backend B>
Machine Core<B>::machine() {
  const Entry entry(*this, false);
  return entry->state.machine(*book_).alone();
}

template <Backend B>
void Core<B>::start_profile() {
  const Entry entry(*this);
  Store<B>& store = entry->state.store;
  if (store.profiler.active()) throw UsageError("a profile is being recorded already");
  if (entry->state.in_capture) throw UsageError("start_profile() inside a captured iteration");
  entry->translate({"starting a profile", {}}, [&] {
    store.timeline.host_wait(store.timeline.everything());
    store.start_profile();
  });
}

template <Backend B>
bool Core<B>::profiling() {
  const Entry entry(*this, false);
  return entry->state.store.profiler.active();
}

template <Backend B>
Profile Core<B>::stop_profile() {
  const Entry entry(*this);
  Store<B>& store = entry->state.store;
  if (!store.profiler.active()) throw UsageError("no profile is being recorded");
  return entry->translate({"recording a profile", {}}, [&] {
    try {
      store.timeline.mark_all();  // after the profile's own events
      store.timeline.host_wait(store.timeline.everything());
      return store.stop_profile();
    } catch (...) {
      store.give_up_profile();
      throw;
    }
  });
}

template <Backend B>
void Core<B>::set_budget(Bytes bytes) {
  const Entry entry(*this);
  entry->require_at_rest("set_budget()");
  const std::string what = "setting the device budget to " + std::to_string(bytes.value) + " bytes";
  entry->translate({what, {}}, [&] { BudgetChange<B>(entry->state, entry->controller, *book_).to(bytes); });
}

template <Backend B>
void Core<B>::set_neighbour_budget(const Neighbour& neighbour, Bytes bytes) {
  const Entry entry(*this);
  entry->require_at_rest("set_neighbour_budget()");
  const std::string what = "setting the budget on a neighbour to " + std::to_string(bytes.value) + " bytes";
  entry->translate({what, {}},
                   [&] { NeighbourChange<B>(entry->state, entry->controller, *book_).to(neighbour, bytes); });
}

template <Backend B>
void Core<B>::synchronize() {
  const Entry entry(*this);
  Timeline<B>& timeline = entry->state.store.timeline;
  entry->translate({"synchronize", {}}, [&] { timeline.host_wait(timeline.everything()); });
}

template <Backend B>
void Core<B>::give_back_host(Bytes wanted) {
  const Entry entry(*this);
  entry->translate({"giving host memory back", {}}, [&] { entry->state.give_back_host(wanted); });
}

template <Backend B>
void Core<B>::close() noexcept {
  const Gate::Stay stay = gate_.enter_waiting();  // none if an operation's callable ends the process
  if (closed()) return;
  session_->finish();
  registry_.keep_records(*session_);
  closed_.store(true, std::memory_order_release);
  session_.reset();
  owns_book_.end();
}

template <Backend B>
inline Session<B>& Core<B>::open_session(bool report_failures) {
  if (closed()) throw UsageError("the manager of this tensor no longer exists");
  if (ends_late_.load(std::memory_order_acquire)) finish_iteration();
  if constexpr (CapturingBackend<B>) {
    if (session_->state.store.backend.capturing() && !session_->state.in_capture) {
      throw UsageError(
          "another manager of this backend is capturing an iteration, and would record this work into its graph");
    }
  }
  if (report_failures) {
    registry_.reclaim_deferred(*session_);
    session_->state.failures.check();
  }
  return *session_;
}

template <Backend B>
void Core<B>::finish_iteration() noexcept {
  ends_late_.store(false, std::memory_order_relaxed);
  session_->finish_iteration();
}

}  // namespace swapmm::runtime
