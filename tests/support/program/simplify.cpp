// SPDX-License-Identifier: Apache-2.0
#include "support/program/simplify.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace swapmm::test {
namespace {

class Simplifier {
 public:
  Simplifier(TestProgram& program, const std::function<bool(const TestProgram&)>& fails)
      : program_(program), fails_(fails) {}

  bool run() {
    set_scheduler();
    set_device();
    set_manager();
    set(program_.ends_plainly, true);
    set(program_.reads_all, false);
    set_equal_sizes();
    for (Action& action : program_.actions) set_action(action);
    lower_budget();
    return changed_;
  }

 private:
  /// One value: kept where the program still fails with it. `place` is in the program.
  template <class T>
  bool set(T& place, const T& value) {
    if (place == value) return false;
    T before = std::exchange(place, value);
    if (!fails_(program_)) {
      place = std::move(before);
      return false;
    }
    return changed_ = true;
  }

  void set_scheduler() {
    const SchedulerOptions usual;
    SchedulerOptions& scheduler = program_.scheduler;
    set(scheduler.observe, std::size_t{0});
    if (scheduler.observe != 0) set(scheduler.observe, usual.observe);
    if (scheduler.planner != usual.planner) set(scheduler.planner, PlannerChoice("on-demand"));
    set(scheduler.planner, usual.planner);
    set(scheduler.planning, usual.planning);
    set(scheduler.max_period, usual.max_period);
    set(scheduler.max_sequences, usual.max_sequences);
    set(scheduler.sample_every, usual.sample_every);
    set(scheduler.replan_above, usual.replan_above);
    set(scheduler.trial_iterations, usual.trial_iterations);
    set(scheduler.drops, usual.drops);
  }

  void set_device() {
    const simulated::Options usual;
    simulated::Options& device = program_.device;
    if (!set(device.order, simulated::Order::virtual_time) && device.order != simulated::Order::virtual_time) {
      set(device.order, simulated::Order::uniform);
    }
    set(device.max_allocation, usual.max_allocation);
    set(device.host_bytes, usual.host_bytes);
    set(device.pinned_bytes, usual.pinned_bytes);
    set(device.host_slab, usual.host_slab);
    set(device.half_duplex, usual.half_duplex);
    set(device.needs_flush, usual.needs_flush);
    set(device.steps_in_calls, usual.steps_in_calls);
    set(device.pieces, usual.pieces);
    set(device.seed, usual.seed);
    set(device.pct_depth, usual.pct_depth);
    set(device.starved_queue, usual.starved_queue);
    set(device.h2d.bytes_per_second, usual.h2d.bytes_per_second);
    set(device.d2h.bytes_per_second, usual.d2h.bytes_per_second);
    set(device.alignment, usual.alignment);
  }

  void set_manager() {
    const Options usual;
    Options& manager = program_.manager;
    set(manager.pinned_budget, usual.pinned_budget);
    set(manager.host_budget, usual.host_budget);
    set(manager.queue_depth, usual.queue_depth);
    set(manager.run_ahead, usual.run_ahead);
    set(manager.demand_mode, usual.demand_mode);
    set(manager.check_access, usual.check_access);
    set(program_.file, std::optional<FileSetup>());
    if (program_.neighbours.size() > 1) {
      set(program_.neighbours, std::vector<NeighbourSetup>{program_.neighbours.front()});
    }
    set(program_.neighbours, std::vector<NeighbourSetup>());
    set(program_.codec_staging, Bytes{});
  }

  /// Step by step, with a device that has just that much: what fills it need not be there either then.
  void lower_budget() {
    for (const std::uint64_t part : {2U, 4U, 8U, 16U}) {
      for (bool lower = true; lower;) {
        const Bytes now = program_.manager.device_budget;
        lower = now.value / part >= program_.device.alignment.value && set_budget(now - Bytes{now.value / part});
      }
    }
  }
  bool set_budget(Bytes budget) {
    const Bytes device = std::exchange(program_.device.device_bytes, round_up(budget, program_.device.alignment));
    if (set(program_.manager.device_budget, budget)) return true;
    program_.device.device_bytes = device;
    return false;
  }

  /// All tensors of one size, and room for as few of them as can be.
  void set_equal_sizes() {
    constexpr std::uint32_t unit = 64;
    if (sizes_are_within(unit)) return;
    for (std::uint64_t room = 1; room <= 8; ++room) {
      TestProgram before = program_;
      program_.device.device_bytes = program_.manager.device_budget = Bytes{unit * room};
      for (Action& action : program_.actions) {
        if (action.kind == ActionKind::make) {
          action.bytes = unit;
          action.slices = 1;
          action.uneven = false;
        }
        if (action.kind == ActionKind::operation && action.bytes != 0) action.bytes = unit;
      }
      if (fails_(program_)) {
        changed_ = true;
        return;
      }
      program_ = std::move(before);
    }
  }
  [[nodiscard]] bool sizes_are_within(std::uint32_t unit) const {
    for (const Action& action : program_.actions) {
      if (action.kind == ActionKind::make && (action.bytes > unit || action.slices != 1)) return false;
    }
    return true;
  }

  void set_all_slices(Action& action) {
    set(action.first, std::uint8_t{0});
    set(action.slices, std::uint8_t{most_slices});
  }

  void set_action(Action& action) {
    const LaunchForm plain{.by_bundle = false};
    switch (action.kind) {
      case ActionKind::make:
        set(action.slices, std::uint8_t{1});
        set(action.uneven, false);
        set(action.lifetime, Lifetime::observed);
        for (std::uint32_t half = action.bytes / 2; half >= 8 && set(action.bytes, half);) half = action.bytes / 2;
        return;
      case ActionKind::operation:
        set(action.bytes, std::uint32_t{0});
        set(action.form.by_bundle, plain.by_bundle);
        set(action.form.gives_event, plain.gives_event);
        set(action.form.two_launches, plain.two_launches);
        set(action.form.two_phases, plain.two_phases);
        set(action.form.replayable, plain.replayable);
        for (std::size_t i = 0; i < action.part_count; ++i) {
          set(action.parts[i].view, ViewForm::direct);
          set(action.parts[i].first, std::uint8_t{0});
          set(action.parts[i].count, std::uint8_t{most_slices});
        }
        return;
      case ActionKind::upload:
      case ActionKind::download:
      case ActionKind::promise:
        set(action.view, ViewForm::direct);
        set_all_slices(action);
        return;
      case ActionKind::open_view:
        set(action.view, ViewForm::direct);
        set(action.other, static_cast<std::uint8_t>(ViewMemory::own));
        set_all_slices(action);
        return;
      case ActionKind::look:
      case ActionKind::poke:
        set(action.other, static_cast<std::uint8_t>(ViewTouch::prepared));
        set_all_slices(action);
        return;
      default: return;
    }
  }

  TestProgram& program_;
  const std::function<bool(const TestProgram&)>& fails_;
  bool changed_ = false;
};

}  // namespace

bool simplify(TestProgram& program, const std::function<bool(const TestProgram&)>& fails) {
  return Simplifier(program, fails).run();
}

}  // namespace swapmm::test
