// SPDX-License-Identifier: Apache-2.0
#include "fit_many.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/answers/ways/ways.hpp>
#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/bundle.hpp>
#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/planners.hpp>

#include "many_memories.hpp"
#include "output.hpp"
#include "printable.hpp"
#include "quantities.hpp"

namespace swapmm::cli {
namespace {

/// Those that the planner uses for that machine.
Ways ways_of(const FitMany& asked, const v2::Machine& machine) {
  Ways ways = asked.ways;
  ways.pieces = ways.pieces && asked.planner == "best" && v2::to_version_1(machine);
  return ways;
}

/// A memory in which operations have their tensors.
struct Device {
  v2::MemoryId memory{};
  Bytes largest_bundle;  ///< of the operations that have their tensors there
};

/// Those of a trace: the one that budgets are for if there is only one.
std::vector<Device> devices_of(const FitMany& asked, const Trace& trace, const v2::Machine& machine) {
  const auto alignment = [&](v2::MemoryId memory) { return machine.memories[index(memory)].alignment; };
  if (v2::detail::missing_engine(trace, machine) != nullptr) {
    return {{*machine.engines[index(v2::default_engine(machine))].memory, {}}};
  }
  const v2::detail::Engines engines(trace, machine);
  std::vector<Device> devices;
  for (std::size_t m = 0; m < machine.memories.size(); ++m) {
    if (engines.computes(id_at<v2::MemoryId>(m))) devices.push_back({id_at<v2::MemoryId>(m), {}});
  }
  if (devices.size() == 1) {
    Device& device = devices.front();
    device.largest_bundle = largest_bundle(trace, ways_of(asked, machine), alignment(device.memory));
    return devices;
  }
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const v2::MemoryId memory = engines.memory(id_at<OperationId>(i));
    Bytes& largest = std::ranges::find(devices, memory, &Device::memory)->largest_bundle;
    largest = std::max(largest, detail::bundle_bytes(trace, trace.operations[i], alignment(memory)));
  }
  return devices;
}

bool is_device(const std::vector<Device>& devices, v2::MemoryId memory) {
  return std::ranges::find(devices, memory, &Device::memory) != devices.end();
}

/// The machine without what is stored in a memory: no link joins it.
v2::Machine without(v2::Machine machine, v2::MemoryId memory) {
  std::erase_if(machine.links, [&](const v2::Link& link) { return link.from == memory || link.to == memory; });
  return machine;
}

v2::Machine with_bytes(v2::Machine machine, const Device& device, Bytes bytes) {
  machine.memories[index(device.memory)].bytes = bytes;
  return machine;
}

/// A variant of the machine, and how it does.
struct Variant {
  std::string name;
  v2::Machine machine;
  Result<v2::Plan> plan;
};

Result<v2::Plan> plan_on(const FitMany& asked, const Trace& trace, const v2::Machine& machine, const std::string& name,
                         Progress& progress) {
  progress.begin("planning " + name + " with " + asked.planner);
  return plan_for_many(asked.planner, trace, machine, asked.limit, asked.ways, progress);
}

/// Less of a device: shares of what it has, and the least that its operations work with.
void add_smaller(const v2::Machine& machine, const Device& device,
                 std::vector<std::pair<std::string, v2::Machine>>& list) {
  const v2::Memory& memory = machine.memories[index(device.memory)];
  if (!memory.bytes || device.largest_bundle.value == 0) return;
  const Bytes least = round_up(device.largest_bundle, memory.alignment);
  std::vector<Bytes> sizes;
  for (const double share : {0.75, 0.5, 0.35, 0.25}) {
    sizes.emplace_back(static_cast<std::uint64_t>(static_cast<double>(memory.bytes->value) * share));
  }
  sizes.push_back(least);
  Bytes last = *memory.bytes;
  for (const Bytes size : sizes) {
    if (size >= last || size < least) continue;
    last = size;
    list.emplace_back(memory.name + " with " + decimal_size(size), with_bytes(machine, device, size));
  }
}

std::vector<Variant> variants_of(const FitMany& asked, const Trace& trace, const v2::Machine& machine,
                                 const std::vector<Device>& devices, Progress& progress) {
  std::vector<std::pair<std::string, v2::Machine>> list;
  for (std::size_t m = 0; m < machine.memories.size(); ++m) {
    const auto memory = id_at<v2::MemoryId>(m);
    if (is_device(devices, memory) || memory == machine.host) continue;
    list.emplace_back("without " + machine.memories[m].name, without(machine, memory));
  }
  for (const Device& device : devices) add_smaller(machine, device, list);
  std::vector<Variant> variants;
  for (auto& [name, variant] : list) {
    Result<v2::Plan> plan = plan_on(asked, trace, variant, name, progress);
    variants.push_back({name, std::move(variant), std::move(plan)});
  }
  return variants;
}

/// How many bytes of each memory a plan uses: the peak where there is a limit, otherwise all that it copies there.
std::vector<Bytes> used_bytes(const Trace& trace, const v2::Plan& plan) {
  const v2::Machine& machine = plan.machine;
  std::vector<Bytes> used(machine.memories.size());
  std::vector<std::vector<bool>> seen(machine.memories.size(), std::vector<bool>(trace.tensors.size(), false));
  const auto add = [&](v2::MemoryId memory, TensorId tensor) {
    if (seen[index(memory)][index(tensor)]) return;
    seen[index(memory)][index(tensor)] = true;
    used[index(memory)] += trace.tensors[index(tensor)].bytes;
  };
  for (const v2::Place& place : plan.initial) add(place.memory, place.tensor);
  for (const v2::Command& command : plan.commands) {
    if (command.kind != v2::CommandKind::copy) continue;
    add(machine.links[index(command.link)].from, command.tensor);
    add(machine.links[index(command.link)].to, command.tensor);
  }
  for (std::size_t m = 0; m < used.size(); ++m) {
    if (machine.memories[m].bytes) used[m] = plan.predicted.peaks[m];
  }
  return used;
}

/// "no", if a device has too little for one of its operations; otherwise that nobody has found a plan.
std::string misfit_in_words(const std::vector<Device>& devices, const v2::Machine& machine, const Problem& problem) {
  const bool fits_each = std::ranges::all_of(devices, [&](const Device& device) {
    const std::optional<Bytes>& bytes = machine.memories[index(device.memory)].bytes;
    return device.largest_bundle.value != 0 && (!bytes || device.largest_bundle <= *bytes);
  });
  return (fits_each ? "no plan was found: " : "no: ") + problem.message;
}

std::optional<double> slowdown(const v2::Plan& plan) { return ratio(plan.predicted.iteration, plan.predicted.compute); }

/// "fits with 20.00 GB of host and 12.00 GB of disk at 1.300 x the computation"
std::string in_words(const Trace& trace, const std::vector<Device>& devices, const v2::Plan& plan) {
  const std::vector<Bytes> used = used_bytes(trace, plan);
  std::string text;
  for (std::size_t m = 0; m < used.size(); ++m) {
    if (is_device(devices, id_at<v2::MemoryId>(m)) || used[m].value == 0) continue;
    text += (text.empty() ? "with " : " and ") + decimal_size(used[m]) + " of " + plan.machine.memories[m].name;
  }
  if (text.empty()) text = devices.size() == 1 ? "on the device alone" : "on the devices alone";
  return text + " at " + ratio_text(slowdown(plan)) + " x the computation";
}

json::object to_json(const Trace& trace, const Result<v2::Plan>& plan) {
  if (!plan) return {{"fits", false}, {"problem", json_name(plan.problem().message)}};
  const std::vector<Bytes> used = used_bytes(trace, *plan);
  json::array memories;
  for (std::size_t m = 0; m < used.size(); ++m) {
    memories.push_back({{"memory", plan->machine.memories[m].name}, {"used_bytes", used[m].value}});
  }
  return {{"fits", true},
          {"slowdown", json_number(slowdown(*plan))},
          {"predicted", cli::to_json(*plan)},
          {"ways", to_json(ways_used(trace, *plan))},
          {"memories", std::move(memories)}};
}

}  // namespace

