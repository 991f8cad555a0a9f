// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/kept_operations.hpp>
#include <swapmm/runtime/core/observation.hpp>
#include <swapmm/runtime/core/round_measurement.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/runtime/moves/plan_addresses.hpp>
#include <swapmm/runtime/observe/plan_match.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// Decides whether the program runs on demand, and is observed, or follows a plan. Takes the program's events in order,
/// starts a plan if an iteration begins as the plan expects, and leaves it if the program does something else.
template <Backend B>
class PlanController {
 public:
  using Rec = Record<B>;

  PlanController(SessionState<B>& state, ProgramBook& book, const Options& options)
      : state_(state),
        book_(book),
        options_(options),
        measurement_(state, book),
        observation_(state, book, options, measurement_) {
    if (book.proves_drops()) state_.executor.drops().require_proof();
  }
  PlanController(const PlanController&) = delete;
  PlanController& operator=(const PlanController&) = delete;

  /// Name of the current or last iteration.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// True if operations are logged and timed.
  [[nodiscard]] bool logging() const { return in_iteration_ && state_.recorder.is_open(); }
  [[nodiscard]] bool between_iterations() const { return !in_iteration_; }
  [[nodiscard]] bool follows_plan() const { return state_.executor.active(); }
  /// True if the next iteration begins with uploaded values.
  [[nodiscard]] bool uploads_wait() const { return !pending_uploads_.empty(); }
  /// Adds iterations that followed the plan as part of a graph.
  void count_followed(std::uint64_t iterations) { followed_ += iterations; }
  /// Called when the current plan was captured as a graph. It is then not replaced by a better one, and its rounds are
  /// not measured.
  void hold_plan() { held_ = state_.executor.times_started(); }

  /// Stops following a plan, before the device memory is replaced. Called between iterations.
  void leave_for_budget() {
    leave_plan("the budget changed", false);
    measurement_.forget();
  }

  // ---- iterations

  /// Learns from the previous iteration, which may make a plan, then begins this one. If it throws, no iteration has
  /// begun.
  void begin(std::string_view name) {
    if (in_iteration_)
      throw UsageError("iteration " + in_quotes(name) + " begins inside iteration " + in_quotes(name_));
    observation_.close_log();
    if (!proves_drops() && book_.has_many_sequences(name_))
      program_branches("many sequences came in iteration ", name_);
    book_.install_finished();
    measurement_.collect(name_);
    if (state_.executor.active() && name != name_) leave_plan("iteration " + in_quotes(name) + " came", false);
    if (state_.executor.active() && !state_.in_capture && !holds_plan() && addresses_.are_too_many()) {
      leave_plan("parts of tensors were in many places", false);
      state_.demand.forget_unused_addresses();
    }
    name_.assign(name);
    host_has_read_ = false;
    follow_the_choice();
    in_iteration_ = true;
    try {
      open_iteration();
    } catch (...) {
      in_iteration_ = false;
      throw;
    }
  }

  void end() {
    in_iteration_ = false;
    if (state_.store.profiler.active()) state_.store.profiler.iteration_ended();
    try {
      if (state_.executor.active()) {
        const std::size_t member = state_.executor.iteration();
        if (state_.executor.end_iteration()) {
          ++followed_;
          book_.followed(name_, state_.executor.plan(), member);
        } else {
          leave_plan("the iteration ended early", true);
        }
      }
      if (!state_.executor.active()) ++on_demand_;
      measurement_.end_iteration(name_);
    } catch (...) {
      state_.kept.end_iteration();
      ++state_.store.iteration;
      throw;
    }
    state_.kept.end_iteration();  // also what leaving the plan asked for just now
    ++state_.store.iteration;
  }

  // ---- operations: bring, then complete, failed or give_up

