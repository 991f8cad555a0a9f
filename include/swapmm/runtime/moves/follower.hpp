// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>
#include <swapmm/runtime/moves/demand.hpp>
#include <swapmm/runtime/moves/faults.hpp>
#include <swapmm/runtime/observe/plan_match.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Runs a compiled plan: checks that the program does what the plan expects, and queues the plan's commands as
/// soon as all they wait for has been queued. In the steady state it allocates nothing, makes no backend object and
/// waits for the device only where the host would run ahead too far.
///
/// While it follows, Store::places and the list of residents in Demand are not kept; take_over() books them anew.
template <Backend B>
class Follower {
 public:
  using Rec = Record<B>;

  Follower(Store<B>& store, Demand<B>& demand, std::size_t run_ahead)
      : store_(store), demand_(demand), run_ahead_(std::clamp<std::size_t>(run_ahead, 1, max_back)) {}
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  [[nodiscard]] bool active() const { return plan_ != nullptr; }
  [[nodiscard]] const FollowablePtr& plan() const { return plan_; }
  /// Between the last event of a cycle and the first of the next one.
  [[nodiscard]] bool at_start() const { return cursor_ == 0; }
  /// How often a plan was begun. The same number: the same plan, without a break.
  [[nodiscard]] std::uint64_t times_started() const { return times_started_; }
  /// visit(role, record): the tensors that the plan's roles are bound to. Those made inside iterations may be others in
  /// the next round.
  template <class Visit>
  void for_each_bound(Visit&& visit) {
    for (std::size_t role = 0; role < bound_.size(); ++role) {
      if (bound_[role] != nullptr && bound_[role]->role != none) visit(plan_->program.roles[role], *bound_[role]);
    }
  }
  /// Places that no tensor has are free only after that, too.
  void comes_after(const Clock& point) {
    for (Place& place : early_) place.after.join(point);
  }
  /// No operation of the current cycle has been queued.
  [[nodiscard]] bool before_first_operation() const { return operation_ == 0; }

  // ---- start and end

  /// Why a plan for `program` cannot be followed from here, or an empty text: its tensors are gone, or have no value
  /// yet.
  [[nodiscard]] std::string obstacle(const Program& program) {
    for (std::size_t role = 0; role < program.roles.size(); ++role) {
      const Role& expected = program.roles[role];
      if (expected.kind != Role::Kind::handle) continue;
      const Rec& record = store_.records[expected.record];
      if (record.serial != expected.serial || !record.alive) {
        return "tensor \"" + program.trace.tensors[role].name + "\" no longer exists";
      }
      if (program.trace.tensors[role].kind == TensorKind::persistent && !record.has_value()) {
        return "tensor \"" + record.name + "\" has no value";
      }
    }
    return {};
  }

  /// Makes the residency what the plan starts from, by the moves that differ, and follows it from its first
  /// operation on. obstacle() must be empty. Slow: makes addresses and events, may queue copies, may wait.
  void start(FollowablePtr plan) {
    const CompiledPlan& next = *plan;
    const std::size_t roles = next.program.roles.size();
    std::vector<Rec*> bound(roles, nullptr);
    std::vector<Place> early(roles);
    for (std::size_t role = 0; role < roles; ++role) {
      if (next.program.roles[role].kind == Role::Kind::handle)
        bound[role] = &store_.records[next.program.roles[role].record];
    }
    std::vector<const typename B::Address*> addresses;
    addresses.reserve(next.steps.size());
    for (const Step& step : next.steps) {
      const bool placed = step.kind == CommandKind::allocate || step.kind == CommandKind::swap_in;
      addresses.push_back(placed ? store_.addresses.at(step.offset, next.program.roles[step.role].bytes) : nullptr);
    }
    for (const QueueKind queue : all_queues) {
      store_.timeline.reserve(queue, next.points[index(queue)] * (run_ahead_ + 2) + 16);
    }
    for (std::size_t role = 0; role < roles; ++role) {
      if (next.swapped_out[role] && bound[role] != nullptr) store_.ensure_block(*bound[role]);
    }
    // What the host fills in every round takes turns in two slots; made here, so that none is made while following.
    for (const Event& event : next.program.events) {
      if (event.what == Event::What::upload && bound[event.index] != nullptr) store_.ensure_spare(*bound[event.index]);
    }
    std::vector<std::uint64_t> bound_in(roles, 0);
    done_ = {};
    fault_.reset();
    arrange(next, bound, early);
    for (Rec* const record : bound) {
      if (record != nullptr) record->role = 0;
    }
    // Nothing below throws.
    bound_ = std::move(bound);
    bound_in_ = std::move(bound_in);
    early_ = std::move(early);
    addresses_ = std::move(addresses);
    plan_ = std::move(plan);
    ++times_started_;
    start_ = store_.timeline.everything();
    followed_ = -1;
    rewind();
  }

