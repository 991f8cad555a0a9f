// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/joint/turn_taker.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/moves/drops.hpp>
#include <swapmm/runtime/moves/faults.hpp>
#include <swapmm/runtime/moves/followed_log.hpp>
#include <swapmm/runtime/moves/plan_start.hpp>
#include <swapmm/runtime/moves/role_binding.hpp>
#include <swapmm/runtime/moves/round_clock.hpp>
#include <swapmm/runtime/observe/plan_match.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/homes.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Runs a compiled plan: checks that the program does what the plan expects, and queues each command of the plan as
/// soon as everything that it waits for has been queued. In the steady state it does not allocate or make backend
/// objects, and waits for the device only if the host would run too far ahead.
///
/// While a plan is followed, Store::places and the list of residents in Demand are not updated; rebuild_residents()
/// rebuilds them.
template <Backend B>
class PlanExecutor {
 public:
  using Rec = Record<B>;

  /// `certainly_dead`, `makes_again`: see Drops.
  PlanExecutor(Store<B>& store, Demand<B>& demand, std::size_t run_ahead,
               std::function<bool(const void*)> certainly_dead = nullptr, bool makes_again = false)
      : store_(store),
        demand_(demand),
        rounds_(store.timeline, run_ahead),
        turns_(store.backend),
        drops_(store, std::move(certainly_dead), makes_again),
        roles_(store, drops_) {}
  PlanExecutor(const PlanExecutor&) = delete;
  PlanExecutor& operator=(const PlanExecutor&) = delete;

  [[nodiscard]] bool active() const { return plan_ != nullptr; }
  [[nodiscard]] const FollowablePtr& plan() const { return plan_; }
  /// True between the last event of a cycle and the first event of the next one.
  [[nodiscard]] bool at_start() const { return cursor_ == 0; }
  /// Number of times that a plan was started. While it does not change, the same plan runs without a break.
  [[nodiscard]] std::uint64_t times_started() const { return times_started_; }
  /// Calls visit(role, record) for each tensor that is bound to a role of the plan. Tensors that are created inside
  /// iterations may differ in the next round.
  template <class Visit>
  void for_each_bound(Visit&& visit) {
    roles_.for_each(std::forward<Visit>(visit));
  }

  // ---- start and end

  /// The reason why a plan for `program` cannot be followed from here (its tensors are gone, or have no value yet), or
  /// an empty text.
  [[nodiscard]] std::string obstacle(const Program& program) { return obstacle_to(program, store_); }

  /// Moves tensors until the residency is the one that the plan starts from, and follows the plan from its first
  /// operation on. obstacle() must be empty. Slow: makes addresses and events, may queue copies, may wait.
  StartCopies start(FollowablePtr plan) {
    fault_.reset();
    auto start = PlanStart<B>(store_, demand_, *plan).run(rounds_.run_ahead());
    std::vector<std::uint8_t> saves_in_a_row(plan->steps.size(), 0);
    turns_.start(plan->turns.get());
    // Nothing below throws.
    plan_ = std::move(plan);
    roles_.start(plan_->program, std::move(start.roles));
    addresses_ = std::move(start.addresses);
    saves_in_a_row_ = std::move(saves_in_a_row);
    ++times_started_;
    rounds_.start(plan_->points);
    rewind();
    return start.copies;
  }

  /// Stops following the plan at any point. Queued work stays queued. Passes bound tensors without a handle to
  /// `reclaim`. Returns the InternalError if the plan has left the device in an invalid state, otherwise null. In both
  /// cases the program continues on demand.
  template <class Reclaim>
  [[nodiscard]] std::exception_ptr stop(Reclaim&& reclaim) {
    const FollowablePtr left = std::exchange(plan_, nullptr);
    if (left == nullptr) return nullptr;
    turns_.stop();
    std::exception_ptr disorder;
    roles_.stop([&] { disorder = demand_.rebuild_residents(); }, std::forward<Reclaim>(reclaim));
    cursor_ = 0;
    return disorder;
  }

