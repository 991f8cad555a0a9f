// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/spread.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/schedule/prediction.hpp>
#include <swapmm/plan/v2/schedule/waits.hpp>
#include <swapmm/plan/v2/spread/engine_part.hpp>
#include <swapmm/plan/v2/spread/serial_order.hpp>
#include <swapmm/plan/v2/spread/stores.hpp>
#include <swapmm/plan/v2/validate.hpp>

namespace swapmm::v2::planning {
namespace {

/// How many speeds of the merged host are tried, from what all links carry together down to what the slowest carries.
/// Fewer than all are right if devices share links, or if near memories are small.
constexpr int speeds = 4;
/// How often a planner that searches may ask whether to go on when a speed is tried. It asks every few milliseconds.
constexpr int short_search = 60;

/// A command of a device's plan in the serial plan of all.
struct PlacedCommand {
  std::uint32_t before = 0;  // the operation of the whole trace before which it runs
  std::size_t part = 0;
  std::uint32_t index = 0;  // in the device's plan
};

class Spreader {
 public:
  Spreader(const Trace& trace, const Machine& machine, const std::vector<EnginePart>& parts,
           const std::vector<std::vector<Store>>& stores, const std::vector<swapmm::Plan>& plans)
      : trace_(trace), machine_(machine), parts_(parts), stores_(stores), plans_(plans) {}

  Result<SerialPlan> run() {
    put_in_order();
    find_stored();
    Result<std::vector<StoredPlace>> places =
        assign_stores(machine_, stores_, stored_, static_cast<std::uint32_t>(order_.size()) + 1);
    if (!places) return places.problem();
    places_ = *std::move(places);
    write_initial();
    for (std::uint32_t step = 0; step < order_.size(); ++step) write(step);
    return std::move(result_);
  }

 private:
  [[nodiscard]] const swapmm::Command& command(const PlacedCommand& at) const {
    return plans_[at.part].commands[at.index];
  }
  [[nodiscard]] TensorId whole(std::size_t part, TensorId tensor) const { return parts_[part].tensors[index(tensor)]; }

  void put_in_order() {
    const auto n = static_cast<std::uint32_t>(trace_.operations.size());
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const SerialOrder order = serial_order(plans_[part], parts_[part].operations.size());
      for (std::size_t c = 0; c < order.commands.size(); ++c) {
        const std::uint32_t before = order.before[c];
        const bool behind = before == parts_[part].operations.size();
        const std::uint32_t at = behind ? n : static_cast<std::uint32_t>(parts_[part].operations[before]);
        order_.push_back({at, part, order.commands[c]});
      }
    }
    std::ranges::stable_sort(order_, {}, &PlacedCommand::before);
  }

  // Which tensors leave their device or come from the host, and when they take and give back their places there.
  void find_stored() {
    stored_of_.assign(trace_.tensors.size(), none);
    last_in_.assign(trace_.tensors.size(), none);
    std::vector<bool> first_is_out(trace_.tensors.size(), false);
    const auto steps = static_cast<std::uint32_t>(order_.size()) + 1;
    const auto stored = [&](std::size_t part, TensorId tensor, std::uint32_t step) -> StoredTensor& {
      std::size_t& known = stored_of_[index(tensor)];
      if (known == none) {
        known = stored_.size();
        stored_.push_back({part, tensor, trace_.tensors[index(tensor)].bytes, Bytes{0}, step, 1, false});
      }
      return stored_[known];
    };
    for (std::uint32_t step = 0; step < order_.size(); ++step) {
      const PlacedCommand& at = order_[step];
      const swapmm::Command& moved = command(at);
      const bool out = moved.kind == swapmm::CommandKind::swap_out;
      if (!out && moved.kind != swapmm::CommandKind::swap_in) continue;
      const TensorId tensor = whole(at.part, moved.tensor);
      if (stored_of_[index(tensor)] == none) first_is_out[index(tensor)] = out;
      StoredTensor& it = stored(at.part, tensor, step);
      it.traffic += it.bytes;
      it.length = step - it.start + 1;
      if (!out) last_in_[index(tensor)] = step;
    }
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      for (std::size_t t = 0; t < parts_[part].tensors.size(); ++t) {
        const TensorId tensor = parts_[part].tensors[t];
        if (trace_.tensors[index(tensor)].kind == TensorKind::input) stored(part, tensor, 0).in_host = true;
      }
      for (const HostRead& read : parts_[part].trace.host_reads)
        stored(part, whole(part, read.tensor), 0).in_host = true;
    }
    for (StoredTensor& it : stored_) {
      const std::size_t tensor = index(it.tensor);
      // A value that goes and comes back within the iteration has its place for that time only.
      const bool passing = trace_.tensors[tensor].kind == TensorKind::transient && !it.in_host &&
                           first_is_out[tensor] && last_in_[tensor] != none;
      if (passing) {
        it.length = static_cast<std::uint32_t>(last_in_[tensor]) - it.start + 1;
        continue;
      }
      it.start = 0;
      it.length = steps;
      last_in_[tensor] = none;  // it keeps its place
    }
  }