  /// Stops following, wherever it is: what was queued stays queued. Bound tensors without a handle are handed to
  /// `reclaim`. Returns the InternalError of a plan that had left the device in disorder, or null; it is on demand
  /// either way.
  template <class Reclaim>
  [[nodiscard]] std::exception_ptr stop(Reclaim&& reclaim) {
    if (!active()) return nullptr;
    for (std::size_t role = 0; role < early_.size(); ++role) {
      if (early_[role].resident) store_.unbook(plan_->program.roles[role].bytes, early_[role].after);
      early_[role].resident = false;
    }
    plan_ = nullptr;
    const std::exception_ptr disorder = demand_.take_over();
    for (Rec* const record : bound_) {
      if (record == nullptr || !record->in_use) continue;
      record->role = none;
      if (!record->alive) reclaim(*record);
    }
    bound_.clear();
    cursor_ = 0;
    operation_ = 0;
    return disorder;
  }

  /// An InternalError came while this plan's commands were queued: the plan is wrong, or whoever runs it.
  [[nodiscard]] const std::optional<InternalError>& fault() const { return fault_; }

  // ---- events of the program

  /// The host begins the next round of the cycle. Waits for the device only if it is run_ahead rounds behind.
  void begin_cycle() {
    for (std::size_t back = starts_.size() - 1; back > 0; --back) starts_[back] = starts_[back - 1];
    starts_[0] = store_.timeline.points();
    done_ = {};
    ++followed_;
    begun_ = true;
    if (static_cast<std::size_t>(followed_) >= run_ahead_) {
      store_.timeline.host_wait(Clock::point(QueueKind::compute, starts_[run_ahead_ - 1][QueueKind::compute]));
    }
  }
  [[nodiscard]] bool begun() const { return begun_; }

  /// Whether the plan expects this operation now. Changes nothing.
  [[nodiscard]] bool expects(const Request<B>& request) const {
    const Program& program = plan_->program;
    const std::size_t event = next_event();
    if (program.events[event].what != Event::What::operation) return false;
    return is_operation(program, program.events[event].index, request,
                        [&](std::uint32_t role, const Rec& record, Access access) {
                          return fits(role, record, access == Access::write);
                        });
  }

  /// The expected operation comes: queues what the plan has before it.
  Grant<B> bring(const Request<B>& request) {
    const Program& program = plan_->program;
    if (!begun_) begin_cycle();
    cursor_ = next_event();
    const std::uint32_t operation = program.events[cursor_].index;
    const std::uint32_t first = program.first_access[operation];
    for (std::size_t i = 0; i < request.items.size(); ++i)
      bind(program.accesses[first + i].role, *request.items[i].record);
    run_steps(plan_->first_step[2 * std::size_t{operation} + 1]);
    Grant<B> grant;
    grant.needs = resolve(plan_->operations[operation].needs);
    for (const auto& item : request.items) {
      const Rec& record = *item.record;
      if (!is_brought(item)) throw fault_.emplace(not_brought(request));
      // A valid plan has seen to this; copies that the program asked for on the side are not in the plan.
      grant.needs.join(item.access == Access::read ? record.device.ready : record.device.busy);
    }
    if (const std::uint32_t scratch = program.scratch_roles[operation]; scratch != none) {
      grant.scratch = early_[scratch].address;
      grant.needs.join(early_[scratch].after);
    }
    return grant;
  }

  [[nodiscard]] bool current_is_recorded() const {
    return plan_->operations[plan_->program.events[cursor_].index].recorded;
  }
  /// The recorded point at or behind the end of the current operation.
  [[nodiscard]] Sequence current_point() const {
    const std::uint32_t operation = plan_->program.events[cursor_].index;
    return point(QueueKind::compute, 0, plan_->operations[operation].ordinal);
  }