  /// The InternalError that was thrown while commands of the plan that was started last were queued: either the plan or
  /// the executor is wrong.
  [[nodiscard]] const std::optional<InternalError>& fault() const { return fault_; }

  // ---- events of the program

  /// Begins the next round, unless one has begun. Waits for the device only if it is run_ahead rounds behind.
  void ensure_round() {
    if (rounds_.begun()) return;
    rounds_.begin_round();
    if (turns_.active()) [[unlikely]]
      turns_.begin_round();
  }

  /// Returns whether the plan expects this operation now. Changes nothing.
  [[nodiscard]] bool expects(const Request<B>& request) const {
    const Program& program = plan_->program;
    const Event& next = program.events[next_event()];
    return next.what == (request.again ? Event::What::replay : Event::What::operation) && fits(next.index, request);
  }
  /// Returns whether the plan expects this operation after the replays that come before it. Changes nothing.
  [[nodiscard]] bool expects_after_replays(const Request<B>& request) const {
    const auto& events = plan_->program.events;
    std::size_t event = next_event();
    while (events[event].what == Event::What::download || events[event].what == Event::What::replay) ++event;
    return events[event].what == Event::What::operation && fits(events[event].index, request);
  }
  /// The operation that is to run again now, as the number that it was observed with.
  [[nodiscard]] std::optional<std::uint32_t> next_replay() const {
    const Event& next = plan_->program.events[next_event()];
    if (next.what != Event::What::replay) return std::nullopt;
    return plan_->program.replays.runs[next.index];
  }
  /// The number that the current operation was observed with, if the plan runs it again later.
  [[nodiscard]] std::uint32_t current_if_repeated() const {
    const Replays& replays = plan_->program.replays;
    if (replays.empty()) [[likely]]
      return none;
    const Event& current = plan_->program.events[cursor_];
    const std::uint32_t observed = replays.runs[current.index];
    return current.what == Event::What::operation && replays.times[observed] != 0 ? observed : none;
  }
  /// How often the plan runs an operation again.
  [[nodiscard]] std::uint32_t times_repeated(std::uint32_t observed) const {
    return plan_->program.replays.times[observed];
  }
  /// What would still run again in this iteration, and has run before, each once, in the order of the program. Values
  /// that the plan has dropped because of that are only to be had by these.
  [[nodiscard]] std::vector<std::uint32_t> replays_to_come() const {
    std::vector<std::uint32_t> list;
    const Replays& replays = plan_->program.replays;
    if (replays.empty()) return list;
    std::vector<bool> has_run(replays.times.size(), false);
    const auto& events = plan_->program.events;
    for (std::size_t event = iteration_start_; event < events.size(); ++event) {
      if (event < cursor_ && events[event].what == Event::What::operation)
        has_run[replays.runs[events[event].index]] = true;
      if (event < cursor_ || events[event].what != Event::What::replay) continue;
      const std::uint32_t observed = replays.runs[events[event].index];
      if (!has_run[observed]) continue;
      has_run[observed] = false;
      list.push_back(observed);
    }
    std::ranges::sort(list);
    return list;
  }

  /// Called before the plan is left. If some of the replays before an operation have run and others have not, because
  /// one failed, what those were to update is lost: it has a value that it had in between.
  void lose_unfinished() noexcept {
    const Program& program = plan_->program;
    if (cursor_ == iteration_start_ || program.events[cursor_ - 1].what != Event::What::replay) return;
    for (std::size_t event = cursor_; program.events[event].what == Event::What::replay; ++event) {
      const std::uint32_t operation = program.events[event].index;
      for (std::uint32_t i = program.first_access[operation]; i < program.first_access[operation + 1]; ++i) {
        Rec* const record = roles_.record(program.accesses[i].role);
        if (program.accesses[i].access == Access::update && record != nullptr) store_.lose(*record);
      }
    }
  }

