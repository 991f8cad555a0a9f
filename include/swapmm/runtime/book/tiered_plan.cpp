// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/book/tiered_plan.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/explain.hpp>
#include <swapmm/plan/v2/planners.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>
#include <swapmm/plan/validate.hpp>
#include <swapmm/runtime/timing/link_estimate.hpp>

namespace swapmm::runtime {
namespace {

constexpr v2::MemoryId device{0};
constexpr v2::MemoryId host{1};
constexpr std::uint32_t unseen = std::numeric_limits<std::uint32_t>::max();

// A host without a limit has this one: version 2 writes no larger numbers, and with places in it the host is one memory
// as the others.
constexpr Bytes most_bytes{std::uint64_t{1} << 61U};

// The names of the other memories in tiered machines.
constexpr std::array<std::string_view, neighbour_path_count> neighbour_names{"neighbour", "neighbour-2", "neighbour-3"};
constexpr std::string_view file_name = "file";

/// What the runtime calls a memory of a tiered machine that is not the device's.
Home home_of(const v2::Machine& machine, v2::MemoryId memory) {
  const std::string& name = machine.memories[index(memory)].name;
  const auto found = std::ranges::find(neighbour_names, name);
  if (found != neighbour_names.end()) {
    return neighbour_home(static_cast<std::size_t>(found - neighbour_names.begin()));
  }
  return name == file_name ? Home::file : Home::host;
}

/// A tiered plan as the executor sees it: a plan of version 1, for which all memories behind the device are one, and
/// where its copies go.
struct DeviceView {
  Plan plan;
  std::vector<HomeCopy> copies;                // of each command
  std::vector<std::optional<Home>> begins_in;  // of each tensor
};

class DeviceViewer {
 public:
  DeviceViewer(const Program& program, const v2::Plan& plan)
      : program_(program), plan_(plan), n_(static_cast<std::int32_t>(program.trace.operations.size())) {}

  Result<DeviceView> view() {
    if (!plan_.forms.empty() || !plan_.pieces.empty()) return Problem{"it encodes or divides tensors"};
    number_commands();
    view_.plan.trace_digest = plan_.trace_digest;
    view_.plan.planner = plan_.planner;
    for (std::uint32_t c = 0; c < plan_.commands.size(); ++c) {
      if (std::optional<Problem> problem = view_command(c)) return *std::move(problem);
    }
    view_initial();
    return std::move(view_);
  }
  /// Of each command of the tiered plan: its number in the view, or `unseen`.
  [[nodiscard]] const std::vector<std::uint32_t>& numbers() const { return number_; }

 private:
  // Places in host and file are the executor's own.
  [[nodiscard]] bool is_seen(const v2::Command& command) const {
    return v2::has_engine(command.kind) || command.memory == device;
  }

  void number_commands() {
    number_.assign(plan_.commands.size(), unseen);
    std::uint32_t next = 0;
    for (std::size_t c = 0; c < plan_.commands.size(); ++c) {
      if (is_seen(plan_.commands[c])) number_[c] = next++;
    }
  }

  std::optional<Problem> view_command(std::uint32_t c) {
    const v2::Command& command = plan_.commands[c];
    if (number_[c] == unseen) {
      if (command.kind == v2::CommandKind::release) view_end_of_place(c);
      return std::nullopt;
    }
    const std::string name = "commands[" + std::to_string(c) + "]";
    Command seen;
    HomeCopy copy;
    seen.tensor = command.tensor;
    switch (command.kind) {
      case v2::CommandKind::allocate: seen.kind = CommandKind::allocate; break;
      case v2::CommandKind::release: seen.kind = CommandKind::release; break;
      case v2::CommandKind::copy: {
        const v2::Link& link = plan_.machine.links[index(command.link)];
        const bool in = link.to == device;
        if (!in && link.from != device) return Problem{name + " copies between two tiers"};
        if (in && !command.offset) return Problem{name + " fills a place that is there"};
        seen.kind = in ? CommandKind::swap_in : CommandKind::swap_out;
        copy.home = home_of(plan_.machine, in ? link.from : link.to);
        break;
      }
      default: return Problem{name + " is no copy"};
    }
    if (command.offset && seen.kind != CommandKind::swap_out) seen.offset = *command.offset;
    // Operations run in order, so that the first one that waits is enough.
    const auto first = std::ranges::min_element(command.before_operations);
    if (first != command.before_operations.end()) seen.before_operation = *first;
    add_waits(command.after, false, seen.after, 0);
    view_.plan.commands.push_back(std::move(seen));
    view_.copies.push_back(copy);
    return std::nullopt;
  }