  /// The operation was queued, and recorded if it is to be.
  void complete() {
    const std::uint32_t operation = plan_->program.events[cursor_].index;
    if (plan_->operations[operation].recorded) ++done_[index(QueueKind::compute)];
    ++cursor_;
    ++operation_;
    run_steps(plan_->first_step[2 * std::size_t{operation} + 2]);
  }

  /// True if the plan expects the host to give this tensor a value now.
  [[nodiscard]] bool upload(Rec& record) {
    const std::size_t event = next_event();
    const Event& expected = plan_->program.events[event];
    if (expected.what != Event::What::upload || !fits(expected.index, record, true)) return false;
    if (!begun_) begin_cycle();
    bind(expected.index, record);
    cursor_ = event + 1;
    return true;
  }

  /// The host reads: expected or not, the plan goes on.
  void download(const Rec& record) {
    const auto& events = plan_->program.events;
    for (std::size_t event = cursor_; events[event].what == Event::What::download; ++event) {
      if (bound_[events[event].index] != &record) continue;
      cursor_ = event + 1;
      return;
    }
  }

  /// A copy to the host was queued that the plan does not know.
  void side_copy(Sequence at) { side_[QueueKind::d2h] = at; }

  /// The iteration ends. False if the plan expects more of it.
  [[nodiscard]] bool end_iteration() {
    const std::size_t event = next_event();
    if (plan_->program.events[event].what != Event::What::end_of_iteration) return false;
    cursor_ = event + 1;
    iteration_start_ = cursor_;
    if (cursor_ == plan_->program.events.size()) rewind();
    return true;
  }

  /// Writes down what the current iteration has done so far, as if it had been observed.
  void write_log(IterationLog& log, std::uint64_t epoch) {
    const Program& program = plan_->program;
    const auto tensor_of = [&](std::uint32_t role) {
      if (program.roles[role].kind == Role::Kind::scratch) {
        log.tensors.push_back({.bytes = program.roles[role].bytes, .name = program.trace.tensors[role].name});
        return static_cast<std::uint32_t>(log.tensors.size() - 1);
      }
      Rec& record = *bound_[role];
      if (record.log_epoch != epoch) {
        record.log_epoch = epoch;
        record.log_index = static_cast<std::uint32_t>(log.tensors.size());
        const bool local = program.roles[role].kind == Role::Kind::local;
        log.tensors.push_back({record.serial, record.id, record.bytes, record.name, record.lifetime, local,
                               !record.alive, record.outlives});
      }
      return record.log_index;
    };
    for (std::size_t event = iteration_start_; event < cursor_; ++event) {
      const Event& passed = program.events[event];
      switch (passed.what) {
        case Event::What::operation: {
          const std::uint32_t first = program.first_access[passed.index];
          const std::uint32_t end = program.first_access[passed.index + 1];
          LogOperation operation;
          operation.name = program.trace.operations[passed.index].name;
          operation.duration = program.trace.operations[passed.index].duration;
          operation.first_access = static_cast<std::uint32_t>(log.accesses.size());
          operation.access_count = end - first;
          for (std::uint32_t i = first; i < end; ++i) {
            log.accesses.push_back({tensor_of(program.accesses[i].role), program.accesses[i].access});
          }
          log.operations.push_back(std::move(operation));
          log.events.push_back({LogEvent::What::operation, static_cast<std::uint32_t>(log.operations.size() - 1)});
          break;
        }
        case Event::What::upload: log.events.push_back({LogEvent::What::upload, tensor_of(passed.index)}); break;
        case Event::What::download: log.events.push_back({LogEvent::What::download, tensor_of(passed.index)}); break;
        case Event::What::end_of_iteration: break;
      }
    }
  }

 private:
  // The place of a role that no tensor is bound to yet, or ever will be.
  struct Place {
    bool resident = false;
    Bytes offset;
    const typename B::Address* address = nullptr;
    Clock after;
  };

  void rewind() {
    cursor_ = 0;
    step_ = 0;
    operation_ = 0;
    iteration_start_ = 0;
    begun_ = false;
  }

  // Expected downloads that the program leaves out are passed over.
  [[nodiscard]] std::size_t next_event() const {
    std::size_t event = cursor_;
    while (plan_->program.events[event].what == Event::What::download) ++event;
    return event;
  }