  /// Queues the plan's commands that precede the expected operation.
  void bring(const Request<B>& request, Grant<B>& grant) {
    const Program& program = plan_->program;
    ensure_round();
    cursor_ = next_event();
    const std::uint32_t operation = program.events[cursor_].index;
    const std::uint32_t first = program.first_access[operation];
    for (std::size_t i = 0; i < request.items.size(); ++i)
      roles_.bind(program.accesses[first + i].role, *request.items[i].record, rounds_.round());
    run_steps(plan_->first_step[2 * std::size_t{operation} + 1]);
    grant.needs = rounds_.resolve(plan_->operations[operation].needs);
    for (const auto& item : request.items) {
      const Rec& record = *item.record;
      if (!is_brought(item)) throw fault_.emplace(not_brought(request));
      // A valid plan waits for its own copies. Copies that the program requests outside the plan are waited for here.
      grant.needs.join(item.access == Access::read ? record.device.ready : record.device.busy);
    }
    if (const std::uint32_t scratch = program.scratch_roles[operation]; scratch != none) {
      grant.scratch = roles_.place(scratch).address;
      grant.scratch_offset = roles_.place(scratch).offset;
      grant.needs.join(roles_.place(scratch).after);
    }
  }

  [[nodiscard]] bool current_is_recorded() const {
    return plan_->operations[plan_->program.events[cursor_].index].recorded;
  }
  /// The recorded point at or after the end of the current operation.
  [[nodiscard]] QueuePoint current_point() const {
    const std::uint32_t operation = plan_->program.events[cursor_].index;
    return rounds_.point(QueueKind::compute, 0, plan_->operations[operation].ordinal);
  }

  /// Called after the operation was queued, and its point recorded if the plan needs one.
  void complete() {
    const std::uint32_t operation = plan_->program.events[cursor_].index;
    if (plan_->operations[operation].recorded) rounds_.recorded(QueueKind::compute);
    ++cursor_;
    run_steps(plan_->first_step[2 * std::size_t{operation} + 2]);
  }

  /// True if the plan expects the host to give this tensor a value now. Changes nothing.
  [[nodiscard]] bool expects_upload(const Rec& record) const {
    const Event& expected = plan_->program.events[next_event()];
    return expected.what == Event::What::upload && roles_.fits(expected.index, record, true, rounds_.round());
  }
  /// Called when the host gives this tensor a value. False, and nothing is done, if the plan does not expect it.
  [[nodiscard]] bool upload(Rec& record) {
    if (!expects_upload(record)) return false;
    const std::size_t event = next_event();
    const Event& expected = plan_->program.events[event];
    ensure_round();
    roles_.bind(expected.index, record, rounds_.round());
    cursor_ = event + 1;
    return true;
  }

  /// Called when the host reads the tensor. The plan continues whether it expects this or not.
  void download(const Rec& record) {
    const auto& events = plan_->program.events;
    for (std::size_t event = cursor_; events[event].what == Event::What::download; ++event) {
      if (roles_.record(events[event].index) != &record) continue;
      cursor_ = event + 1;
      return;
    }
  }

  /// Returns whether all values that the plan drops up to the end of the next operation are certainly dead, as far as
  /// is known before that operation. A caller that may wait with the operation learns from this whether to.
  [[nodiscard]] bool next_drops_are_certain() const {
    const Event& event = plan_->program.events[next_event()];
    if (event.what != Event::What::operation && event.what != Event::What::replay) return true;
    const std::uint32_t end = plan_->first_step[2 * std::size_t{event.index} + 2];
    for (std::uint32_t step = step_; step < end; ++step) {
      if (plan_->steps[step].kind != CommandKind::release || in_vain(step)) continue;
      const Rec* const record = roles_.record(plan_->steps[step].role);
      if (record == nullptr || drops_.are_certain(*record, plan_->steps[step].made_again)) continue;
      if (!saves(step, plan_->steps[step].role)) return false;
    }
    return true;
  }

  /// Called after a copy to the host that is not in the plan was queued.
  void side_copy(QueueKind queue, QueuePoint at) { side_.set(queue, at); }
  /// What the plan dropped and was saved, because it may not be dead.
  [[nodiscard]] const Drops<B>& drops() const { return drops_; }
  [[nodiscard]] Drops<B>& drops() { return drops_; }

  /// Turns with copies of other managers.
  [[nodiscard]] const TurnTaker<B>& turns() const { return turns_; }
  [[nodiscard]] TurnTaker<B>& turns() { return turns_; }

