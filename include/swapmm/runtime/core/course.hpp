// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/core/measuring.hpp>
#include <swapmm/runtime/core/parts.hpp>
#include <swapmm/runtime/observe/plan_match.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// Which way the program goes: on demand and observed, or by a plan. Takes the program's events in their order, starts
/// a plan where an iteration begins like one, and leaves it where the program does something else.
template <Backend B>
class Course {
 public:
  using Rec = Record<B>;

  Course(Parts<B>& parts, ProgramBook& book, const Options& options)
      : parts_(parts), book_(book), options_(options), measuring_(parts, book) {}
  Course(const Course&) = delete;
  Course& operator=(const Course&) = delete;

  /// Of the current or last iteration.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Operations are written down and timed.
  [[nodiscard]] bool logging() const { return in_iteration_ && parts_.recorder.is_open(); }
  [[nodiscard]] bool between_iterations() const { return !in_iteration_; }
  /// The next iteration begins with values from the host.
  [[nodiscard]] bool uploads_wait() const { return !pending_uploads_.empty(); }
  /// So many iterations ran by the plan as part of a graph.
  void count_followed(std::uint64_t iterations) { followed_ += iterations; }
  /// The plan followed now is a graph: it is not left for a better one, and nothing of it is measured.
  void hold_plan() { held_ = parts_.follower.times_started(); }

  /// The device memory is about to go: nothing is followed any more. Between iterations.
  void leave_for_budget() {
    leave_plan("the budget changed", false);
    measuring_.forget();
  }

  // ---- iterations

  /// Learns from the iteration before, which may make a plan, then begins this one. A call that throws has begun none.
  void begin(std::string_view name) {
    if (in_iteration_)
      throw UsageError("iteration " + in_quotes(name) + " begins inside iteration " + in_quotes(name_));
    close_log();
    book_.install_finished();
    measuring_.collect(name_);
    if (parts_.follower.active() && name != name_) leave_plan("iteration " + in_quotes(name) + " came", false);
    name_.assign(name);
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
    if (!in_iteration_) return;
    in_iteration_ = false;
    if (parts_.store.profiler.active()) parts_.store.profiler.iteration_ended();
    try {
      if (parts_.follower.active()) {
        if (parts_.follower.end_iteration()) {
          ++followed_;
        } else {
          leave_plan("the iteration ended early", true);
        }
      }
      if (!parts_.follower.active()) ++on_demand_;
      measuring_.end_iteration(name_);
    } catch (...) {
      ++parts_.store.iteration;
      throw;
    }
    ++parts_.store.iteration;
  }

  // ---- operations

  /// Whether the plan that is followed has this operation here. Changes nothing.
  [[nodiscard]] bool expects(const Request<B>& request) const {
    return in_iteration_ && parts_.follower.active() && parts_.follower.expects(request);
  }
  /// Whether this operation runs by the plan: the one that is followed, or one that begins here. `expected`: what
  /// expects() says of it.
  [[nodiscard]] bool follows(const Request<B>& request, bool expected) {
    Follower<B>& follower = parts_.follower;
    if (!in_iteration_ && (follower.active() || parts_.recorder.is_open() || !pending_uploads_.empty())) {
      leave_iterations();
    }
    if (parts_.in_capture && !follower.active()) {
      throw operation_misused(request.name, " comes after an error in a captured iteration: end the iteration");
    }
    if (follower.active() && !expected) {
      if (parts_.in_capture) {
        throw UsageError(unexpected(request) + ": a captured iteration must do what its plan expects",
                         {.operation = std::string(request.name)});
      }
      leave_plan(unexpected(request), true);
    }
    return follower.active() || (in_iteration_ && try_start(request));
  }

  /// It runs on demand.
  void observe(const Request<B>& request) {
    note_distances(request);
    if (logging()) parts_.recorder.operation(request);
  }

  /// A plan dropped values that are needed after all: the next plan keeps them.
  void keep_from_now_on(const Request<B>& request) {
    for (const auto& item : request.items) {
      if (!item.record->has_value() && item.record->absence == Absence::dropped) keep_value(*item.record);
    }
  }
  void keep_from_now_on(Rec& record) {
    keep_value(record);
    if (record.role == none) return;
    leave_plan("the value of tensor " + in_quotes(record.name) + " was needed and had been dropped", true);
  }