  void write_initial() {
    std::vector<bool> clean(trace_.tensors.size(), true);
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      for (const Resident& resident : plans_[part].initial) {
        const TensorId tensor = whole(part, resident.tensor);
        clean[index(tensor)] = resident.host_valid;
        result_.initial.push_back({tensor, std::nullopt, FormId::plain, parts_[part].memory, resident.offset, true});
      }
    }
    for (std::size_t s = 0; s < stored_.size(); ++s) {
      const TensorId tensor = stored_[s].tensor;
      if (last_in_[index(tensor)] != none) continue;
      const MemoryId memory = store(s).memory;
      const bool valid = clean[index(tensor)];
      const bool limited = machine_.memories[index(memory)].bytes.has_value();
      // Without limit, only what differs from the rule needs an entry.
      if (!limited && valid == (memory == machine_.host)) continue;
      result_.initial.push_back({tensor, std::nullopt, FormId::plain, memory, places_[s].offset, valid});
    }
  }

  [[nodiscard]] const Store& store(std::size_t stored) const {
    return stores_[stored_[stored].part][places_[stored].store];
  }

  void add(std::uint32_t before, Command command) {
    result_.commands.push_back(std::move(command));
    result_.before.push_back(before);
  }

  void write(std::uint32_t step) {
    const PlacedCommand& at = order_[step];
    const swapmm::Command& old = command(at);
    Command command;
    command.tensor = whole(at.part, old.tensor);
    const std::size_t tensor = index(command.tensor);
    const MemoryId device = parts_[at.part].memory;
    switch (old.kind) {
      case swapmm::CommandKind::allocate:
        command.kind = CommandKind::allocate;
        command.memory = device;
        command.offset = old.offset;
        break;
      case swapmm::CommandKind::release:
        command.kind = CommandKind::release;
        command.memory = device;
        break;
      case swapmm::CommandKind::swap_in:
        command.kind = CommandKind::copy;
        command.link = store(stored_of_[tensor]).in;
        command.offset = old.offset;
        break;
      case swapmm::CommandKind::swap_out: {
        const std::size_t stored = stored_of_[tensor];
        command.kind = CommandKind::copy;
        command.link = store(stored).out;
        const bool passing = last_in_[tensor] != none;
        const bool limited = machine_.memories[index(store(stored).memory)].bytes.has_value();
        if (passing && limited && stored_[stored].start == step) command.offset = places_[stored].offset;
        break;
      }
    }
    add(at.before, std::move(command));
    if (old.kind != swapmm::CommandKind::swap_in || last_in_[tensor] != step) return;
    const MemoryId memory = store(stored_of_[tensor]).memory;
    if (!machine_.memories[index(memory)].bytes) return;
    Command release;
    release.kind = CommandKind::release;
    release.tensor = id_at<TensorId>(tensor);
    release.memory = memory;
    add(at.before, std::move(release));
  }

  static constexpr std::size_t none = ~std::size_t{0};

  const Trace& trace_;
  const Machine& machine_;
  const std::vector<EnginePart>& parts_;
  const std::vector<std::vector<Store>>& stores_;
  const std::vector<swapmm::Plan>& plans_;  // of each part
  std::vector<PlacedCommand> order_;
  std::vector<StoredTensor> stored_;
  std::vector<std::size_t> stored_of_;  // of each tensor: its position in stored_
  std::vector<std::size_t>
      last_in_;  // of each tensor: the step that brings it back for the last time, if it then gives back its place
  std::vector<StoredPlace> places_;
  SerialPlan result_;
};