  /// How an operation's bundle came to the device.
  struct Brought {
    Grant<B> grant;
    bool followed = false;          ///< the operation follows a plan
    bool recorded = true;           ///< the operation records a point of its own after its work
    std::uint32_t repeated = none;  ///< the number to keep it under, if the plan runs it again later; else none
  };

  /// Brings the bundle to the device, by the plan that is followed or that begins here, or on demand. The items have
  /// the request's stamp. If it throws, the operation was given up.
  void bring(const Request<B>& request, std::uint64_t stamp, Brought& brought) {
    // A bundle that can never fit is refused at once: before a plan is left, the times of an iteration are awaited, or
    // anything else changes. (Operations that a captured iteration does not expect are refused below.)
    if (host_has_read_ && in_iteration_ && !request.again) [[unlikely]] {
      program_branches("the host read a value before operation ", request.name);
    }
    const bool expected = in_iteration_ && state_.executor.active() && state_.executor.expects(request);
    if (!expected && !state_.in_capture) state_.demand.check_fits(request);
    try {
      if (request.again && !expected) {
        leave_plan(unexpected(request), true);
        return state_.demand.bring(request, stamp, brought.grant, in_iteration_);
      }
      if (follows(request, expected)) {
        state_.executor.bring(request, brought.grant);
        if (!request.again) ++operations_followed_;
        brought.followed = true;
        brought.recorded = state_.executor.current_is_recorded();
        brought.repeated = state_.executor.current_if_repeated();
        return;
      }
      observation_.note_distances(request);
      if (!in_iteration_) made_outside(request);
      if (logging()) log(request);
      state_.demand.bring(request, stamp, brought.grant, in_iteration_);
    } catch (const DroppedValue&) {
      keep_from_now_on(request);
      give_up(request, Clock{});
      throw;
    } catch (...) {
      give_up(request, Clock{});
      throw;
    }
  }

  /// Called after the operation was queued: moves that come after it may be queued.
  void complete(const Request<B>& request, bool followed, QueuePoint point) {
    if (followed) return state_.executor.complete();
    state_.demand.end_scratch(request.scratch, Clock::point(QueueKind::compute, point));
    if (options_.demand_mode != DemandMode::per_operation) return;
    for (const auto& item : request.items) state_.demand.evict(*item.record);
  }

  /// Called if the operation was queued in part. It ends at `after`.
  void failed(const Request<B>& request, bool followed, const Clock& after) noexcept {
    if (followed) {
      abandon_plan("an operation threw");
      if (!request.again) state_.kept.give_up(request);
    } else {
      state_.demand.end_scratch(request.scratch, after);
    }
  }

  /// Called if the operation was not queued. Tensors that were brought in stay, but work areas are freed and the plan
  /// is left.
  void give_up(const Request<B>& request, const Clock& needs) noexcept {
    state_.recorder.mark_broken();
    if (state_.executor.active()) return abandon_plan("an operation failed");
    state_.demand.end_scratch(request.scratch, needs);
  }

  /// Called if a plan dropped a value that is needed after all: the next plan keeps it.
  void keep_from_now_on(Rec& record) {
    observation_.keep_value(record);
    if (record.plan.role == none) return;
    leave_plan("the value of tensor " + in_quotes(record.name) + " was needed and had been dropped", true);
  }

  /// The same if nothing can give the value back.
  void note_dropped(Rec& record) {
    program_branches("the plan had dropped what was needed of tensor ", record.name);
    keep_from_now_on(record);
  }

  /// Called when a host view of the tensor was opened. A plan that was made without it may drop the value while the
  /// host can still read it.
  void leave_for_view(const Rec& record) {
    if (record.plan.role != none) leave_plan("a host view of tensor " + in_quotes(record.name) + " was opened", false);
  }

  // ---- operations that run again. Each of these returns the next one that must run before something that the program
  // is about to do; null: none. If the program leaves the plan by that, it leaves it here.