  // A place in a tier that ends behind its last copy to the device: the copy is the end of what the tier has.
  void view_end_of_place(std::uint32_t c) {
    const v2::Command& release = plan_.commands[c];
    for (std::uint32_t before = c; before-- > 0;) {
      const v2::Command& command = plan_.commands[before];
      if (command.kind != v2::CommandKind::copy || command.tensor != release.tensor) continue;
      if (plan_.machine.links[index(command.link)].from == release.memory) view_.copies[number_[before]].ends = true;
      return;
    }
  }

  // A wait for a command that is not seen stands for what that one waits for. Waits that reach further back than one
  // iteration are for that one.
  void add_waits(const std::vector<Wait>& waits, bool previous, std::vector<Wait>& out, int depth) const {
    constexpr int most = 8;
    for (const Wait& wait : waits) {
      Wait seen = wait;
      if (wait.on == Wait::On::operation) {
        if (previous && seen.index >= 0) seen.index -= n_;
      } else {
        const bool back = previous || wait.previous;
        const std::uint32_t number = number_[static_cast<std::size_t>(wait.index)];
        if (number == unseen) {
          if (depth < most) add_waits(plan_.commands[static_cast<std::size_t>(wait.index)].after, back, out, depth + 1);
          continue;
        }
        seen.index = static_cast<std::int32_t>(number);
        seen.previous = back;
      }
      if (std::ranges::find(out, seen) == out.end()) out.push_back(seen);
    }
  }

  void view_initial() {
    view_.begins_in.assign(program_.roles.size(), std::nullopt);
    for (const v2::Place& place : plan_.initial) {
      if (place.memory != device && place.valid) {
        view_.begins_in[index(place.tensor)] = home_of(plan_.machine, place.memory);
      }
    }
    for (const v2::Place& place : plan_.initial) {
      if (place.memory != device) continue;
      view_.plan.initial.push_back({place.tensor, place.offset, view_.begins_in[index(place.tensor)].has_value()});
    }
  }

  const Program& program_;
  const v2::Plan& plan_;
  std::int32_t n_;
  std::vector<std::uint32_t> number_;  // in the view
  DeviceView view_;
};

/// The bytes of links go into the plan's own prediction.
Prediction predict(const Trace& trace, v2::Plan& plan) {
  const v2::Simulation simulation = v2::simulate(trace, plan);
  Prediction prediction;
  prediction.iteration = simulation.iteration;
  prediction.compute = simulation.compute;
  for (std::size_t link = 0; link < plan.machine.links.size(); ++link) {
    (plan.machine.links[link].to == device ? prediction.h2d : prediction.d2h) += simulation.links[link];
  }
  prediction.peak = simulation.peaks[index(device)];
  plan.predicted.links = simulation.links;
  prediction.lower_bound = std::min(plan.predicted.lower_bound, prediction.iteration);
  return prediction;
}

/// The stalls of operations, with the copies as the device's view numbers them.
std::vector<Stall> stalls_of(const Trace& trace, const v2::Plan& plan, const std::vector<std::uint32_t>& numbers) {
  std::vector<Stall> stalls;
  for (const v2::Stall& found : v2::explain(trace, plan).stalls) {
    if (found.step.is_command) continue;
    Stall stall{OperationId{found.step.index}, found.time, std::nullopt};
    if (found.cause && found.cause->is_command && numbers[found.cause->index] != unseen) {
      stall.copy = CommandId{numbers[found.cause->index]};
    }
    stalls.push_back(stall);
  }
  return stalls;
}

/// What all values of the program take in the host.
Bytes bytes_of(const Program& program, const Tiers& tiers) {
  Bytes all;
  for (const Role& role : program.roles) {
    if (role.kind != Role::Kind::scratch) all += round_up(role.bytes, tiers.host_alignment);
  }
  return all;
}

/// The capacities that the links of a memory share, by direction.
struct Shared {
  std::vector<v2::CapacityId> in;
  std::vector<v2::CapacityId> out;