/// The slowest link to a store, as a part of all links to the stores of its device; the largest of all devices.
double slowest_part(const Machine& machine, const std::vector<std::vector<Store>>& stores) {
  double largest = 0;
  for (const std::vector<Store>& of_device : stores) {
    double all = 0;
    double slowest = 0;
    for (const Store& store : of_device) {
      const auto rate = static_cast<double>(machine.links[index(store.in)].bytes_per_second);
      all += rate;
      slowest = slowest == 0 ? rate : std::min(slowest, rate);
    }
    if (all > 0) largest = std::max(largest, slowest / all);
  }
  return largest;
}

PlanningOptions for_short_search(const PlanningOptions& options) {
  PlanningOptions shorter;
  shorter.go_on = [&options, asked = 0](const PlanningProgress& progress) mutable {
    return ++asked < short_search && (!options.go_on || options.go_on(progress));
  };
  return shorter;
}

/// The plans of all parts, if the merged host has a part of its speed.
Result<std::vector<swapmm::Plan>> plan_parts(std::string_view planner, const Machine& machine,
                                             const std::vector<EnginePart>& parts, double speed,
                                             const PlanningOptions& options) {
  std::vector<swapmm::Plan> plans;
  for (const EnginePart& part : parts) {
    std::optional<swapmm::Machine> merged = merged_host(machine, part.memory);
    if (!merged) return Problem{"memory " + machine.memories[index(part.memory)].name + " has no limit"};
    merged->max_allocation = machine.memories[index(part.memory)].max_allocation;
    for (swapmm::Link* link : {&merged->h2d, &merged->d2h}) {
      const double rate = static_cast<double>(link->bytes_per_second) * speed;
      link->bytes_per_second = std::max<std::uint64_t>(static_cast<std::uint64_t>(rate), 1);
    }
    Result<swapmm::Plan> plan = swapmm::make_plan(planner, part.trace, *merged, options);
    if (!plan) return plan.problem();
    plans.push_back(*std::move(plan));
  }
  return plans;
}

}  // namespace

Result<Plan> spread(std::string_view planner, const Trace& trace, const Machine& machine,
                    const PlanningOptions& options) {
  const Result<std::vector<EnginePart>> parts = engine_parts(trace, machine);
  if (!parts) return parts.problem();
  std::vector<MemoryId> devices;
  for (const EnginePart& part : *parts) devices.push_back(part.memory);
  const std::vector<std::vector<Store>> stores = find_stores(machine, devices);
  const auto plan_at = [&](double speed, const PlanningOptions& limits) -> Result<Plan> {
    const Result<std::vector<swapmm::Plan>> plans = plan_parts(planner, machine, *parts, speed, limits);
    if (!plans) return plans.problem();
    Result<SerialPlan> serial = Spreader(trace, machine, *parts, stores, *plans).run();
    if (!serial) return serial.problem();
    write_waits(trace, machine, *serial);
    Plan plan;
    plan.trace_digest = digest(trace);
    plan.machine = machine;
    plan.initial = std::move(serial->initial);
    plan.commands = std::move(serial->commands);
    if (const auto violations = validate(trace, plan); !violations.empty()) {
      return Problem{"the plan is not valid, which is a mistake of swapmm: " + violations.front().message};
    }
    predict(trace, plan);
    return plan;
  };

  std::optional<Plan> best;
  std::optional<Problem> problem;
  double best_speed = 1;
  const double slowest = slowest_part(machine, stores);
  for (int i = 0; i < speeds && (i == 0 || slowest < 1); ++i) {
    const double speed = i == 0 ? 1 : std::pow(slowest, static_cast<double>(i) / (speeds - 1));
    Result<Plan> plan = plan_at(speed, for_short_search(options));
    if (!plan) {
      problem = plan.problem();
    } else if (!best || plan->predicted.iteration < best->predicted.iteration) {
      best = *std::move(plan);
      best_speed = speed;
    }
  }
  if (!best) return *problem;
  Result<Plan> plan = plan_at(best_speed, options);
  if (plan && plan->predicted.iteration < best->predicted.iteration) best = *std::move(plan);
  return *std::move(best);
}

}  // namespace swapmm::v2::planning