  [[nodiscard]] KeptOperation<B>* next_again(const Request<B>& request) {
    const bool by_plan = in_iteration_ && state_.executor.active();
    if (by_plan && state_.executor.expects_after_replays(request)) return next_by_plan();
    if (state_.in_capture) return nullptr;
    state_.demand.check_fits(request);  // a refused operation changes nothing
    if (by_plan) leave_plan(unexpected(request), true);
    return state_.kept.take_due();
  }
  /// Before the host uploads.
  [[nodiscard]] KeptOperation<B>* next_again_before_upload(const Rec& record) {
    if (KeptOperation<B>* const due = state_.kept.take_due()) return due;
    if (!in_iteration_ || !state_.executor.active() || !concerns_plan(record)) return nullptr;
    if (state_.executor.expects_upload(record)) return nullptr;
    leave_plan("the upload of tensor " + in_quotes(record.name) + " was not expected there", true);
    return state_.kept.take_due();
  }
  /// Before the host reads a value.
  [[nodiscard]] KeptOperation<B>* next_again_before_read(Rec& record) {
    if (KeptOperation<B>* const due = state_.kept.take_due()) return due;
    if (!state_.executor.active() || record.has_value() || record.plan.role == none) return nullptr;
    if (state_.executor.replays_to_come().empty()) return nullptr;
    keep_from_now_on(record);
    return state_.kept.take_due();
  }

  /// Before the iteration ends, where what only replays could give back must not be lost by that.
  [[nodiscard]] KeptOperation<B>* next_again_before_end() {
    if (!state_.executor.drops().must_make_again()) return nullptr;
    if (in_iteration_ && state_.executor.active() && !state_.executor.expects_end())
      leave_plan("the iteration ended early", true);
    return state_.kept.take_due();
  }

  // ---- the host's accesses

  /// Called before the host uploads a value to the tensor.
  void uploaded(Rec& record) {
    PlanExecutor<B>& executor = state_.executor;
    if (!in_iteration_) {  // the upload belongs to the next iteration
      pending_uploads_.push_back(&record);
      return;
    }
    if (executor.active()) {
      if (executor.upload(record)) return;
      if (!concerns_plan(record)) return;
      leave_plan("the upload of tensor " + in_quotes(record.name) + " was not expected there", true);
    }
    state_.recorder.upload(record);
  }
  void forget_upload(const Rec& record) noexcept { std::erase(pending_uploads_, &record); }

  /// Called when the host knows a value: what the iteration does from then on may depend on it.
  void host_has_read() noexcept { host_has_read_ = in_iteration_; }

  /// Called before the host reads the tensor's value.
  void downloaded(Rec& record) {
    if (state_.executor.active()) {
      state_.executor.download(record);
    } else if (state_.recorder.is_open()) {
      state_.recorder.download(record);
    }
  }

  // ---- plans

  /// Leaves the plan after a failure, when nothing may throw.
  void abandon_plan(const char* reason) noexcept {
    if (!state_.executor.active()) return;
    try {
      leave_plan(reason, true);
    } catch (...) {
      state_.recorder.abandon_quietly();
    }
    state_.recorder.mark_broken();
    if (state_.executor.active()) stop_following();
  }

  void summarize(Report& report) const {
    report.iterations_on_demand = on_demand_;
    report.iterations_followed = followed_;
    report.operations_followed = operations_followed_;
    report.values_saved = state_.executor.drops().saved();
    report.saved_bytes = state_.executor.drops().saved_bytes();
    report.divergences = divergences_;
    report.last_divergence = last_divergence_;
    report.plan_starts = plan_starts_;
    report.start_h2d = start_h2d_;
    report.start_d2h = start_d2h_;
    state_.demand.summarize(report);
  }