  [[nodiscard]] bool fits(std::uint32_t role, const Rec& record, bool new_value) const {
    // A local of the round before that still exists is not the new one that the plan expects.
    if (bound_[role] == &record) return bound_in_current_round(role);
    const Role& expected = plan_->program.roles[role];
    return expected.kind == Role::Kind::local && new_value && record.role == none &&
           can_be(expected, record, store_.iteration) && bound_in_[role] != round();
  }
  [[nodiscard]] std::uint64_t round() const {
    return static_cast<std::uint64_t>(followed_ + (begun_ ? 1 : 2));  // counted from 1
  }

  void bind(std::uint32_t role, Rec& record) {
    Rec* const before = bound_[role];
    if (before == &record) return;
    if (before != nullptr) {
      if (before->device.resident) {  // the plan keeps the place from one tensor to the next
        take_place(record, before->device.offset, before->device.address, before->device.busy);
        before->device.resident = false;
        before->device.valid = false;
        if (!before->host.valid) before->absence = Absence::dropped;
      }
      before->role = none;
      if (!before->alive) {
        if (record.host.block == nullptr) record.host.block = std::move(before->host.block);
        store_.free_host(*before);
        store_.records.remove(*before);
      }
    }
    if (early_[role].resident) {
      take_place(record, early_[role].offset, early_[role].address, early_[role].after);
      early_[role].resident = false;
    }
    bound_[role] = &record;
    bound_in_[role] = round();
    record.role = role;
    record.fresh = false;
  }

  static void take_place(Rec& record, Bytes offset, const typename B::Address* address, const Clock& after) {
    record.device.resident = true;
    record.device.valid = false;
    record.device.offset = offset;
    record.device.address = address;
    record.device.ready = after;
    record.device.busy = after;
  }

  // The sequence of the `ordinal`-th point of the round that many back. Points recorded on the side, between those
  // of the plan, only move it to a later one that was queued as well.
  [[nodiscard]] Sequence point(QueueKind queue, std::size_t back, std::uint32_t ordinal) const {
    const std::size_t q = index(queue);
    const Sequence end = back == 0 ? store_.timeline.issued(queue) : starts_[back - 1].at[q];
    return end - (back == 0 ? done_[q] : plan_->points[q]) + ordinal + 1;
  }

  [[nodiscard]] Clock resolve(const Needs& needs) const {
    // The first round comes after all that start() queued; what it refers to in the round before is part of that.
    Clock clock = followed_ == 0 ? start_ : Clock{};
    for (const QueueKind queue : all_queues) {
      const std::size_t q = index(queue);
      if (needs.back[q] < 0 || needs.back[q] > followed_) continue;
      clock.at[q] = std::max(clock.at[q], point(queue, static_cast<std::size_t>(needs.back[q]), needs.ordinal[q]));
    }
    // A round that the plan reaches back to but start() came after.
    for (const QueueKind queue : all_queues) {
      if (needs.back[index(queue)] > followed_) clock[queue] = std::max(clock[queue], start_[queue]);
    }
    return clock;
  }

  void run_steps(std::uint32_t end) {
    try {
      for (; step_ < end; ++step_) run(plan_->steps[step_], addresses_[step_]);
    } catch (const InternalError& error) {
      fault_ = error;
      throw;
    }
  }

  InternalError wrong(std::string_view what, const Step& step) const {
    const std::string& name = plan_->program.trace.tensors[step.role].name;
    Rec* const record = bound_[step.role];
    return wrong_step(what, record, record != nullptr ? name_of(*record) : TensorName{.name = name});
  }