ExitCode fit_many(const FitMany& asked, const Trace& trace, v2::Machine machine) {
  const std::vector<Device> devices = devices_of(asked, trace, machine);
  const Bytes peak = analyze_liveness(trace, machine.memories[index(devices.front().memory)].alignment).peak;
  for (const Device& device : devices) {
    if (asked.budget) machine = with_bytes(std::move(machine), device, asked.budget->of(peak));
  }
  Progress progress(asked.quiet);
  const Result<v2::Plan> plan = plan_on(asked, trace, machine, "all memories", progress);
  std::vector<Variant> variants;
  const bool has_engines = v2::detail::missing_engine(trace, machine) == nullptr;  // or nothing helps
  if (!asked.this_budget_only && has_engines) variants = variants_of(asked, trace, machine, devices, progress);
  progress.end();
  const ExitCode code = plan ? ExitCode::ok : ExitCode::no;
  if (asked.json) {
    Bytes largest;
    json::array of_devices;
    for (const Device& device : devices) {
      largest = std::max(largest, device.largest_bundle);
      of_devices.push_back({{"memory", machine.memories[index(device.memory)].name},
                            {"largest_bundle_bytes", device.largest_bundle.value}});
    }
    json::array list;
    for (const Variant& variant : variants) {
      json::object one = to_json(trace, variant.plan);
      one["variant"] = variant.name;
      list.push_back(std::move(one));
    }
    json::object answer = to_json(trace, plan);
    answer["trace"] = json_name(trace.name);
    answer["machine"] = json_name(machine.name);
    answer["planner"] = asked.planner;
    answer["peak_bytes"] = peak.value;
    answer["largest_bundle_bytes"] = largest.value;
    answer["devices"] = std::move(of_devices);
    answer["variants"] = std::move(list);
    print_json(answer);
    return code;
  }
  std::cout << printable(trace.name) << " on " << printable(machine.name) << "\n\n";
  print_line("fits", plan ? in_words(trace, devices, *plan) : misfit_in_words(devices, machine, plan.problem()));
  print_line("needs", decimal_size(peak) + " live at the peak");
  for (const Device& device : devices) {
    if (device.largest_bundle.value == 0) continue;
    const std::string& name = machine.memories[index(device.memory)].name;
    print_line("largest bundle", decimal_size(device.largest_bundle) +
                                     (devices.size() == 1 ? ": no device works" : ": " + name + " does not work") +
                                     " with less");
  }
  if (plan) {
    print_prediction(*plan);
    print_ways(trace, *plan);
  }
  if (variants.empty()) return code;
  std::cout << '\n';
  for (const Variant& variant : variants) {
    print_line(variant.name, variant.plan ? in_words(trace, devices, *variant.plan)
                                          : misfit_in_words(devices, variant.machine, variant.plan.problem()));
  }
  return code;
}

}  // namespace swapmm::cli