 private:
  // Returns whether this operation follows a plan: the current one, or one that begins here.
  [[nodiscard]] bool follows(const Request<B>& request, bool expected) {
    PlanExecutor<B>& executor = state_.executor;
    if (!in_iteration_ && (executor.active() || state_.recorder.is_open() || !pending_uploads_.empty())) {
      leave_iterations();
    }
    if (state_.in_capture && !executor.active()) {
      throw operation_misused(request.name, " comes after an error in a captured iteration: end the iteration");
    }
    if (executor.active() && !expected) {
      if (state_.in_capture) {
        throw UsageError(unexpected(request) + ": a captured iteration must do what its plan expects",
                         {.operation = std::string(request.name)});
      }
      leave_plan(unexpected(request), true);
    }
    return executor.active() || try_start(request);
  }

  // Tensors that are first used outside iterations have no place in a sequence.
  static void made_outside(const Request<B>& request) {
    for (const auto& item : request.items) {
      if (item.record->use.fresh) item.record->tensor.born = 0;
    }
  }

  void log(const Request<B>& request) {
    state_.recorder.operation(request);
    // A trace cannot have operations that read what nobody wrote.
    if (state_.demand.reads_undefined(request)) state_.recorder.mark_broken();
  }

  [[nodiscard]] KeptOperation<B>* next_by_plan() {
    const std::optional<std::uint32_t> next = state_.executor.next_replay();
    return next ? state_.kept.find(*next) : nullptr;
  }

  // Called if a plan dropped values that are needed after all: the next plan keeps them.
  void keep_from_now_on(const Request<B>& request) {
    for (const auto& item : request.items) {
      if (!item.record->has_value() && item.record->value.missing_reason == MissingReason::dropped)
        observation_.keep_value(*item.record);
    }
    program_branches("the plan had dropped what was needed by operation ", request.name);
  }

  // The program does what its data says, so what it did tells little about what it will read. The plan that is followed
  // is kept until the iteration ends: what it still drops is saved.
  void program_branches(std::string_view reason, std::string_view name) noexcept {
    host_has_read_ = false;
    if (proves_drops() || book_.options().drops != DropRule::by_evidence) return;
    state_.executor.drops().require_proof();
    try {
      book_.prove_drops(std::string(reason) + in_quotes(name));
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory: old plans go on, and what they drop is saved
    }
  }
  [[nodiscard]] bool proves_drops() const { return state_.executor.drops().must_be_certain(); }

  [[nodiscard]] bool holds_plan() const { return state_.executor.active() && state_.executor.times_started() == held_; }

  // After new measurements, or with another budget, another plan may be better, or no plan at all.
  void follow_the_choice() {
    if (state_.executor.active() && !state_.executor.at_start()) return;  // another plan begins with a round
    if (state_.executor.active() && !holds_plan() && !book_.still_chosen(name_, state_.executor.plan()))
      leave_plan("another plan, or none, is chosen now", false);
    book_.replan_for_budget(
        name_, [&] { return state_.machine(book_); },
        [&](const Program& program) { return state_.executor.obstacle(program).empty(); });
  }

  void open_iteration() {
    const bool with_times = observation_.makes_plans() && book_.wants_times(name_);
    if (!holds_plan()) measurement_.begin_iteration(name_, with_times && !state_.executor.active());
    if (state_.executor.active()) {
      const bool expected = std::ranges::all_of(
          pending_uploads_, [&](Rec* record) { return state_.executor.upload(*record) || !concerns_plan(*record); });
      if (!expected) leave_plan("a tensor of the plan was uploaded between iterations", true);
    }
    if (!state_.executor.active()) {
      state_.recorder.open(name_, with_times);
      for (Rec* const record : pending_uploads_) state_.recorder.upload(*record);
    }
    pending_uploads_.clear();
  }