  void run(const Step& step, const typename B::Address* address) {
    Rec* const record = bound_[step.role];
    const Bytes size = plan_->program.roles[step.role].bytes;
    Clock needs = resolve(step.needs);
    switch (step.kind) {
      case CommandKind::allocate:
        needs.join(side_);
        if (record != nullptr && !record->device.resident && bound_in_current_round(step.role)) {
          store_.settle(*record, step.offset, address, needs);
        } else {
          if (early_[step.role].resident) throw wrong("allocates twice", step);
          store_.book(size, needs);
          early_[step.role] = {true, step.offset, address, needs};
        }
        break;
      case CommandKind::swap_in:
        needs.join(side_);
        if (record == nullptr || !record->host.valid) {
          throw wrong("swaps in a value that is not on the host", step);
        }
        if (record->device.resident) throw wrong("swaps in what is on the device already", step);
        needs[QueueKind::d2h] = std::max(needs[QueueKind::d2h], record->host.block->written);
        store_.settle(*record, step.offset, address, needs);
        try {
          store_.swap_in(*record, needs);
        } catch (...) {
          store_.unsettle(*record);
          throw;
        }
        ++done_[index(QueueKind::h2d)];
        break;
      case CommandKind::swap_out:
        if (record == nullptr || !record->device.valid) {
          // The value is not on the device: nothing to save, but the point counts.
          store_.timeline.mark(QueueKind::d2h);
        } else {
          store_.ensure_block_for_swap_out(*record);
          needs.join(store_.before_swap_out(*record));
          store_.swap_out(*record, needs);
        }
        ++done_[index(QueueKind::d2h)];
        break;
      case CommandKind::release:
        if (record != nullptr && record->device.resident) {
          record->device.busy.join(needs);
          store_.unsettle(*record);
        } else if (early_[step.role].resident) {
          early_[step.role].resident = false;
          store_.unbook(size, needs);
        }
        break;
    }
  }

  // Handles are bound for good; a local may still be the tensor of the round before.
  [[nodiscard]] bool bound_in_current_round(std::uint32_t role) const {
    return plan_->program.roles[role].kind == Role::Kind::handle || bound_in_[role] == round();
  }

  // Moves what differs from the plan's start. Each move leaves a correct state on demand, should the next one fail.
  void arrange(const CompiledPlan& plan, const std::vector<Rec*>& bound, std::vector<Place>& early) {
    std::vector<Bytes> wanted(store_.records.size(), unwanted);
    for (const Resident& resident : plan.plan.initial) {
      if (const Rec* const record = bound[index(resident.tensor)]) wanted[record->id] = resident.offset;
    }
    std::vector<bool> in_plan(store_.records.size(), false);
    for (const Rec* const record : bound) {
      if (record != nullptr) in_plan[record->id] = true;
    }
    demand_.for_each_resident([&](Rec& record) {
      if (wanted[record.id] == record.device.offset && record.device.valid) return;
      if (in_plan[record.id] || record.device.offset < plan.footprint) demand_.evict(record);
    });
    for (const Resident& resident : plan.plan.initial) {
      const std::size_t role = index(resident.tensor);
      Rec* const record = bound[role];
      if (record == nullptr) {
        const Bytes size = plan.program.roles[role].bytes;
        const typename B::Address* const address = store_.addresses.at(resident.offset, size);
        const auto place = store_.places.take_at(resident.offset, size);
        if (!place) throw place_not_free({{}, plan.program.trace.tensors[role].name, size});
        store_.places.give_back(resident.offset, size, place->after);  // booked below, once nothing can fail
        early[role] = {true, resident.offset, address, place->after};
        continue;
      }
      if (!record->device.resident && !demand_.bring_to(*record, resident.offset, record->has_value())) {
        throw place_not_free(name_of(*record));
      }
      if (resident.host_valid && !record->host.valid && record->device.valid) {
        store_.ensure_block_for_swap_out(*record);
        store_.swap_out(*record, store_.before_swap_out(*record));
      }
    }
    for (std::size_t role = 0; role < early.size(); ++role) {
      if (early[role].resident) store_.book(plan.program.roles[role].bytes, early[role].after);
    }
  }
  static constexpr Bytes unwanted{~std::uint64_t{0}};

  Store<B>& store_;
  Demand<B>& demand_;
  std::size_t run_ahead_;

  FollowablePtr plan_;
  std::optional<InternalError> fault_;  // of plan_
  std::uint64_t times_started_ = 0;
  std::vector<Rec*> bound_;                            // per role
  std::vector<std::uint64_t> bound_in_;                // per role: round
  std::vector<Place> early_;                           // per role
  std::vector<const typename B::Address*> addresses_;  // per step

  std::size_t cursor_ = 0;  // next event
  std::uint32_t step_ = 0;  // next step
  std::uint32_t operation_ = 0;
  std::size_t iteration_start_ = 0;
  bool begun_ = false;

  std::int64_t followed_ = -1;                     // rounds begun since start(), less one
  Clock start_;                                    // everything queued before start()
  std::array<Clock, max_back + 1> starts_{};       // everything queued before this round, the one before, ...
  std::array<std::uint32_t, queue_count> done_{};  // points of the plan recorded in this round
  Clock side_;                                     // copies on the side that may still run
};

}  // namespace swapmm::runtime
