// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/shared_links.hpp>
#include <swapmm/swapmm.hpp>

#include "device_instances.hpp"
#include "parts.hpp"

namespace swapmm::bench {
namespace {

using Sim = simulated::Backend;
using v2::planning::DeviceProgram;

/// Bytes of simulated tensors and links are this part of the program's, so that they fit in the memory of the host that
/// simulates them. Times stay what they are.
constexpr std::uint64_t scale = 1U << 16U;
Bytes scaled(Bytes bytes) { return Bytes{(bytes.value + scale - 1) / scale}; }

/// A manager that runs a program's operations, which take their time and compute nothing.
class Player {
 public:
  Player(const DeviceProgram& program, const std::shared_ptr<simulated::SharedClock>& clock,
         const std::shared_ptr<SharedLinks>& links, std::chrono::milliseconds planning)
      : program_(program),
        device(options_of(program, clock)),
        manager(device, manager_of(program, links), scheduler_of(planning)) {
    for (const TraceTensor& tensor : program.trace.tensors) {
      tensors_.push_back(
          manager.tensor<std::byte>({static_cast<std::size_t>(scaled(tensor.bytes).value)}, tensor.name));
      if (tensor.kind != TensorKind::transient) tensors_.back().upload(zeros(tensors_.back().size()));
    }
  }

  void iterate() {
    const auto iteration = manager.iteration("trace");
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const TraceTensor& tensor = program_.trace.tensors[t];
      if (tensor.kind == TensorKind::input && tensor.available_from == 0) tensors_[t].upload(zeros(tensors_[t].size()));
    }
    for (const TraceOperation& operation : program_.trace.operations) {
      bundle_.clear();
      for (const TensorId tensor : operation.reads) bundle_.reads(tensors_[index(tensor)]);
      for (const TensorId tensor : operation.writes) bundle_.writes(tensors_[index(tensor)]);
      for (const TensorId tensor : operation.updates) bundle_.updates(tensors_[index(tensor)]);
      manager.run(operation.name, bundle_,
                  [&](auto& op) { op.queue().launch("operation", operation.duration, {}, [] {}); });
    }
  }

 private:
  static std::vector<std::byte> zeros(std::size_t count) { return std::vector<std::byte>(count); }
  static simulated::Options options_of(const DeviceProgram& program,
                                       const std::shared_ptr<simulated::SharedClock>& clock) {
    simulated::Options options;
    options.clock = clock;
    options.check = false;
    options.alignment = Bytes{1};
    options.device_bytes = Bytes{2 * scaled(program.machine.device_budget).value};
    options.h2d.bytes_per_second = std::max<std::uint64_t>(program.machine.h2d.bytes_per_second / scale, 1);
    options.d2h.bytes_per_second = std::max<std::uint64_t>(program.machine.d2h.bytes_per_second / scale, 1);
    return options;
  }
  static Options manager_of(const DeviceProgram& program, const std::shared_ptr<SharedLinks>& links) {
    Options options;
    // Sizes are rounded up, each by less than a byte.
    options.device_budget = scaled(program.machine.device_budget) + Bytes{64};
    options.shared_links = links;
    return options;
  }
  static Scheduler scheduler_of(std::chrono::milliseconds planning) {
    SchedulerOptions options;
    options.planning_time = planning;
    return Scheduler(options);
  }

  const DeviceProgram& program_;
  Bundle<Sim> bundle_;

 public:
  Sim device;
  MemoryManager<Sim> manager;

 private:
  std::vector<Tensor<std::byte, Sim>> tensors_;
};

struct Run {
  double iteration = 0;  ///< nanoseconds, of all of them
  double predicted = 0;
  std::size_t devices = 1;
  std::uint64_t turns = 0;
};

Run play(const std::vector<DeviceProgram>& programs, const LinkCapacities& capacities, bool together, double limit) {
  const auto part = [](std::uint64_t rate) { return rate / scale; };
  const LinkCapacities scaled_down{part(capacities.to_devices), part(capacities.from_devices),
                                   part(capacities.both_ways)};
  const auto clock = std::make_shared<simulated::SharedClock>(scaled_down);
  const auto links = together ? std::make_shared<SharedLinks>(scaled_down) : nullptr;
  std::vector<std::unique_ptr<Player>> players;
  for (const DeviceProgram& program : programs) {
    players.push_back(
        std::make_unique<Player>(program, clock, links, std::chrono::milliseconds(std::llround(1000 * limit))));
  }
  const auto iterate = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (const auto& player : players) player->iterate();
    }
    for (const auto& player : players) player->device.finish();
  };
  iterate(24);  // observed, planned, tried
  constexpr int measured = 10;
  const auto begin = clock->now();
  iterate(measured);
  Run run;
  run.iteration = static_cast<double>((clock->now() - begin).count()) / measured;
  for (const auto& player : players) {
    const swapmm::Report report = player->manager.report();
    run.turns += report.turns_taken;
    if (report.plans.empty()) continue;
    run.predicted = static_cast<double>(report.plans.front().predicted.iteration.count());
    run.devices = std::max(run.devices, report.plans.front().devices);
  }
  return run;
}

}  // namespace

Report run_managers(const Settings& settings) {
  Report report;
  report.rows.title = "Managers on simulated devices behind one link: time / the largest sum of durations of a device";
  report.rows.columns = {"instance", "operations", "each alone", "together", "each alone / together", "kept", "turns"};
  const double limit = settings.limit_or(3);
  const std::vector<DeviceInstance> chosen = chosen_of(device_instances(), settings);
  Progress progress("managers", chosen.size(), settings.quiet);
  Ratios gain;
  for (const DeviceInstance& instance : chosen) {
    progress.step(name_of(instance));
    const std::vector<DeviceProgram> programs = programs_of(instance);
    std::size_t operations = 0;
    std::chrono::nanoseconds compute{0};
    for (const DeviceProgram& program : programs) {
      compute = std::max(compute, planning::compute_time(program.trace));
      operations += program.trace.operations.size();
    }
    const Run alone = play(programs, capacities_of(instance), false, limit);
    const Run together = play(programs, capacities_of(instance), true, limit);
    const auto least = static_cast<double>(compute.count());
    gain.add(alone.iteration / together.iteration);
    report.rows.rows.push_back({name_of(instance), std::to_string(operations), fixed(alone.iteration / least, 3),
                                fixed(together.iteration / least, 3), fixed(alone.iteration / together.iteration, 3),
                                together.devices > 1 ? "yes" : "no", std::to_string(together.turns)});
  }
  report.lines.push_back(summary_of("each alone / together", gain));
  return report;
}

}  // namespace swapmm::bench