  // ---- the host's accesses

  /// The host is about to give the tensor a value.
  void uploaded(Rec& record) {
    Follower<B>& follower = parts_.follower;
    if (!in_iteration_) {  // the next iteration's business
      pending_uploads_.push_back(&record);
      return;
    }
    if (follower.active()) {
      if (follower.upload(record)) return;
      if (!concerns_plan(record)) return;
      leave_plan("the upload of tensor " + in_quotes(record.name) + " was not expected there", true);
    }
    if (logging()) parts_.recorder.upload(record);
  }
  void forget_upload(const Rec& record) noexcept { std::erase(pending_uploads_, &record); }

  /// The host reads the tensor's value.
  void downloaded(Rec& record) {
    if (parts_.follower.active()) {
      parts_.follower.download(record);
    } else if (parts_.recorder.is_open()) {
      parts_.recorder.download(record);
    }
  }

  // ---- plans

  /// Leaves the plan after a failure, when nothing may throw.
  void abandon_plan(const char* reason) noexcept {
    if (!parts_.follower.active()) return;
    try {
      leave_plan(reason, true);
    } catch (...) {
      parts_.recorder.abandon_quietly();
    }
    parts_.recorder.mark_broken();
    if (parts_.follower.active()) stop_following();
  }

  void summarize(Report& report) const {
    report.iterations_on_demand = on_demand_;
    report.iterations_followed = followed_;
    report.divergences = divergences_;
    report.last_divergence = last_divergence_;
    report.plan_starts = plan_starts_;
    report.start_h2d = start_h2d_;
    report.start_d2h = start_d2h_;
  }

 private:
  [[nodiscard]] bool observing() const { return book_.options().observe != 0 && !options_.check_access; }
  [[nodiscard]] bool holds_plan() const { return parts_.follower.active() && parts_.follower.times_started() == held_; }

  // What was measured, or another budget, may have made another plan the right one, or none.
  void follow_the_choice() {
    if (parts_.follower.active() && !holds_plan() && !book_.still_chosen(name_, parts_.follower.plan())) {
      leave_plan("another way is faster", false);
    }
    book_.plan_for_budget(
        name_, [&] { return parts_.machine(book_); },
        [&](const Program& program) { return parts_.follower.obstacle(program).empty(); });
  }

  void open_iteration() {
    const bool with_times = observing() && book_.wants_times(name_);
    if (!holds_plan()) measuring_.begin_iteration(name_, with_times && !parts_.follower.active());
    if (parts_.follower.active()) {
      bool expected = true;
      for (Rec* const record : pending_uploads_) {
        expected = expected && (parts_.follower.upload(*record) || !concerns_plan(*record));
      }
      if (!expected) leave_plan("a tensor of the plan was uploaded between iterations", true);
    }
    if (!parts_.follower.active()) {
      parts_.recorder.open(name_, with_times);
      for (Rec* const record : pending_uploads_) parts_.recorder.upload(*record);
    }
    pending_uploads_.clear();
  }

  // Nothing of the last iteration can change any more: its transient values die, and its log is learned from.
  void close_log() {
    Recorder<B>& recorder = parts_.recorder;
    if (!recorder.is_open()) return;
    recorder.close();
    for (LogTensor& tensor : recorder.log().tensors) {
      if (tensor.scratch()) continue;
      Rec& record = parts_.store.records[tensor.record];
      if (record.serial != tensor.serial || !record.alive) {
        tensor.destroyed = true;
        continue;
      }
      tensor.outlives = record.outlives;
      // What was written since belongs to the next iteration.
      if (record.lifetime == Lifetime::transient && record.written_in < parts_.store.iteration) end_value(record);
    }
    if (!observing()) return;
    measuring_.name_last(book_.observed(recorder.name(), recorder.take(), parts_.machine(book_)));
  }

  void end_value(Rec& record) {
    record.device.valid = false;
    record.host.valid = false;
    record.absence = Absence::never_written;
    if (record.device.resident) parts_.demand.release(record);
  }

