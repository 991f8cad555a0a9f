// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/core/plan_controller.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// A round of a followed plan as a graph of the API, and the changes that one run of it makes to the library's state.
template <CapturingBackend B>
struct CapturedRound {
  struct Value {
    Record<B>* record;
    bool on_device;  ///< valid on the device after each run
    bool on_host;    ///< valid on the host after each run
    bool written;    ///< each run writes a new value
  };
  typename B::Graph graph;
  std::uint64_t start = 0;    ///< PlanExecutor::times_started(); if it differs now, the plan was started again
  std::vector<Value> values;  ///< those of the plan's tensors that outlive the round
  Traffic traffic;            ///< of one run; its peak is unused
  std::uint64_t iterations = 0;
  std::uint64_t operations = 0;
};

/// Captures rounds of a followed plan and runs them again. At the end of a round all values are in the same places as
/// at its beginning, so the same queued work is correct each time, and the host need not queue it again.
template <Backend B>
class IterationCapture {  // for a backend that cannot capture
 public:
  IterationCapture(SessionState<B>&, PlanController<B>&) {}
};
template <CapturingBackend B>
class IterationCapture<B> {
 public:
  IterationCapture(SessionState<B>& state, PlanController<B>& controller) : state_(state), controller_(controller) {}

  /// Begins to capture the plan's work. Waits for all queued work. Throws UsageError if no round of a plan can begin
  /// now.
  void begin(std::string_view name, std::uint64_t operations) {
    require_round(name);
    require_lasting_host_memory(name);
    Store<B>& store = state_.store;
    store.timeline.host_wait(store.timeline.everything());
    store.fixed_slots = true;  // from now on, because runs and other iterations alternate
    store.backend.begin_capture();
    state_.in_capture = true;
    start_ = state_.executor.times_started();
    first_issue_ = store.timeline.last_issue() + 1;
    traffic_ = store.traffic;
    iteration_ = store.iteration;
    operations_ = operations;
  }

  /// True if the round has another iteration.
  [[nodiscard]] bool within_round() const { return still_followed() && !state_.executor.at_start(); }

  /// Runs the captured work for the first time. Throws UsageError if it is not a whole round.
  [[nodiscard]] CapturedRound<B> end(std::uint64_t operations) {
    const bool whole = still_followed() && state_.executor.at_start();
    CapturedRound<B> round{run_once(), start_, {}, {}, 0, 0};
    if (!whole) {
      state_.store.drain();  // work without a correctly recorded point has ended
      throw UsageError("the captured iteration ended before the plan's last operation");
    }
    controller_.hold_plan();
    const Traffic& now = state_.store.traffic;
    round.traffic = {now.swap_ins - traffic_.swap_ins,
                     now.swap_outs - traffic_.swap_outs,
                     now.h2d - traffic_.h2d,
                     now.d2h - traffic_.d2h,
                     {},
                     {},
                     now.encoded_in - traffic_.encoded_in,
                     now.encoded_out - traffic_.encoded_out};
    round.iterations = state_.store.iteration - iteration_;
    round.operations = operations - operations_;
    state_.executor.for_each_bound([&](const Role& role, Record<B>& record) {
      if (role.kind != Role::Kind::handle) return;
      round.values.push_back({&record, record.device.valid, record.host.valid, record.value.written_in >= iteration_});
    });
    return round;
  }

  /// Called if an exception was thrown during the capture: work that was queued before still has to run.
  void give_up() {
    if (!state_.in_capture) return;
    const typename B::Graph graph = run_once();
    state_.store.drain();
  }

  /// Queues the round again. Throws UsageError if the plan was left since, or if one of its tensors was uploaded or
  /// destroyed.
  void replay(CapturedRound<B>& round) {
    PlanExecutor<B>& executor = state_.executor;
    if (!executor.active() || executor.times_started() != round.start) {
      throw UsageError("the plan of a captured iteration was left before launch(): capture the iteration again");
    }
    require_round(controller_.name());
    if (const std::string obstacle = executor.obstacle(executor.plan()->program); !obstacle.empty()) {
      throw UsageError("a captured iteration cannot be launched: " + obstacle);
    }
    Store<B>& store = state_.store;
    executor.for_each_bound([&](const Role&, Record<B>& record) { settle(record); });
    try {
      store.issue([&] { store.backend.launch(round.graph); });
    } catch (...) {
      lose(round);
      throw;
    }
    book(round);
  }

 private:
  [[nodiscard]] bool still_followed() const {
    return state_.executor.active() && state_.executor.times_started() == start_;
  }