  // Starts a plan that begins with the events of this iteration so far and with the next one.
  bool try_start(const Request<B>& request) {
    Recorder<B>& recorder = state_.recorder;
    Store<B>& store = state_.store;
    if (options_.check_access || !recorder.is_open() || recorder.has_operations()) return false;
    for (const PlanCase& candidate : book_.cases(name_)) {
      const FollowablePtr plan = candidate.offered();  // the book may change meanwhile
      if (plan == nullptr || !begins_with(plan->program, recorder.log(), request, store)) continue;
      if (!state_.executor.obstacle(plan->program).empty()) continue;
      StartCopies copies;
      try {
        copies = state_.executor.start(plan);
        addresses_.plan_started();
      } catch (const InternalError&) {
        book_.give_up(plan, std::current_exception());
        throw;
      }
      start_h2d_ += copies.in;
      start_d2h_ += copies.out;
      ++plan_starts_;
      const bool expected = std::ranges::all_of(recorder.log().events, [&](const LogEvent& event) {
        if (event.what != LogEvent::What::upload) return true;
        return state_.executor.upload(store.records[recorder.log().tensors[event.index].record]);
      });
      if (expected && state_.executor.expects(request)) {
        recorder.abandon();
        book_.used(name_, plan, {copies.needless_in, copies.needless_out});
        measurement_.plan_started();
        return true;
      }
      stop_following();
    }
    return false;
  }

  // The program does something that the plan does not expect: continues on demand, with the log of this iteration so
  // far. Queued work stays queued.
  void leave_plan(const std::string& reason, bool counts) {
    PlanExecutor<B>& executor = state_.executor;
    if (!executor.active()) return;
    executor.lose_unfinished();
    book_.left(name_, executor.plan());
    if (counts) {
      ++divergences_;
      last_divergence_ = reason;
      book_.diverged(name_, executor.plan());
    }
    state_.kept.require(executor.replays_to_come());
    state_.demand.interrupt();
    state_.recorder.open(name_, observation_.makes_plans());
    executor.write_log(state_.recorder.log(), state_.recorder.epoch());
    stop_following();
  }

  // A wrong plan is given up for good.
  void stop_following() noexcept {
    measurement_.plan_left();
    PlanExecutor<B>& executor = state_.executor;
    const FollowablePtr plan = executor.plan();
    const std::exception_ptr disorder = executor.stop([&](Rec& record) { state_.free_storage(record); });
    if (disorder != nullptr) {
      book_.give_up(plan, disorder);
      state_.failures.postpone(disorder, true);
    } else if (executor.fault()) {
      book_.give_up(plan, std::make_exception_ptr(*executor.fault()));
    }
  }

  // An operation outside any iteration ends the current observation and the current plan.
  void leave_iterations() {
    leave_plan("an operation ran between iterations", true);
    observation_.close_log();
    pending_uploads_.clear();
  }

  std::string unexpected(const Request<B>& request) {
    return "operation " + in_quotes(request.name) + " in iteration " + in_quotes(name_) + " was not expected there";
  }

  // Returns whether the tensor is one of the plan's, or may be one of its locals in an unexpected place.
  bool concerns_plan(const Rec& record) const {
    return record.plan.role != none || (record.use.fresh && record.tensor.born == state_.store.iteration);
  }

  SessionState<B>& state_;
  ProgramBook& book_;
  const Options& options_;
  PlanAddresses<B> addresses_{state_.store.addresses};
  RoundMeasurement<B> measurement_;
  Observation<B> observation_;

  std::string name_;
  bool in_iteration_ = false;
  bool host_has_read_ = false;         // in this iteration, and no operation came after it
  std::vector<Rec*> pending_uploads_;  // since the last iteration
  std::uint64_t held_ = 0;             // PlanExecutor::times_started() of the captured plan

  std::uint64_t on_demand_ = 0;
  std::uint64_t followed_ = 0;
  std::uint64_t operations_followed_ = 0;
  std::uint64_t divergences_ = 0;
  std::string last_divergence_;
  std::uint64_t plan_starts_ = 0;
  Bytes start_h2d_;
  Bytes start_d2h_;
};

}  // namespace swapmm::runtime