  /// The number of iterations of this round that have ended.
  [[nodiscard]] std::size_t iteration() const { return iteration_; }

  /// Whether the plan expects no more events in this iteration.
  [[nodiscard]] bool expects_end() const {
    return plan_->program.events[next_event()].what == Event::What::end_of_iteration;
  }
  /// Ends the iteration. Returns false if the plan expects more events in it.
  [[nodiscard]] bool end_iteration() {
    if (!expects_end()) return false;
    cursor_ = next_event() + 1;
    iteration_start_ = cursor_;
    ++iteration_;
    if (cursor_ == plan_->program.events.size()) rewind();
    return true;
  }

  /// Logs the events of the current iteration so far, as if they had been observed.
  void write_log(IterationLog& log, std::uint64_t epoch) {
    FollowedLog<B>(plan_->program, roles_, store_.iteration, log, epoch).write(iteration_start_, cursor_);
  }

 private:
  void rewind() {
    cursor_ = 0;
    step_ = 0;
    iteration_ = 0;
    iteration_start_ = 0;
    rounds_.end_round();
  }

  // Skips expected downloads that the program omits.
  [[nodiscard]] std::size_t next_event() const {
    std::size_t event = cursor_;
    while (plan_->program.events[event].what == Event::What::download) ++event;
    return event;
  }

  [[nodiscard]] bool fits(std::uint32_t operation, const Request<B>& request) const {
    return is_operation(plan_->program, operation, request, [&](std::uint32_t role, const Rec& record, Access access) {
      return roles_.fits(role, record, access == Access::write, rounds_.round());
    });
  }

  // ---- steps

  // Returns whether to wait for certainty about what this step drops: not if that was in vain, but for a try now and
  // then.
  [[nodiscard]] bool in_vain(std::uint32_t step) const {
    return saves_in_a_row_[step] >= 2 && saves_in_a_row_[step] % 16 != 0;
  }

  // Returns whether the plan itself saves the value of the role in a step that is still to come before step `end`.
  [[nodiscard]] bool saves(std::uint32_t end, std::uint32_t role) const {
    for (std::uint32_t step = step_; step < end; ++step) {
      if (plan_->steps[step].kind == CommandKind::swap_out && plan_->steps[step].role == role) return true;
    }
    return false;
  }

  void run_steps(std::uint32_t end) {
    try {
      if (turns_.active()) [[unlikely]]
        return run_in_turns(end);
      for (; step_ < end; ++step_) run(plan_->steps[step_], addresses_[step_]);
    } catch (const InternalError& error) {
      fault_ = error;
      throw;
    }
  }

  void run_in_turns(std::uint32_t end) {
    for (; step_ < end; ++step_) {
      const Step& step = plan_->steps[step_];
      const bool is_in = step.kind == CommandKind::swap_in;
      const QueueKind queue = is_in ? in_queue(step.copy.home) : out_queue(step.copy.home);
      if (is_in || step.kind == CommandKind::swap_out) turns_.before(step_, queue);
      run(step, addresses_[step_]);
      turns_.after(step_, queue);
    }
  }

  [[nodiscard]] InternalError wrong(std::string_view what, const Step& step) const {
    Rec* const record = roles_.record(step.role);
    const std::string& name = plan_->program.trace.tensors[step.role].name;
    return wrong_step(what, record, record != nullptr ? name_of(*record) : TensorName{.name = name});
  }

  void run(const Step& step, const typename B::Address* address) {
    Rec* const record = roles_.record(step.role);
    Clock needs = rounds_.resolve(step.needs);
    switch (step.kind) {
      case CommandKind::allocate: join_side_copies(needs); return allocate(step, record, address, needs);
      case CommandKind::swap_in: join_side_copies(needs); return swap_in(step, record, address, needs);
      case CommandKind::swap_out: return swap_out(step, record, needs);
      case CommandKind::release: return release(step, record, needs);
    }
  }

  void join_side_copies(Clock& needs) const {
    needs.join(side_);
    needs.join(drops_.copies());
  }