  void require_round(std::string_view name) const {
    if (state_.store.profiler.active()) {
      throw UsageError("no iteration can be captured or launched while a profile is being recorded");
    }
    if (!controller_.between_iterations()) {
      throw UsageError("iteration " + in_quotes(controller_.name()) +
                       " must end before another one is captured or launched");
    }
    if (!state_.executor.active() || controller_.name() != name) {
      throw UsageError("iteration " + in_quotes(name) +
                       " follows no plan: run it until Report::iterations_followed grows, then capture it");
    }
    if (!state_.executor.at_start()) {
      throw UsageError("iteration " + in_quotes(name) +
                       " is in the middle of a cycle of several iterations: run the rest of them first");
    }
    if (controller_.uploads_wait()) {
      throw UsageError("a tensor was uploaded since iteration " + in_quotes(name) +
                       " last ended, and a graph contains no uploads: run an iteration with the new value first");
    }
    if (state_.executor.plan()->program.has_uploads()) {
      throw UsageError("iteration " + in_quotes(name) + " uploads a tensor, and a graph contains no uploads");
    }
  }

  // The graph contains addresses of host memory: they must not change, and copies must not need the host.
  void require_lasting_host_memory(std::string_view name) {
    const CompiledPlan& plan = *state_.executor.plan();
    for (std::size_t role = 0; role < plan.program.roles.size(); ++role) {
      if (plan.program.roles[role].kind == Role::Kind::handle || !plan.swapped_out[role]) continue;
      TensorName tensor{.name = plan.program.trace.tensors[role].name, .bytes = plan.program.roles[role].bytes};
      const std::string text = "iteration " + in_quotes(name) + " makes and swaps out tensor " +
                               in_quotes(tensor.name) +
                               ", whose host memory does not stay the same: make the tensor before the iteration";
      throw UsageError(text, {.tensors = {std::move(tensor)}});
    }
    state_.executor.for_each_bound([&](const Role&, Record<B>& record) {
      if (record.host.block == nullptr || record.host.block->kind == HostKind::pinned) return;
      throw UsageError("iteration " + in_quotes(name) + ": tensor " + in_quotes(record.name) +
                           (record.host.block->in_host()
                                ? " is in pageable host memory, whose copies cannot be captured: raise "
                                  "Options::pinned_budget"
                                : " is in the file or on a neighbour, whose copies cannot be captured: keep it in "
                                  "the host"),
                       {.tensors = {name_of(record)}});
    });
  }

  // Ends the capture and launches its graph: the library's state counts the captured work as done.
  typename B::Graph run_once() {
    state_.in_capture = false;
    Store<B>& store = state_.store;
    try {
      typename B::Graph graph = store.backend.end_capture();
      store.backend.launch(graph);
      return graph;
    } catch (const BackendError& error) {
      if (error.kind == BackendError::Kind::device_lost) throw;
      // The graph may not have run. All work queued since the capture began counts as failed, whatever its points
      // report.
      CommandLabel label;
      label.what = CommandLabel::What::operation;
      label.issue = first_issue_;
      label.set_name("captured iteration: " + std::string(error.what()));
      throw QueueFailure{QueueKind::compute, label};
    }
  }

  // Promised reads get their bytes before the next run overwrites them.
  void settle(Record<B>& record) {
    for (auto* const block : {record.host.block.get(), record.host.spare.get()}) {
      if (block != nullptr) state_.store.settle_pending(*block);
    }
  }

  // Called if the graph may or may not have run: the values that it writes are lost.
  void lose(const CapturedRound<B>& round) noexcept {
    for (const auto& value : round.values) {
      if (value.written) state_.store.lose(*value.record);
    }
    controller_.abandon_plan("a captured iteration could not be launched");
  }

  void book(const CapturedRound<B>& round) {
    Store<B>& store = state_.store;
    for (const auto& value : round.values) {
      Record<B>& record = *value.record;
      record.device.valid = value.on_device;
      record.host.valid = value.on_host;
      if (value.written) record.value.written_in += round.iterations;
    }
    store.traffic.swap_ins += round.traffic.swap_ins;
    store.traffic.swap_outs += round.traffic.swap_outs;
    store.traffic.h2d += round.traffic.h2d;
    store.traffic.d2h += round.traffic.d2h;
    store.traffic.encoded_in += round.traffic.encoded_in;
    store.traffic.encoded_out += round.traffic.encoded_out;
    store.iteration += round.iterations;
    controller_.count_followed(round.iterations);
    // If no point can be recorded after the run, wait for its end instead.
    store.issue([&] { store.timeline.mark_all(); });
    const Clock all = store.timeline.points();
    state_.executor.for_each_bound([&](const Role&, Record<B>& record) {
      record.device.ready.join(all);
      record.device.busy.join(all);
      for (auto* const block : {record.host.block.get(), record.host.spare.get()}) {
        if (block == nullptr) continue;
        block->written = all[QueueKind::d2h];
        block->read = all[QueueKind::h2d];
      }
    });
  }

  SessionState<B>& state_;
  PlanController<B>& controller_;
  std::uint64_t start_ = 0;
  std::uint64_t first_issue_ = 0;  // number of the first command of the capture
  Traffic traffic_;
  std::uint64_t iteration_ = 0;
  std::uint64_t operations_ = 0;
};

}  // namespace swapmm::runtime