  // Starts a plan whose beginning is what this iteration has done so far and is about to do.
  bool try_start(const Request<B>& request) {
    Recorder<B>& recorder = parts_.recorder;
    Store<B>& store = parts_.store;
    if (options_.check_access || !recorder.is_open() || recorder.has_operations()) return false;
    for (const PlanCase& candidate : book_.cases(name_)) {
      const FollowablePtr plan = candidate.choice();  // the book may change meanwhile
      if (plan == nullptr || !begins_with(plan->program, recorder.log(), request, store)) continue;
      if (!parts_.follower.obstacle(plan->program).empty()) continue;
      const Bytes in = store.traffic.h2d;
      const Bytes out = store.traffic.d2h;
      try {
        parts_.follower.start(plan);
      } catch (const InternalError&) {
        book_.give_up(plan, std::current_exception());
        throw;
      }
      start_h2d_ += store.traffic.h2d - in;
      start_d2h_ += store.traffic.d2h - out;
      ++plan_starts_;
      bool expected = true;
      for (const LogEvent& event : recorder.log().events) {
        if (event.what != LogEvent::What::upload) continue;
        Rec& record = store.records[recorder.log().tensors[event.index].record];
        expected = expected && parts_.follower.upload(record);
      }
      if (expected && parts_.follower.expects(request)) {
        recorder.abandon();
        book_.used(name_, plan);
        measuring_.plan_started();
        return true;
      }
      stop_following();
    }
    return false;
  }

  // The program does something else than the plan expects: on demand from here on, with the log of what this
  // iteration has done so far. What is queued stays queued.
  void leave_plan(const std::string& reason, bool counts) {
    Follower<B>& follower = parts_.follower;
    if (!follower.active()) return;
    Recorder<B>& recorder = parts_.recorder;
    const bool broken = recorder.broken();
    if (counts) {
      ++divergences_;
      last_divergence_ = reason;
    }
    recorder.open(name_, observing());
    if (broken) recorder.mark_broken();
    follower.write_log(recorder.log(), recorder.epoch());
    book_.interrupted(name_);
    stop_following();
  }

  void stop_following() noexcept {
    measuring_.plan_left();
    const FollowablePtr plan = parts_.follower.plan();
    const std::exception_ptr disorder = parts_.follower.stop([&](Rec& record) { parts_.reclaim(record); });
    if (disorder != nullptr) {
      book_.give_up(plan, disorder);
      parts_.failures.postpone(disorder, true);
    } else if (parts_.follower.fault()) {
      book_.give_up(plan, std::make_exception_ptr(*parts_.follower.fault()));
    }
  }

  // Values that are read iterations after they were written must not be taken for dead.
  void note_distances(const Request<B>& request) {
    for (const auto& item : request.items) {
      Rec& record = *item.record;
      if (item.access == Access::write || !record.has_value()) continue;
      const std::uint64_t distance = parts_.store.iteration - std::min(record.written_in, parts_.store.iteration);
      record.outlives =
          std::max(record.outlives, static_cast<std::uint32_t>(std::min<std::uint64_t>(distance, outlives_all)));
    }
  }

  void keep_value(Rec& record) {
    record.outlives = outlives_all;
    book_.keep_value(record.serial);
  }

  // An operation outside any iteration: nothing that was observed or planned goes on across it.
  void leave_iterations() {
    leave_plan("an operation ran between iterations", true);
    close_log();
    pending_uploads_.clear();
  }

  std::string unexpected(const Request<B>& request) {
    return "operation " + in_quotes(request.name) + " in iteration " + in_quotes(name_) + " was not expected there";
  }

  // One of the plan's tensors, or maybe a local of it that comes at another place than expected.
  bool concerns_plan(const Rec& record) const {
    return record.role != none || (record.fresh && record.born == parts_.store.iteration);
  }

  Parts<B>& parts_;
  ProgramBook& book_;
  const Options& options_;
  Measuring<B> measuring_;

  std::string name_;
  bool in_iteration_ = false;
  std::vector<Rec*> pending_uploads_;  // since the last iteration
  std::uint64_t held_ = 0;             // Follower::times_started() of a plan that was captured

  std::uint64_t on_demand_ = 0;
  std::uint64_t followed_ = 0;
  std::uint64_t divergences_ = 0;
  std::string last_divergence_;
  std::uint64_t plan_starts_ = 0;
  Bytes start_h2d_;
  Bytes start_d2h_;
};

}  // namespace swapmm::runtime
