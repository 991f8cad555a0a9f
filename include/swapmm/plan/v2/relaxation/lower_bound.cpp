// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/ir/same_program.hpp>
#include <swapmm/plan/v2/bound.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/relaxation/lower_bound.hpp>
#include <swapmm/plan/v2/relaxation/merged_host.hpp>
#include <swapmm/plan/v2/relaxation/shared_bound.hpp>
#include <swapmm/plan/v2/relaxation/store_bound.hpp>
#include <swapmm/plan/ways/bound.hpp>
#include <swapmm/plan/ways/program/history.hpp>

namespace swapmm::v2 {
namespace {

/// For traces with operations on more engines, only durations count: each engine takes a pass over the trace.
constexpr std::size_t most_engines = 64;

/// Each copy on the merged link is rounded up to whole nanoseconds. Copies that run side by side on several links share
/// a nanosecond, so one for each copy that there may be is taken off then.
std::chrono::nanoseconds roundings(const planning::CutLinks& links, const Trace& part) {
  if (links.in.size() <= 1 && links.out.size() <= 1) return std::chrono::nanoseconds{0};
  std::size_t copies = 2 * part.tensors.size();
  for (const TraceOperation& operation : part.operations) {
    copies += 2 * (operation.reads.size() + operation.writes.size() + operation.updates.size());
  }
  return std::chrono::nanoseconds{static_cast<std::int64_t>(copies)};
}

/// Which memories with a limit can be reached from this one through links in either direction without passing one that
/// has none. To others, what is in a set of memories gets through a memory without limit only: adding them to the set
/// makes its bound no larger.
std::vector<bool> neighbours_of(const Machine& machine, MemoryId memory) {
  std::vector<bool> reached(machine.memories.size(), false);
  std::vector<MemoryId> next{memory};
  reached[index(memory)] = true;
  while (!next.empty()) {
    const MemoryId from = next.back();
    next.pop_back();
    for (const Link& link : machine.links) {
      if (link.to != from && link.from != from) continue;
      const MemoryId other = link.to == from ? link.from : link.to;
      if (reached[index(other)] || !machine.memories[index(other)].bytes) continue;
      reached[index(other)] = true;
      next.push_back(other);
    }
  }
  return reached;
}

/// The memory of an engine, and this memory with others that have a limit and are not behind one that has none, those
/// with the fastest links to it first: all of them, and at most two sets in between. What is in one of several memories
/// needs no copy from the others, so each set gives a bound.
///
/// What the host gives and reads counts less for them: see for_several().
std::vector<std::vector<MemoryId>> device_sets(const Machine& machine, MemoryId memory) {
  std::vector<std::uint64_t> rates(machine.memories.size(), 0);
  for (const Link& link : machine.links) {
    if (link.to != memory && link.from != memory) continue;
    std::uint64_t& rate = rates[index(link.to == memory ? link.from : link.to)];
    rate = std::max(rate, link.bytes_per_second);
  }
  const std::vector<bool> reached = neighbours_of(machine, memory);
  std::vector<MemoryId> others;
  for (std::size_t m = 0; m < machine.memories.size(); ++m) {
    const auto other = id_at<MemoryId>(m);
    if (other != memory && reached[m]) others.push_back(other);
  }
  std::ranges::stable_sort(others, [&](MemoryId a, MemoryId b) { return rates[index(a)] > rates[index(b)]; });
  std::vector<std::vector<MemoryId>> sets{{memory}};
  std::vector<MemoryId> set{memory};
  for (std::size_t i = 0; i < others.size(); ++i) {
    set.push_back(others[i]);
    if (set.size() == machine.memories.size()) break;  // nothing is left to copy to
    const bool is_last = i + 1 == others.size();
    const bool next_is_slower = !is_last && rates[index(others[i + 1])] < rates[index(others[i])];
    if (is_last || (next_is_slower && sets.size() < 3)) sets.push_back(set);
  }
  return sets;
}

/// The trace for a memory and others as one. What the host reads may wait in one of them for its copy, while the tensor
/// has its next value in another one; so such copies are left out. With the host among them, what it gives needs no
/// copy, and is left out, too.
Trace for_several(const Trace& trace, bool with_host) {
  std::vector<bool> kept(trace.tensors.size(), true);
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    kept[t] = !with_host || trace.tensors[t].kind != TensorKind::input;
  }
  const planning::KeptTensors tensors(trace, std::move(kept));
  Trace several;
  several.name = trace.name;
  several.tensors = tensors.tensors();
  for (const TraceOperation& operation : trace.operations) several.operations.push_back(tensors.of(operation));
  return several;
}

/// Where values can come back in other ways than by copies of their own size; 0 for machines of which it is not known.
/// All memories but the device count as one host.
Result<std::chrono::nanoseconds> bound_for_ways(const Trace& trace, const Machine& machine, const BoundEffort& effort) {
  constexpr std::chrono::nanoseconds unknown{0};
  const BoundOptions options{.usual = effort, .long_traces = effort};
  if (!trace.engines.empty()) return unknown;
  if (const Result<swapmm::Machine> old = to_version_1(machine)) {
    return swapmm::planning::ways_bound(trace, *old, options);
  }
  // A second engine could encode and decode beside the operations.
  if (std::ranges::count_if(machine.engines, [](const Engine& engine) { return engine.memory.has_value(); }) != 1) {
    return unknown;
  }
  const std::optional<MemoryId> device = planning::only_device(machine);
  const auto merged = device ? planning::merged_host(machine, *device) : std::nullopt;
  if (!merged || !swapmm::check_machine(*merged)) return unknown;
  const Result<std::chrono::nanoseconds> bound = swapmm::planning::ways_bound(trace, *merged, options);
  if (!bound) return bound;
  return std::max(unknown, *bound - roundings(planning::links_across(machine, {*device}), trace));
}

/// The bound that knows how much each memory holds; 0 if it does not hold for the machine.
std::chrono::nanoseconds bound_for_stores(const Trace& part, const Machine& machine, MemoryId memory,
                                          const swapmm::Machine& merged, const std::function<bool()>& go_on) {
  // One store without limit is what the merged host is.
  if (to_version_1(machine) || !planning::has_only_stores(machine, memory)) return std::chrono::nanoseconds{0};
  const auto problem = swapmm::planning::make_planning_case(part, merged);
  if (!problem) return std::chrono::nanoseconds{0};
  const swapmm::planning::OverlapLedger ledger(*problem);
  const planning::StoreModel model = planning::make_store_model(machine, memory, *problem, ledger);
  if (!swapmm::planning::relaxation::needs_copies(model.swaps)) return std::chrono::nanoseconds{0};
  const double bound = planning::relax_stores(model, ledger, {}, go_on).lower_bound;
  constexpr double largest = 0x1p61;
  if (!(bound > 0 && bound < largest)) return std::chrono::nanoseconds{0};
  return std::chrono::nanoseconds{static_cast<std::int64_t>(bound)};
}

/// Bounds for devices alone. Of those that run the same program in the same memory, one is computed.
class DeviceBounds {
 public:
  explicit DeviceBounds(const BoundEffort& effort) : effort_(effort) {}

