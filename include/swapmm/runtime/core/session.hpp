// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/entrance_options.hpp>
#include <swapmm/runtime/core/host_access.hpp>
#include <swapmm/runtime/core/iteration_capture.hpp>
#include <swapmm/runtime/core/plan_controller.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/runtime/links/link_probe.hpp>
#include <swapmm/runtime/moves/access_check.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// An open manager: its state, the objects that work on the state, and the translation of failures into the facade's
/// exceptions. For one caller at a time.
template <Backend B>
class Session {
 public:
  Session(B backend, Options given, ProgramBook& book, const EntranceOptions& entrance = {})
      : options(std::move(given)),
        state(std::move(backend), options, entrance),
        controller(state, book, options),
        host(state, controller),
        capture(state, controller) {
    learn_neighbours(book);
    if (state.link_member != nullptr) share_links(book);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Options options;
  SessionState<B> state;
  PlanController<B> controller;
  HostAccess<B> host;
  IterationCapture<B> capture;
  std::uint64_t operations = 0;  ///< queued so far
  std::uint64_t stamp = 0;       ///< number of the last operation that was requested

  /// The check of accesses, used with Options::check_access.
  [[nodiscard]] AccessCheck<B>& access_check() {
    if (access_check_ == nullptr) access_check_ = std::make_unique<AccessCheck<B>>(state.store, state.demand);
    return *access_check_;
  }

  /// An event for use within one operation: 0 or 1. Made at the first call.
  [[nodiscard]] typename B::Event& spare_event(std::size_t number) {
    while (spare_events_.size() <= number) spare_events_.push_back(state.store.backend.make_event());
    return spare_events_[number];
  }

  /// Throws UsageError unless nothing but operations outside iterations may be under way.
  void require_at_rest(const std::string& call) const {
    if (!controller.between_iterations()) {
      throw UsageError(call + " inside iteration " + in_quotes(controller.name()) + ": end it first");
    }
    if (state.in_capture) throw UsageError(call + " inside a captured iteration");
    if (state.store.profiler.active()) throw UsageError(call + " while a profile is being recorded");
  }

  // ---- errors

  /// Runs `call`. Throws failures of the backend as the facade's exceptions, whose text begins with `who`.
  template <class Call>
  auto translate(const Who& who, Call&& call) -> decltype(call()) {
    try {
      return call();
    } catch (...) {
      rethrow(who);
    }
  }
  /// The same for the current exception; called in a catch block.
  [[noreturn]] void rethrow(const Who& who) {
    try {
      throw;
    } catch (const QueueFailure& failure) {
      work_failed(failure);
    } catch (const BackendError& error) {
      state.failures.backend_failed(who, error);
    } catch (const OutOfMemory& error) {
      throw out_of_memory(who, error);
    } catch (const InternalError& error) {
      throw internal_error(who, error);
    }
  }

  /// Keeps an error that was found too late for its own call.
  void postpone(const std::exception_ptr& error, const Who& who) noexcept {
    try {
      translate(who, [&] { std::rethrow_exception(error); });
    } catch (const WorkFailed&) {
      state.failures.postpone(std::current_exception(), true);
    } catch (...) {
      state.failures.postpone(std::current_exception(), false);
    }
  }

  // ---- ends

  /// Ends the program's iteration. The next call throws what fails here.
  void finish_iteration() noexcept {
    try {
      controller.end();
    } catch (...) {
      postpone(std::current_exception(), {"ending iteration ", controller.name()});
      controller.abandon_plan("its end failed");
      state.recorder.mark_broken();
    }
  }

  /// Called before the session is destroyed. Afterwards nothing is in flight, and promised reads are done or given up.
  void finish() noexcept {
    if (!state.failures.lost()) state.failures.drain_quietly();
    state.promises.settle_all(state.store);
    access_check_.reset();
    state.views.give_back(state.store);
    scrub();
  }

  // ---- reports

  void summarize(Report& report) const {
    const Store<B>& store = state.store;
    report.device = store.backend.capabilities().device_name;
    report.host_shares_memory = store.backend.capabilities().host_shares_memory;
    report.codec_staging = store.encodings.device_bytes();
    report.device_budget = store.budget() + report.codec_staging;
    report.budget_changes = state.budget_changes;
    report.device_used = store.used() + report.codec_staging;
    report.device_peak = store.traffic.device_peak + report.codec_staging;
    report.host_used = store.pool.budget().in_use();
    report.host_peak = store.pool.budget().peak();
    report.pinned_used = store.pool.budget().pinned();
    report.pinned_slabs = store.pool.slabs();
    if (const auto* const file = store.pool.file()) {
      report.file_used = file->in_use();
      report.file_peak = file->peak();
    }
    report.file_read = store.away.bytes_read(Home::file);
    report.file_written = store.away.bytes_written(Home::file);
    if (const auto* const neighbours = store.pool.neighbours()) {
      report.neighbours_budget = neighbours->all_bytes();
      report.neighbours_used = neighbours->in_use();
      report.neighbours_peak = neighbours->peak();
    }
    report.neighbours_read = store.away.bytes_read(Home::neighbour);  // of all paths
    report.neighbours_written = store.away.bytes_written(Home::neighbour);
    report.encoded_in = store.traffic.encoded_in;
    report.encoded_out = store.traffic.encoded_out;
    report.tensors = store.records.alive();
    report.operations = operations;
    controller.summarize(report);
    report.turns_taken = state.executor.turns().taken();
    report.turns_missed = state.executor.turns().missed();
    report.swap_ins = store.traffic.swap_ins;
    report.swap_outs = store.traffic.swap_outs;
    report.h2d = store.traffic.h2d;
    report.d2h = store.traffic.d2h;
    report.queue_waits = store.timeline.waits_queued();
    report.host_waits = store.timeline.host_waits();
    report.host_wait_time = store.timeline.host_wait_time();
  }

 private:
  void learn_neighbours(ProgramBook& book) {
    if (state.store.pool.neighbours() == nullptr) return;
    state.neighbour_links = NeighbourLinksProbe<B>(state.store, book.options().machine.has_value()).measure();
    state.store.pool.neighbours()->begin_with(state.neighbour_links.order());
    state.store.pool.begin();
  }

  // Later, other devices copy as well, and copies tell how fast the links are then.
  void share_links(ProgramBook& book) {
    if (!book.options().machine) {
      LinkProbe<B>(state.store).measure();
      if (state.has_link(Home::host)) state.links_alone = state.links(QueueKind::h2d, QueueKind::d2h);
    }
    book.join(state.link_member);
  }

  [[noreturn]] void work_failed(const QueueFailure& failure) {
    const auto leave = [&] {
      state.recorder.mark_broken();
      controller.abandon_plan("queued work failed");
    };
    try {
      throw state.failures.work_failed(failure, state.promises);
    } catch (...) {
      leave();
      throw;
    }
  }

  // With Options::scrub. The memory of a lost device cannot be written.
  void scrub() noexcept {
    try {
      if (!state.failures.lost()) state.store.scrub_device();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the driver accepts no more copies; see docs/threat_model.md
    }
    state.store.scrub_host_memory();
  }

  std::unique_ptr<AccessCheck<B>> access_check_;
  std::deque<typename B::Event> spare_events_;
};

}  // namespace swapmm::runtime
