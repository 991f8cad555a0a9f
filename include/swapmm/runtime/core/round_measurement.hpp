// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/plan/plan.hpp>
#include <swapmm/runtime/book/program_book.hpp>
#include <swapmm/runtime/book/stopwatch.hpp>
#include <swapmm/runtime/core/session_state.hpp>

namespace swapmm::runtime {

/// Times rounds when the program book requests it, and reports the times to the book once they are known. The host
/// never waits for them. While nothing is measured, the cost is a test of two flags per operation and copy.
template <Backend B>
class RoundMeasurement {
 public:
  RoundMeasurement(SessionState<B>& state, ProgramBook& book)
      : state_(state), book_(book), stopwatch_(state.store.backend) {}
  RoundMeasurement(const RoundMeasurement&) = delete;
  RoundMeasurement& operator=(const RoundMeasurement&) = delete;

  /// Called between two iterations; the last one had that name. Reports the known times to the book, which may make a
  /// plan. Waits for the device if the program runs on demand and the choice of the next plan depends on the times.
  void collect(std::string_view last) {
    if (state_.in_capture) return;  // no event can be queried there
    if (!state_.executor.active() && book_.awaits_times(last, !stopwatch_.ready())) {
      state_.store.timeline.host_wait(state_.store.timeline.everything());
    }
    stopwatch_.collect([&](const FollowablePtr& plan, std::uint64_t sequence, bool observed, const auto& time) {
      if (!time) return note_blank();
      blanks_ = 0;
      if (plan != nullptr) {
        book_.round_took(plan, *time);
      } else {
        book_.iteration_took(sequence, *time, observed);
      }
    });
    if (state_.store.sampler.ready()) collect_sample();
  }

  /// Sets the sequence of the last iteration on demand; 0 if nothing was learned from it.
  void name_last(std::uint64_t sequence) noexcept {
    if (last_was_timed_) stopwatch_.name_last(sequence);
  }

  /// Called when an iteration begins. `observed`: it runs on demand, and its operations are timed.
  void begin_iteration(std::string_view name, bool observed) {
    const PlanExecutor<B>& executor = state_.executor;
    if (executor.active() && !executor.at_start()) return;  // within a round
    stopwatch_.drop();
    last_was_timed_ = false;
    wanted_ = {};
    if (!allowed()) return;
    wanted_ = book_.measures(name);
    if ((wanted_.round || observed) && stopwatch_.ready()) {
      state_.store.with_times([&] { stopwatch_.begin(); });
    }
    if (executor.active()) start_sample();
  }
  /// Called when a plan begins in the iteration, at its first operation.
  void plan_started() {
    const CompiledPlan& plan = *state_.executor.plan();
    if (!wanted_.round) stopwatch_.drop();  // it was begun for an iteration on demand
    if (book_.options().sample_every != 0 && !blind_) {
      state_.store.sampler.reserve(works_of(plan));
      durations_.reserve(plan.program.trace.operations.size());
    }
    if (allowed()) start_sample();
  }
  void plan_left() noexcept {
    stopwatch_.drop();
    state_.store.give_up_sample();
  }
  /// Called when the iteration has ended, with the plan or on demand.
  void end_iteration(std::string_view name) {
    const PlanExecutor<B>& executor = state_.executor;
    if (executor.active() && !executor.at_start()) return;
    const bool is_sample = state_.store.sampler.active();
    if (executor.active()) book_.round_ended(name, executor.plan(), is_sample);
    if (is_sample) {
      if (!executor.active()) return plan_left();
      state_.store.finish_sample();
    }
    if (!stopwatch_.running()) return;
    if (!allowed()) return stopwatch_.drop();
    const bool observed = state_.store.timing && !state_.recorder.last_was_late();
    state_.store.with_times([&] { stopwatch_.end(executor.plan(), observed); });
    last_was_timed_ = !executor.active();
  }

  /// Discards all measurements in progress.
  void forget() noexcept {
    stopwatch_.drop_all();
    plan_left();
    state_.store.sampler.give_up();
  }

 private:
  // A profile slows down everything, and events in a capture have no times.
  [[nodiscard]] bool allowed() const { return !blind_ && !state_.store.profiler.active() && !state_.in_capture; }

  [[nodiscard]] static std::size_t works_of(const CompiledPlan& plan) {
    std::size_t works = plan.program.trace.operations.size() + spare;
    for (const Step& step : plan.steps) {
      works += step.kind == CommandKind::swap_in || step.kind == CommandKind::swap_out ? 1 : 0;
    }
    return works;
  }
  static constexpr std::size_t spare = 16;  // for copies outside the plan

  void start_sample() {
    Store<B>& store = state_.store;
    if (!wanted_.sample || store.sampler.active() || store.sampler.waiting()) return;
    sampled_ = state_.executor.plan();
    store.start_sample();
  }

  void collect_sample() {
    Store<B>& store = state_.store;
    durations_.clear();
    bool known = false;
    store.sampler.collect([&](QueueKind queue, Bytes bytes, std::uint32_t alike, std::chrono::nanoseconds time) {
      known = known || time.count() != 0;
      if (queue == QueueKind::compute) {
        durations_.push_back(time);
      } else if (time.count() != 0) {
        store.copy_took(queue, bytes, alike, time);
      }
    });
    if (!known) return note_blank();
    store.end_link_samples();
    tell_encodings();
    book_.sampled(sampled_, durations_, state_.machine(book_));
  }

  // The times of encoded copies may have changed with the values.
  void tell_encodings() {
    if (!sampled_->tells_homes || sampled_->tiered) return;
    const std::vector<TraceTensor>& tensors = sampled_->observed().trace.tensors;
    std::vector<std::optional<Bytes>> copied;
    copied.reserve(tensors.size());
    for (const TraceTensor& tensor : tensors) {
      copied.push_back(tensor.copied ? state_.copied_if_encoded(book_, tensor.name, tensor.bytes) : std::nullopt);
    }
    book_.copies_seem(sampled_, std::move(copied));
  }

  // A device that never reports times is not asked again.
  void note_blank() {
    if (++blanks_ < 4) return;
    blind_ = true;
    book_.tells_no_times();
  }

  SessionState<B>& state_;
  ProgramBook& book_;
  Stopwatch<B> stopwatch_;
  ProgramBook::Measures wanted_;  // in the round that begins
  FollowablePtr sampled_;
  std::vector<std::chrono::nanoseconds> durations_;  // of its operations
  std::size_t blanks_ = 0;                           // consecutive rounds without times
  bool blind_ = false;
  bool last_was_timed_ = false;  // the last iteration, on demand
};

}  // namespace swapmm::runtime
