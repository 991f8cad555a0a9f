// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/shared_bound.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/same_program.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>

namespace swapmm::v2::planning {
namespace {

/// Nanoseconds for each byte on links that are slow enough: then a copy takes whole nanoseconds.
constexpr std::uint64_t slow_ns_per_byte = 1000;
constexpr std::uint64_t slow_rate = 1'000'000'000 / slow_ns_per_byte;
/// Sums above this are not used: what multiplies them would not be exact.
constexpr double most_bytes = 1e14;

/// A device, and what its engine runs.
struct Device {
  Trace part;
  swapmm::Machine alone;  ///< with all other memories as one host
  std::vector<LinkId> in;
  std::vector<LinkId> out;
  double compute = 0;  ///< nanoseconds
};

/// Bytes that a device must copy in an iteration.
struct LeastBytes {
  double in = 0;
  double out = 0;
  double both = 0;
};

std::vector<Device> devices_of(const Trace& trace, const Machine& machine) {
  const detail::Engines engines(trace, machine);
  std::vector<bool> runs(engine_count(machine), false);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) runs[index(engines.engine(id_at<OperationId>(i)))] = true;
  std::vector<std::size_t> engines_of(machine.memories.size(), 0);
  for (std::size_t e = 0; e < machine.engines.size(); ++e) {
    if (runs[e]) ++engines_of[index(*machine.engines[e].memory)];
  }
  std::vector<Device> devices;
  for (std::size_t e = 0; e < machine.engines.size(); ++e) {
    if (!runs[e]) continue;
    const MemoryId memory = *machine.engines[e].memory;
    // Two engines with one memory need not have all of it each.
    if (memory == machine.host || engines_of[index(memory)] != 1) continue;
    std::optional<swapmm::Machine> alone = merged_host(machine, memory);
    if (!alone) continue;
    alone->alignment = Bytes{1};
    Device device{part_on_engine(trace, machine, id_at<EngineId>(e)), *std::move(alone), {}, {}, 0};
    if (!check_trace(device.part) || !swapmm::check_machine(device.alone)) continue;
    CutLinks links = links_across(machine, {memory});
    device.in = std::move(links.in);
    device.out = std::move(links.out);
    for (const TraceOperation& operation : device.part.operations) {
      device.compute += static_cast<double>(operation.duration.count());
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

/// The bytes that the device must copy if this machine's links are so slow that nothing else counts. Any plan takes no
/// longer than its operations and copies one after another. Copies on the other, fast link take next to nothing.
Result<double> least_bytes(const Device& device, bool in, bool out, const BoundEffort& effort) {
  double fast_copies = 0;
  double accessed = 0;
  for (const TraceOperation& operation : device.part.operations) {
    for_each_access(operation, [&](TensorId tensor, Access) {
      const auto bytes = static_cast<double>(device.part.tensors[index(tensor)].bytes.value);
      accessed += bytes;
      fast_copies += 2 + bytes / 0x1p30;
    });
  }
  if (accessed > most_bytes) return 0.0;
  swapmm::Machine slow = device.alone;
  slow.h2d = {in ? slow_rate : limits::magnitude - 1, std::chrono::nanoseconds{0}};
  slow.d2h = {out ? slow_rate : limits::magnitude - 1, std::chrono::nanoseconds{0}};
  slow.duplex = in && out ? Duplex::half : Duplex::full;
  const Result<std::chrono::nanoseconds> bound = swapmm::lower_bound(device.part, slow, effort);
  if (!bound) return bound.problem();
  const double time = static_cast<double>(bound->count()) - device.compute - fast_copies;
  return std::max(time / static_cast<double>(slow_ns_per_byte), 0.0);
}

/// What the start of an operation says.
struct Phase {
  double earliest = 0;  ///< nanoseconds from the beginning of the iteration until it can start
  double latest = 0;    ///< nanoseconds that are needed from its start to the end of the iteration
  double in = 0;        ///< bytes that come after its start
  double out = 0;       ///< bytes that have left before
};

std::vector<Phase> phases_of(const Device& device) {
  const std::size_t n = device.part.operations.size();
  std::vector<double> needed(n + 1, 0);  // at the start of each operation: first as differences
  std::vector<double> made(n + 1, 0);    // the same, of what this iteration has made
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::size_t> last_use(device.part.tensors.size(), none);
  std::vector<std::size_t> last_write(device.part.tensors.size(), none);
  for (std::size_t i = 0; i < n; ++i) {
    for_each_access(device.part.operations[i], [&](TensorId tensor, Access access) {
      const std::size_t t = index(tensor);
      const TraceTensor& known = device.part.tensors[t];
      const auto bytes = static_cast<double>(known.bytes.value);
      // Values of inputs begin in the host, at a time that does not matter here.
      if (access != Access::write && known.kind != TensorKind::input) {
        const std::size_t first = last_use[t] == none ? 0 : last_use[t] + 1;
        needed[first] += bytes;
        needed[i + 1] -= bytes;
        if (last_write[t] != none) {
          made[first] += bytes;
          made[i + 1] -= bytes;
        }
      }
      last_use[t] = i;
      if (access != Access::read) last_write[t] = i;
    });
  }
  const auto budget = static_cast<double>(device.alone.device_budget.value);
  const auto time_on = [](const swapmm::Link& link, double bytes) {
    return bytes * 1e9 / static_cast<double>(link.bytes_per_second);
  };
  std::vector<Phase> phases;
  double needed_now = 0;
  double made_now = 0;
  double before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    needed_now += needed[i];
    made_now += made[i];
    // What the operation writes has its places then, and none of the values that are needed.
    double room = budget;
    for (const TensorId tensor : device.part.operations[i].writes) {
      room -= static_cast<double>(device.part.tensors[index(tensor)].bytes.value);
    }
    Phase phase;
    phase.in = std::max(needed_now - room, 0.0);
    phase.out = std::max(made_now - room, 0.0);
    phase.earliest = std::max(before, time_on(device.alone.d2h, phase.out));
    phase.latest = std::max(device.compute - before, time_on(device.alone.h2d, phase.in));
    phases.push_back(phase);
    before += static_cast<double>(device.part.operations[i].duration.count());
  }
  return phases;
}

/// One side of all phases: the time of its own that each needs, and the bytes that share the capacity.
using Side = std::vector<std::pair<double, double>>;  // time, bytes

/// The largest time t plus the bytes of all devices at phases with at least that time, over the capacity.
double best_cut(std::vector<Side> sides, double ns_per_byte) {
  std::vector<std::pair<double, std::pair<std::size_t, double>>> events;  // time, device, bytes
  for (std::size_t d = 0; d < sides.size(); ++d) {
    for (const auto& [time, bytes] : sides[d]) events.push_back({time, {d, bytes}});
  }
  std::ranges::sort(events, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<double> most(sides.size(), 0);
  double sum = 0;
  double best = 0;
  for (const auto& [time, of] : events) {
    const auto& [device, bytes] = of;
    if (bytes > most[device]) {
      sum += bytes - most[device];
      most[device] = bytes;
    }
    if (sum > 0) best = std::max(best, time + sum * ns_per_byte);
  }
  return best;
}

/// The least bytes hardly depend on how groups are divided.
BoundEffort little_of(BoundEffort effort) {
  effort.groups = std::min<std::size_t>(effort.groups, 16);
  effort.rounds = std::min<std::size_t>(effort.rounds, 2);
  return effort;
}

class SharedBound {
 public:
  SharedBound(const Trace& trace, const Machine& machine, const BoundEffort& effort, const std::function<bool()>& go_on)
      : machine_(machine),
        effort_(little_of(effort)),
        go_on_(go_on),
        devices_(devices_of(trace, machine)),
        bytes_(devices_.size()) {
    for (const Device& device : devices_) phases_.push_back(phases_of(device));
  }

  Result<std::chrono::nanoseconds> run() {
    double bound = 0;
    for (std::size_t c = 0; c < machine_.capacities.size(); ++c) {
      const Result<double> of_capacity = bound_of(id_at<CapacityId>(c));
      if (!of_capacity) return of_capacity.problem();
      bound = std::max(bound, *of_capacity);
    }
    constexpr double largest = 0x1p61;
    if (!(bound < largest)) return std::chrono::nanoseconds{0};
    // Sums of doubles: far more is taken off than they can be wrong.
    return std::chrono::nanoseconds{static_cast<std::int64_t>(bound * (1 - 1e-9))};
  }

 private:
  [[nodiscard]] bool uses(LinkId link, CapacityId capacity) const {
    return std::ranges::count(machine_.links[index(link)].capacities, capacity) != 0;
  }
  [[nodiscard]] bool all_use(const std::vector<LinkId>& links, CapacityId capacity) const {
    return !links.empty() && std::ranges::all_of(links, [&](LinkId link) { return uses(link, capacity); });
  }

  Result<double> bound_of(CapacityId capacity) {
    const auto rate = static_cast<double>(machine_.capacities[index(capacity)].bytes_per_second);
    double together = 0;
    for (std::size_t i = 0; i < machine_.links.size(); ++i) {
      if (uses(id_at<LinkId>(i), capacity)) together += static_cast<double>(machine_.links[i].bytes_per_second);
    }
    if (together <= rate) return 0.0;
    const double ns_per_byte = 1e9 / rate;
    double in = 0;
    double out = 0;
    double both = 0;
    std::vector<Side> after;
    std::vector<Side> before;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const bool all_in = all_use(devices_[d].in, capacity);
      const bool all_out = all_use(devices_[d].out, capacity);
      if (!all_in && !all_out) continue;
      const Result<LeastBytes> least = bytes_of(d);
      if (!least) return least.problem();
      in += all_in ? least->in : 0;
      out += all_out ? least->out : 0;
      both += all_in && all_out ? std::max(least->both, least->in + least->out) : all_in ? least->in : least->out;
      Side& ins = after.emplace_back();
      Side& outs = before.emplace_back();
      for (const Phase& phase : phases_[d]) {
        if (all_in) ins.emplace_back(phase.earliest, phase.in);
        if (all_out) outs.emplace_back(phase.latest, phase.out);
      }
    }
    // What goes from device to device is not counted twice.
    const bool between_devices = std::ranges::any_of(devices_, [&](const Device& device) {
      return std::ranges::any_of(device.in, [&](LinkId link) {
        return uses(link, capacity) && std::ranges::any_of(devices_, [&](const Device& other) {
                 return std::ranges::count(other.out, link) != 0;
               });
      });
    });
    const double bytes = between_devices ? std::max(in, out) : both;
    return std::max(
        {bytes * ns_per_byte, best_cut(std::move(after), ns_per_byte), best_cut(std::move(before), ns_per_byte)});
  }

  Result<LeastBytes> bytes_of(std::size_t d) {
    if (bytes_[d]) return *bytes_[d];
    for (std::size_t other = 0; other < d; ++other) {
      if (!bytes_[other] || devices_[other].alone.device_budget != devices_[d].alone.device_budget) continue;
      if (swapmm::detail::is_same_program(devices_[other].part, devices_[d].part)) return *(bytes_[d] = bytes_[other]);
    }
    // What is not known counts as nothing. The first ones are worth their time.
    const bool knows_any = std::ranges::any_of(bytes_, [](const auto& known) { return known.has_value(); });
    if (knows_any && !go_on_()) return LeastBytes{};
    LeastBytes least;
    for (const auto& [in, out, bytes] : {std::tuple(true, false, &least.in), std::tuple(false, true, &least.out),
                                         std::tuple(true, true, &least.both)}) {
      const Result<double> found = least_bytes(devices_[d], in, out, effort_);
      if (!found) return found.problem();
      *bytes = *found;
    }
    bytes_[d] = least;
    return least;
  }

  const Machine& machine_;
  const BoundEffort effort_;
  const std::function<bool()>& go_on_;
  const std::vector<Device> devices_;
  std::vector<std::optional<LeastBytes>> bytes_;
  std::vector<std::vector<Phase>> phases_;
};

}  // namespace

Result<std::chrono::nanoseconds> shared_bound(const Trace& trace, const Machine& machine, const BoundEffort& effort,
                                              const std::function<bool()>& go_on) {
  if (machine.capacities.empty()) return std::chrono::nanoseconds{0};
  return SharedBound(trace, machine, effort, go_on).run();
}

}  // namespace swapmm::v2::planning
