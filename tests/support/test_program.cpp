// SPDX-License-Identifier: Apache-2.0
#include "support/test_program.hpp"

#include <algorithm>
#include <limits>
#include <ostream>

namespace swapmm::test {
namespace {

constexpr std::array<std::string_view, 3> iteration_names{"train", "evaluate", "warm up"};

std::string_view text(Lifetime lifetime) {
  switch (lifetime) {
    case Lifetime::observed: return "observed";
    case Lifetime::transient: return "transient";
    case Lifetime::kept: return "kept";
  }
  return "unknown";
}

std::string_view text(Access access) {
  switch (access) {
    case Access::read: return "read";
    case Access::write: return "write";
    case Access::update: return "update";
  }
  return "unknown";
}

void print_slices(std::ostream& out, std::size_t first, std::size_t count, ViewForm view) {
  constexpr std::array<std::string_view, view_form_count> forms{"", " by two slices", " by rows", " as a matrix"};
  if (first != 0 || count < most_slices) out << "[" << first << ", " << first + count << ")";
  out << forms[static_cast<std::size_t>(view)];
}

std::ostream& print_host_view(std::ostream& out, const Action& action) {
  constexpr std::array<std::string_view, view_memory_count> memories{"", ", eager", ", in an array"};
  constexpr std::array<std::string_view, view_touch_count> touches{"", ", prepared"};
  switch (action.kind) {
    case ActionKind::open_view: out << "open a host view of"; break;
    case ActionKind::look: out << "look at the host view of"; break;
    default: out << "poke the host view of"; break;
  }
  out << " t" << int{action.slot};
  print_slices(out, action.first, action.slices, action.view);
  if (action.kind == ActionKind::open_view) return out << memories[action.other % view_memory_count];
  return out << touches[action.other % view_touch_count];
}

void print_device(std::ostream& out, const simulated::Options& device) {
  out << "device: " << device.device_bytes.value << " bytes, alignment " << device.alignment.value << ", "
      << to_string(device.order) << ", seed " << device.seed << ", pieces " << device.pieces;
  if (device.order == simulated::Order::pct) out << ", depth " << device.pct_depth;
  if (device.order == simulated::Order::starved) out << ", queue " << index(device.starved_queue);
  if (device.max_allocation) out << ", largest allocation " << device.max_allocation->value;
  if (device.host_bytes) out << ", host bytes " << device.host_bytes->value;
  if (device.pinned_bytes) out << ", pinned bytes " << device.pinned_bytes->value;
  if (device.host_slab.value != 0) out << ", host slabs up to " << device.host_slab.value;
  if (device.h2d.latency.count() != 0) out << ", slow to the device";
  if (device.d2h.latency.count() != 0) out << ", slow to the host";
  if (device.half_duplex) out << ", half duplex";
  if (device.needs_flush) out << ", needs flush";
  if (!device.steps_in_calls) out << ", no steps in calls";
  out << "\n";
}

void print_manager(std::ostream& out, const Options& manager) {
  constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
  out << "manager: budget " << manager.device_budget.value << ", queue depth " << manager.queue_depth << ", run ahead "
      << manager.run_ahead;
  if (manager.pinned_budget.value != no_limit) out << ", pinned budget " << manager.pinned_budget.value;
  if (manager.host_budget.value != no_limit) out << ", host budget " << manager.host_budget.value;
  if (manager.demand_mode == DemandMode::per_operation) out << ", per operation";
  if (manager.check_access) out << ", checks access";
  out << "\n";
}

void print_scheduler(std::ostream& out, const SchedulerOptions& scheduler) {
  out << "scheduler: " << scheduler.planner.name() << ", observe " << scheduler.observe << ", period "
      << scheduler.max_period << ", sequences " << scheduler.max_sequences;
  if (scheduler.planning == Planning::deferred) out << ", deferred";
  out << ", sample every " << scheduler.sample_every << ", replan above " << scheduler.replan_above << ", trial of "
      << scheduler.trial_iterations;
  out << "\n";
}

}  // namespace

std::string_view to_string(simulated::Order order) {
  switch (order) {
    case simulated::Order::virtual_time: return "virtual time";
    case simulated::Order::uniform: return "uniform";
    case simulated::Order::pct: return "pct";
    case simulated::Order::starved: return "starved";
    case simulated::Order::copies_first: return "copies first";
    case simulated::Order::copies_last: return "copies last";
    case simulated::Order::chosen: return "chosen";
  }
  return "unknown";
}

bool all_steady(const TestProgram& program) {
  return program.steady && std::all_of(program.beside.begin(), program.beside.end(), all_steady);
}

bool has_host_views(const TestProgram& program) {
  return std::any_of(program.actions.begin(), program.actions.end(),
                     [](const Action& action) { return action.kind == ActionKind::open_view; });
}

bool may_be_replayed(const TestProgram& program, std::size_t action) {
  const Action& operation = program.actions[action];
  for (std::size_t i = action + 1; i < program.actions.size(); ++i) {
    const Action& later = program.actions[i];
    if (later.kind == ActionKind::end_iteration) return true;
    if (later.kind != ActionKind::destroy && later.kind != ActionKind::make && later.kind != ActionKind::exchange)
      continue;
    for (std::size_t part = 0; part < operation.part_count; ++part) {
      const std::uint8_t slot = operation.parts[part].slot;
      if (slot == later.slot || (later.kind == ActionKind::exchange && slot == later.other)) return false;
    }
  }
  return false;  // the program ends first
}

std::string_view iteration_name(std::uint8_t number) { return iteration_names[number % iteration_names.size()]; }

std::string operation_name(std::uint8_t number) { return "op" + std::to_string(number); }

std::ostream& operator<<(std::ostream& out, const Action& action) {
  const int slot = action.slot;
  switch (action.kind) {
    case ActionKind::make:
      out << "make t" << slot << ": " << action.bytes << " bytes, " << text(action.lifetime);
      if (action.slices > 1) out << ", " << int{action.slices} << (action.uneven ? " uneven slices" : " slices");
      return out;
    case ActionKind::destroy: return out << "destroy t" << slot;
    case ActionKind::exchange: return out << "exchange t" << slot << " t" << int{action.other};
    case ActionKind::begin_iteration: return out << "begin " << iteration_name(action.name);
    case ActionKind::end_iteration: return out << "end";
    case ActionKind::operation: {
      out << "  " << operation_name(action.name) << ":";
      for (std::size_t i = 0; i < action.part_count; ++i) {
        const Part& part = action.parts[i];
        out << " " << text(part.access) << " t" << int{part.slot};
        print_slices(out, part.first, part.count, part.view);
      }
      if (action.bytes != 0) out << " scratch " << action.bytes;
      if (action.form.gives_event) out << ", gives an event";
      if (action.form.two_phases) out << ", two phases";
      if (action.form.two_launches) out << ", two launches";
      if (action.form.replayable) out << ", replayable";
      return out << (action.form.by_bundle ? "" : ", by accesses");
    }
    case ActionKind::upload:
    case ActionKind::download:
      out << (action.kind == ActionKind::upload ? "upload t" : "download t") << slot;
      print_slices(out, action.first, action.slices, action.view);
      return out;
    case ActionKind::promise:
      out << "promise " << int{action.other} << ": t" << slot;
      print_slices(out, action.first, action.slices, action.view);
      return out;
    case ActionKind::collect: return out << "collect " << int{action.other};
    case ActionKind::drop: return out << "drop " << int{action.other};
    case ActionKind::synchronize: return out << "synchronize";
    case ActionKind::plan: return out << "plan";
    case ActionKind::outlived: {
      constexpr std::array<std::string_view, outlived_use_count> uses{"upload to", "download", "promise", "operate on"};
      return out << uses[action.other % outlived_use_count] << " a view that outlived t" << slot;
    }
    case ActionKind::open_view:
    case ActionKind::look:
    case ActionKind::poke: return print_host_view(out, action);
    case ActionKind::close_view: return out << "close the host view of t" << slot;
    case ActionKind::write_back: return out << "write back the host view of t" << slot;
    case ActionKind::set_budget: return out << "set the budget to " << action.bytes;
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const TestProgram& program) {
  out << "seed " << program.seed << (program.steady ? ", steady" : "") << (program.reads_all ? ", reads all" : "")
      << (program.ends_plainly ? ", ends plainly\n" : "\n");
  print_device(out, program.device);
  print_manager(out, program.manager);
  if (program.file) {
    out << "file: capacity " << program.file->capacity.value << ", alignment " << program.file->alignment.value
        << ", staging " << program.manager.file_staging.value << "\n";
  }
  for (const NeighbourSetup& neighbour : program.neighbours) {
    out << "neighbour: capacity " << neighbour.capacity.value << ", alignment " << neighbour.alignment.value
        << ", largest allocation " << neighbour.largest_allocation.value << ", bytes per second in "
        << neighbour.in_per_second << ", out " << neighbour.out_per_second << "\n";
  }
  print_scheduler(out, program.scheduler);
  for (const Action& action : program.actions) out << action << "\n";
  if (program.beside.empty()) return out;
  const TestProgram::Sharing& sharing = program.sharing;
  out << "links: " << sharing.capacities.to_devices << " to devices, " << sharing.capacities.from_devices
      << " from devices, " << sharing.capacities.both_ways << " both ways (bytes per second)"
      << (sharing.one_clock ? ", one clock" : "") << (sharing.in_turn ? ", in turn" : "") << "\n";
  for (const TestProgram& other : program.beside) out << "beside it: " << other;
  return out;
}

}  // namespace swapmm::test