  /// Nothing if it is not known, and `go_on` returns false; the first one is always computed.
  std::optional<Result<std::chrono::nanoseconds>> of(const Trace& trace, const swapmm::Machine& machine,
                                                     const std::function<bool()>& go_on) {
    for (const Known& known : known_) {
      if (known.machine == machine && swapmm::detail::is_same_program(known.trace, trace)) return known.bound;
    }
    if (!known_.empty() && !go_on()) return std::nullopt;
    Result<std::chrono::nanoseconds> bound = swapmm::lower_bound(trace, machine, effort_);
    known_.push_back({trace, machine, bound});
    return bound;
  }

 private:
  struct Known {
    Trace trace;
    swapmm::Machine machine;
    Result<std::chrono::nanoseconds> bound;
  };
  const BoundEffort effort_;
  std::vector<Known> known_;
};

}  // namespace

Result<std::chrono::nanoseconds> lower_bound(const Trace& trace, const Machine& machine, const BoundEffort& effort) {
  return planning::lower_bound_while(trace, machine, effort, [] { return true; });
}

Result<std::chrono::nanoseconds> planning::lower_bound_while(const Trace& trace, const Machine& machine,
                                                             const BoundEffort& effort,
                                                             const std::function<bool()>& go_on) {
  if (const std::string* name = detail::missing_engine(trace, machine)) {
    return Problem{"the machine has no engine " + *name + " with a memory, which operations name"};
  }
  const detail::Engines engines(trace, machine);
  std::map<EngineId, std::chrono::nanoseconds> compute;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    compute[engines.engine(id_at<OperationId>(i))] += trace.operations[i].duration;
  }
  std::chrono::nanoseconds bound{0};
  for (const auto& [engine, time] : compute) bound = std::max(bound, time);
  if (swapmm::planning::has_ways(trace)) {
    Result<std::chrono::nanoseconds> with_ways = bound_for_ways(trace, machine, effort);
    if (!with_ways) return with_ways;
    return std::max(bound, *with_ways);
  }
  if (compute.size() > most_engines) return bound;
  DeviceBounds alone_bounds(effort);
  for (const auto& [engine, time] : compute) {
    // What the host gives to an engine in its own memory needs no copy.
    const MemoryId memory = *machine.engines[index(engine)].memory;
    if (memory == machine.host) continue;
    const Trace part = planning::part_on_engine(trace, machine, engine);
    if (!check_trace(part)) continue;
    std::optional<swapmm::Machine> alone;
    for (const std::vector<MemoryId>& device : device_sets(machine, memory)) {
      auto merged = planning::merged_host(machine, device);
      if (!merged) continue;
      // Pieces may leave less than a multiple of the alignment unused.
      merged->alignment = Bytes{1};
      if (!swapmm::check_machine(*merged)) continue;
      const bool has_host = std::ranges::find(device, machine.host) != device.end();
      const Trace several = device.size() == 1 ? Trace{} : for_several(part, has_host);
      const Trace& problem = device.size() == 1 ? part : several;
      if (!check_trace(problem)) continue;
      const std::optional<Result<std::chrono::nanoseconds>> copies = alone_bounds.of(problem, *merged, go_on);
      if (!copies) break;
      if (!*copies) return copies->problem();
      bound = std::max(bound, **copies - roundings(planning::links_across(machine, device), part));
      if (device.size() == 1) alone = merged;
    }
    if (alone && compute.size() == 1) {
      bound = std::max(bound, bound_for_stores(part, machine, memory, *alone, go_on));
    }
  }
  if (compute.size() == 1 && !go_on()) return bound;
  const Result<std::chrono::nanoseconds> shared = planning::shared_bound(trace, machine, effort, go_on);
  if (!shared) return shared.problem();
  return std::max(bound, *shared);
}

}  // namespace swapmm::v2