  /// Adds what links carry together, as far as it is a limit.
  void add(v2::Machine& machine, const std::string& name, const SharedRates& rates) {
    if (rates.in != 0) in.push_back(add_capacity(machine, name + ".in", rates.in));
    if (rates.out != 0) out.push_back(add_capacity(machine, name + ".out", rates.out));
  }
  void join(const Shared& other) {
    in.insert(in.end(), other.in.begin(), other.in.end());
    out.insert(out.end(), other.out.begin(), other.out.end());
  }

 private:
  static v2::CapacityId add_capacity(v2::Machine& machine, std::string name, std::uint64_t rate) {
    machine.capacities.push_back({std::move(name), rate});
    return id_at<v2::CapacityId>(machine.capacities.size() - 1);
  }
};

/// Adds a memory behind the device, and its links.
void add_tier(v2::Machine& machine, std::string name, const AwayMemory& tier, Duplex duplex, const Shared& shared) {
  const auto memory = id_at<v2::MemoryId>(machine.memories.size());
  const auto engine = duplex == Duplex::half ? machine.links[0].engine : std::optional<v2::EngineId>{};
  const auto add_link = [&](std::string link, v2::MemoryId from, v2::MemoryId to, const Link& speed,
                            const std::vector<v2::CapacityId>& with) {
    machine.links.push_back({std::move(link), from, to, speed.bytes_per_second, speed.latency, engine, with});
  };
  add_link(name + ".in", memory, device, tier.in, shared.in);
  add_link(name + ".out", device, memory, tier.out, shared.out);
  machine.memories.push_back({std::move(name), tier.bytes, tier.alignment, std::nullopt});
}

/// Whether both have the same memories, in the same order, and so the same links.
bool has_same_memories(const v2::Machine& a, const v2::Machine& b) {
  return std::ranges::equal(a.memories, b.memories, {}, &v2::Memory::name, &v2::Memory::name) &&
         a.links.size() == b.links.size();
}

}  // namespace

v2::Machine tiered_machine(const KnownMachine& machine) {
  const Tiers& tiers = *machine.tiers;
  v2::Machine result = v2::from_version_1(machine);
  result.memories[index(host)].bytes = std::min(tiers.host, most_bytes);
  result.memories[index(host)].alignment = tiers.host_alignment;
  // The values of a file come to the device through the memory of the host, so the links share what the host's own can
  // carry. Neighbours have ways of their own, as far as no limit was measured.
  Shared of_host;
  of_host.add(result, "host", {machine.h2d.bytes_per_second, machine.d2h.bytes_per_second});
  Shared with_host;
  with_host.add(result, "all", tiers.with_host);
  of_host.join(with_host);
  Shared of_neighbours;
  of_neighbours.add(result, "neighbours", tiers.between_neighbours);
  of_neighbours.join(with_host);
  result.links[0].capacities = of_host.in;
  result.links[1].capacities = of_host.out;
  for (std::size_t path = 0; path < neighbour_path_count; ++path) {
    const std::optional<AwayMemory>& neighbour = tiers.neighbours[path];
    if (neighbour) add_tier(result, std::string(neighbour_names[path]), *neighbour, machine.duplex, of_neighbours);
  }
  if (tiers.file) add_tier(result, std::string(file_name), *tiers.file, machine.duplex, of_host);
  return result;
}

Machine as_one_memory(const Program& program, const KnownMachine& machine) {
  Machine one = machine.alone();
  if (!machine.tiers) return one;
  const Tiers& tiers = *machine.tiers;
  const double all = static_cast<double>(bytes_of(program, tiers).value);
  if (all <= 0) return one;
  double left = all;  // for the memories after this one
  const auto part = [&](Bytes bytes) {
    const double here = std::min(left, static_cast<double>(bytes.value));
    left -= here;
    return here;
  };
  std::array<double, neighbour_path_count> in_neighbours{};
  std::ranges::transform(tiers.neighbours, in_neighbours.begin(),
                         [&](const std::optional<AwayMemory>& tier) { return tier ? part(tier->bytes) : 0; });
  double before = part(tiers.host);  // in the memories that `one` stands for so far
  for (std::size_t path = 0; path < neighbour_path_count; ++path) {
    if (in_neighbours[path] <= 0) continue;
    before += in_neighbours[path];
    const double share = in_neighbours[path] / before;
    one.h2d = mixed(one.h2d, tiers.neighbours[path]->in, share);
    one.d2h = mixed(one.d2h, tiers.neighbours[path]->out, share);
  }
  if (tiers.file) {
    one.h2d = mixed(one.h2d, tiers.file->in, left / all);
    one.d2h = mixed(one.d2h, tiers.file->out, left / all);
  }
  return one;
}

bool needs_tiers(const Program& program, const KnownMachine& machine) {
  if (!machine.tiers || machine.tiers->host.value == 0) return false;
  const auto& neighbours = machine.tiers->neighbours;
  return std::ranges::any_of(neighbours, [](const auto& tier) { return tier.has_value(); }) ||
         bytes_of(program, *machine.tiers) > machine.tiers->host;
}

Result<CompiledPlan> make_tiered_plan(std::string_view planner, Program program, const KnownMachine& machine,
                                      const PlanningOptions& options) {
  Result<v2::Plan> made = v2::make_plan(planner, program.trace, tiered_machine(machine), options);
  if (!made.has_value()) return made.problem();
  return adopt_tiered_plan(std::move(program), *std::move(made), machine);
}

Result<CompiledPlan> adopt_tiered_plan(Program program, v2::Plan plan, const KnownMachine& machine) {
  v2::Machine now = tiered_machine(machine);
  if (!has_same_memories(plan.machine, now)) return Problem{"the plan is for other memories than there are"};
  plan.machine = std::move(now);
  if (const auto violations = v2::validate(program.trace, plan); !violations.empty()) {
    return Problem{"the plan is not valid: " + violations.front().message};
  }
  DeviceViewer viewer(program, plan);
  Result<DeviceView> seen = viewer.view();
  if (!seen.has_value()) return seen.problem();
  seen->plan.machine = machine.alone();
  if (const auto violations = validate(program.trace, seen->plan); !violations.empty()) {
    return Problem{"the executor cannot follow it: " + violations.front().message};
  }
  seen->plan.predicted = predict(program.trace, plan);
  std::vector<Stall> stalls = stalls_of(program.trace, plan, viewer.numbers());
  Result<CompiledPlan> compiled = compile(std::move(program), std::move(seen->plan), seen->copies);
  if (!compiled.has_value()) return compiled;
  compiled->stalls = std::move(stalls);
  compiled->begins_in = std::move(seen->begins_in);
  compiled->tiered = std::move(plan);
  return compiled;
}

bool knows(Home home, const v2::Plan& plan) {
  const auto memories = static_cast<std::uint32_t>(plan.machine.memories.size());
  for (std::uint32_t memory = index(host); memory < memories; ++memory) {
    if (home_of(plan.machine, v2::MemoryId{memory}) == home) return true;
  }
  return false;
}

std::pair<Bytes, Bytes> bytes_of(Home home, const v2::Plan& plan) {
  std::pair<Bytes, Bytes> bytes;
  for (std::size_t i = 0; i < plan.predicted.links.size(); ++i) {
    const v2::Link& link = plan.machine.links[i];
    if (link.to == device && home_of(plan.machine, link.from) == home) bytes.first += plan.predicted.links[i];
    if (link.from == device && home_of(plan.machine, link.to) == home) bytes.second += plan.predicted.links[i];
  }
  return bytes;
}

std::chrono::nanoseconds tiered_iteration(const Trace& trace, v2::Plan plan, const KnownMachine& machine) {
  if (machine.tiers) {
    v2::Machine now = tiered_machine(machine);
    // A neighbour's memory may be full of values that are not the program's.
    if (has_same_memories(plan.machine, now)) plan.machine = std::move(now);
  }
  return v2::simulate(trace, plan).iteration;
}

}  // namespace swapmm::runtime