  void allocate(const Step& step, Rec* record, const typename B::Address* address, const Clock& needs) {
    if (record != nullptr && !record->device.resident && roles_.bound_in(step.role, rounds_.round())) {
      store_.assign_place(*record, step.offset, address, needs);
    } else {
      if (roles_.place(step.role).resident) throw wrong("allocates twice", step);
      store_.book(plan_->program.roles[step.role].bytes, needs);
      roles_.place(step.role) = {true, step.offset, address, needs};
    }
  }

  // The point that the plan expects in `planned`, if the copy is in another queue: the value is not where the plan
  // says.
  void record_copy(QueueKind planned, QueueKind used) {
    if (used != planned) store_.timeline.mark_after(planned, Clock::point(used, store_.timeline.issued(used)));
    rounds_.recorded(planned);
  }

  void swap_in(const Step& step, Rec* record, const typename B::Address* address, Clock needs) {
    if (record != nullptr && !record->tensor.alive) {  // nothing needs the value, but the place and the point
      if (record->device.resident) throw wrong("swaps in what is on the device already", step);
      store_.assign_place(*record, step.offset, address, needs);
      store_.timeline.mark(in_queue(step.copy.home));
      return rounds_.recorded(in_queue(step.copy.home));
    }
    if (record == nullptr || !record->host.valid) {
      throw wrong("swaps in a value that is not on the host", step);
    }
    if (record->device.resident) throw wrong("swaps in what is on the device already", step);
    needs = store_.before_swap_in(*record, needs);
    store_.assign_place(*record, step.offset, address, needs);
    try {
      store_.swap_in(*record, needs);
    } catch (...) {
      store_.clear_place(*record);
      throw;
    }
    record_copy(in_queue(step.copy.home), in_queue(record->host.block->home()));
    // Not if the value may have to be saved when it leaves again.
    if (step.copy.ends && !drops_.must_be_certain()) leave_block(*record, store_);
  }

  void swap_out(const Step& step, Rec* record, Clock needs) {
    const QueueKind planned = out_queue(step.copy.home);
    if (record == nullptr || !record->device.valid || !record->tensor.alive) {
      // There is no value on the device, or nothing needs it: there is nothing to save, but the point is needed.
      store_.timeline.mark(planned);
      return rounds_.recorded(planned);
    }
    const bool decides = plan_->tells_homes || store_.encodings.history().is_on();
    if (decides) [[unlikely]]
      ensure_block_in(step.copy.home, *record, store_);
    store_.ensure_block_for_swap_out(*record, decides);
    needs.join(store_.before_swap_out(*record));
    store_.swap_out(*record, needs);
    record_copy(planned, out_queue(record->host.block->home()));
  }

  void release(const Step& step, Rec* record, const Clock& needs) {
    if (record != nullptr && record->device.resident) {
      std::uint8_t& saves = saves_in_a_row_[step_];
      saves = drops_.settle(*record, step.made_again) ? static_cast<std::uint8_t>(saves + 1) : std::uint8_t{0};
      record->device.busy.join(needs);
      store_.clear_place(*record);
    } else if (auto& place = roles_.place(step.role); place.resident) {
      place.resident = false;
      store_.unbook(plan_->program.roles[step.role].bytes, needs);
    }
  }

  Store<B>& store_;
  Demand<B>& demand_;
  RoundClock<B> rounds_;
  TurnTaker<B> turns_;
  Drops<B> drops_;
  RoleBinding<B> roles_;

  FollowablePtr plan_;
  std::optional<InternalError> fault_;  // of the plan that was started last
  std::uint64_t times_started_ = 0;
  std::vector<const typename B::Address*> addresses_;  // per step
  std::vector<std::uint8_t> saves_in_a_row_;           // per step that drops values: rounds in which one was saved

  std::size_t cursor_ = 0;           // next event
  std::uint32_t step_ = 0;           // next step
  std::size_t iteration_ = 0;        // of the round
  std::size_t iteration_start_ = 0;  // event
  Clock side_;                       // copies outside the plan that may still run
};

}  // namespace swapmm::runtime
