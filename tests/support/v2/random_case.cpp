// SPDX-License-Identifier: Apache-2.0
#include "support/v2/random_case.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/planners.hpp>

#include "support/random_trace.hpp"

namespace swapmm::test::general {
namespace {

using swapmm::v2::CapacityId;
using swapmm::v2::Command;
using swapmm::v2::CommandKind;
using swapmm::v2::Division;
using swapmm::v2::Engine;
using swapmm::v2::EngineId;
using swapmm::v2::FormId;
using swapmm::v2::has_engine;
using swapmm::v2::Link;
using swapmm::v2::LinkId;
using swapmm::v2::Machine;
using swapmm::v2::make_plan;
using swapmm::v2::Memory;
using swapmm::v2::MemoryId;
using swapmm::v2::Place;
using swapmm::v2::Plan;

MemoryId add_memory(std::mt19937_64& random, Machine& machine, std::string name, std::optional<Bytes> bytes) {
  Memory memory;
  memory.name = std::move(name);
  if (bytes) {
    memory.alignment = Bytes{std::uint64_t{1} << one_of(random, 4)};
    memory.bytes = round_up(*bytes, memory.alignment) + Bytes{below_or_equal(random, 40)};
    if (chance(random, 0.15)) memory.max_allocation = round_up(*bytes + Bytes{16}, memory.alignment);
  }
  machine.memories.push_back(std::move(memory));
  return id_at<MemoryId>(machine.memories.size() - 1);
}

void add_link(std::mt19937_64& random, Machine& machine, MemoryId from, MemoryId to, std::uint64_t rate) {
  Link link;
  link.name = machine.memories[index(from)].name + "-" + machine.memories[index(to)].name;
  link.from = from;
  link.to = to;
  link.bytes_per_second = rate + below_or_equal(random, rate / 4);
  if (chance(random, 0.3)) link.latency = std::chrono::nanoseconds{one_of(random, 20)};
  if (chance(random, 0.3)) link.engine = id_at<EngineId>(one_of(random, machine.engines.size()));
  for (std::size_t c = 0; c < machine.capacities.size(); ++c) {
    if (chance(random, 0.4)) link.capacities.push_back(id_at<CapacityId>(c));
  }
  machine.links.push_back(std::move(link));
}

constexpr std::uint64_t one_byte_per_ns = 1'000'000'000;

/// A part of the tensor; empty if the whole is accessed.
std::optional<AccessRange> random_range(std::mt19937_64& random, const Trace& trace, std::size_t operation,
                                        TensorId tensor) {
  const std::uint64_t size = trace.tensors[index(tensor)].bytes.value;
  if (size < 2 || !chance(random, 0.1)) return std::nullopt;
  const std::uint64_t first = below_or_equal(random, size - 1);
  const std::uint64_t bytes = 1 + below_or_equal(random, size - first - 1);
  return AccessRange{id_at<OperationId>(operation), tensor, Bytes{first}, Bytes{bytes}};
}

}  // namespace

Machine random_machine(std::mt19937_64& random, Bytes least) {
  Machine machine;
  machine.name = "random";
  const std::size_t devices = 1 + one_of(random, 3);
  std::vector<MemoryId> near;
  for (std::size_t d = 0; d < devices; ++d) {
    const std::string name = "gpu" + std::to_string(d);
    near.push_back(add_memory(random, machine, name, least));
    machine.engines.push_back({name, near.back()});
    if (chance(random, 0.2)) machine.engines.push_back({name + ".second", near.back()});
  }
  const std::optional<Bytes> host_bytes =
      chance(random, 0.5) ? std::optional{Bytes{least.value * 4 + 400}} : std::nullopt;
  machine.host = add_memory(random, machine, "host", host_bytes);
  if (chance(random, 0.2)) machine.engines.push_back({"cpu", machine.host});
  const std::size_t copying = one_of(random, 3);
  for (std::size_t e = 0; e < copying; ++e) machine.engines.push_back({"copies" + std::to_string(e), std::nullopt});
  const std::size_t capacities = one_of(random, 3);
  for (std::size_t c = 0; c < capacities; ++c) {
    machine.capacities.push_back(
        {"root" + std::to_string(c), one_byte_per_ns / 2 + below_or_equal(random, one_byte_per_ns)});
  }
  for (const MemoryId device : near) {
    add_link(random, machine, machine.host, device, one_byte_per_ns);
    add_link(random, machine, device, machine.host, one_byte_per_ns);
  }
  if (chance(random, 0.4)) {
    const MemoryId spare = add_memory(random, machine, "spare", Bytes{20 + below_or_equal(random, 200)});
    add_link(random, machine, near.front(), spare, 4 * one_byte_per_ns);
    add_link(random, machine, spare, near.front(), 4 * one_byte_per_ns);
    if (chance(random, 0.5)) add_link(random, machine, spare, machine.host, one_byte_per_ns);
  }
  if (chance(random, 0.4)) {
    const MemoryId disk =
        add_memory(random, machine, "disk", chance(random, 0.5) ? std::optional{Bytes{4000}} : std::nullopt);
    add_link(random, machine, machine.host, disk, one_byte_per_ns / 4);
    add_link(random, machine, disk, machine.host, one_byte_per_ns / 4);
  }
  return machine;
}

void enrich(std::mt19937_64& random, const Machine& machine, Trace& trace) {
  std::vector<std::string> names;
  for (const Engine& engine : machine.engines) {
    if (engine.memory) names.push_back(engine.name);
  }
  const bool many = chance(random, 0.6);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    TraceOperation& operation = trace.operations[i];
    operation.replayable = chance(random, 0.4);
    operation.in_pieces = chance(random, 0.3);
    if (many && chance(random, 0.7)) {
      const std::string& name = names[one_of(random, names.size())];
      const auto known = std::ranges::find(trace.engines, name);
      operation.engine = static_cast<std::uint32_t>(known - trace.engines.begin());
      if (known == trace.engines.end()) trace.engines.push_back(name);
    }
    std::vector<TensorId> bundle;
    for_each_access(operation, [&](TensorId tensor, Access) { bundle.push_back(tensor); });
    std::ranges::sort(bundle);
    for (const TensorId tensor : bundle) {
      if (const auto range = random_range(random, trace, i, tensor)) trace.ranges.push_back(*range);
    }
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (!chance(random, 0.3)) continue;
    const Bytes most{trace.tensors[t].bytes.value + below_or_equal(random, 8)};
    trace.forms.push_back({id_at<TensorId>(t), "zeros", most, Bytes{below_or_equal(random, most.value)},
                           std::chrono::nanoseconds{one_of(random, 10)}, std::chrono::nanoseconds{one_of(random, 10)}});
  }
}

Case random_case(std::mt19937_64& random) {
  for (;;) {
    RandomTraceOptions options;
    options.operations = 1 + one_of(random, 8);
    options.tensors = 1 + one_of(random, 6);
    options.host_reads = chance(random, 0.5) ? 0.2 : 0.0;
    Case one;
    one.trace = random_trace(random, options);
    Bytes bundle = analyze_liveness(one.trace, Bytes{8}).largest_bundle;
    if (chance(random, 0.3)) bundle += Bytes{100};
    const Machine machine = random_machine(random, bundle);
    if (chance(random, 0.8)) enrich(random, machine, one.trace);
    Result<Plan> plan = make_plan(chance(random, 0.5) ? "belady" : "on-demand", one.trace, machine);
    if (!plan) continue;
    one.plan = *std::move(plan);
    return one;
  }
}

void divide(std::mt19937_64& random, Case& one) {
  const auto tensor = id_at<TensorId>(one_of(random, one.trace.tensors.size()));
  const std::uint64_t size = one.trace.tensors[index(tensor)].bytes.value;
  Plan& plan = one.plan;
  const bool known = std::ranges::count(plan.pieces, tensor, &Division::tensor) != 0;
  const auto encoded = [&](const auto& of) { return of.tensor == tensor && of.form != FormId::plain; };
  if (known || size < 16 || std::ranges::any_of(plan.commands, encoded) || std::ranges::any_of(plan.initial, encoded))
    return;
  // Offsets of pieces must be aligned in every memory, and no alignment is above 8.
  const std::uint64_t cut = 8 * (1 + one_of(random, static_cast<std::size_t>((size - 1) / 8)));
  plan.pieces.push_back({tensor, {Bytes{cut}}});
  const auto second = [&](auto& of) {
    of.piece = 0;
    auto other = of;
    other.piece = 1;
    return other;
  };
  std::vector<Place> places;
  for (Place& place : plan.initial) {
    if (place.tensor != tensor) {
      places.push_back(place);
      continue;
    }
    Place other = second(place);
    if (plan.machine.memories[index(place.memory)].bytes) other.offset += Bytes{cut};
    places.push_back(place);
    places.push_back(other);
  }
  plan.initial = std::move(places);
  const std::size_t before = plan.commands.size();
  std::vector<std::int32_t> first(before);  // the new positions
  std::vector<Command> commands;
  for (std::size_t j = 0; j < before; ++j) {
    first[j] = static_cast<std::int32_t>(commands.size());
    Command& command = plan.commands[j];
    if (command.kind == CommandKind::run || command.tensor != tensor) {
      commands.push_back(command);
      continue;
    }
    Command other = second(command);
    if (other.offset) *other.offset += Bytes{cut};
    commands.push_back(command);
    commands.push_back(std::move(other));
  }
  for (Command& command : commands) {
    std::vector<Wait> after;
    for (Wait wait : command.after) {
      if (wait.on == Wait::On::command) {
        const auto old = static_cast<std::size_t>(wait.index);
        wait.index = first[old];
        const std::size_t next = old + 1 < before ? static_cast<std::size_t>(first[old + 1]) : commands.size();
        if (next - static_cast<std::size_t>(first[old]) == 2) after.push_back({wait.on, wait.previous, wait.index + 1});
      }
      after.push_back(wait);
    }
    command.after = std::move(after);
  }
  plan.commands = std::move(commands);
}

namespace {

/// A wait for anything, in this iteration or the one before.
Wait random_wait(std::mt19937_64& random, const Case& one) {
  const std::size_t n = one.trace.operations.size();
  if (one.plan.commands.empty() || chance(random, 0.5)) {
    return {Wait::On::operation, false,
            static_cast<std::int32_t>(one_of(random, 2 * n)) - static_cast<std::int32_t>(n)};
  }
  return {Wait::On::command, chance(random, 0.5), static_cast<std::int32_t>(one_of(random, one.plan.commands.size()))};
}

std::string_view add_run(std::mt19937_64& random, Case& one) {
  const std::size_t n = one.trace.operations.size();
  const auto operation = one_of(random, n);
  Command command;
  command.kind = CommandKind::run;
  command.operation = id_at<OperationId>(operation);
  const std::size_t position = chance(random, 0.7) ? operation + 1 : one_of(random, n + 1);
  if (position < n || chance(random, 0.5)) command.position = static_cast<std::uint32_t>(position);
  command.after.push_back(after_operation(id_at<OperationId>(operation)));
  // Everything that comes after the operation waits for this one, too.
  const auto at = static_cast<std::int32_t>(one.plan.commands.size());
  if (chance(random, 0.8)) {
    const Wait old = command.after.front();
    for (Command& other : one.plan.commands) {
      if (std::ranges::find(other.after, old) != other.after.end())
        other.after.push_back({Wait::On::command, false, at});
      const Wait last{Wait::On::operation, false, old.index - static_cast<std::int32_t>(n)};
      if (std::ranges::find(other.after, last) != other.after.end())
        other.after.push_back({Wait::On::command, true, at});
    }
    for (std::size_t i = 0; i < n; ++i) {
      if (i != operation) command.before_operations.push_back(static_cast<std::uint32_t>(i < operation ? i + n : i));
    }
  }
  one.plan.commands.push_back(std::move(command));
  return "an operation runs again";
}

std::string_view add_codec(std::mt19937_64& random, Case& one) {
  Plan& plan = one.plan;
  if (one.trace.forms.empty()) return "nothing";
  const TensorForm& form = one.trace.forms[one_of(random, one.trace.forms.size())];
  if (std::ranges::count(plan.pieces, form.tensor, &Division::tensor) != 0) return "nothing";
  if (plan.forms.empty()) plan.forms.push_back("zeros");
  const std::size_t n = one.trace.operations.size();
  const std::size_t operation = one_of(random, n);
  const EngineId engine = swapmm::v2::detail::Engines(one.trace, plan.machine).engine(id_at<OperationId>(operation));
  const MemoryId memory = *plan.machine.engines[index(engine)].memory;
  Command encode;
  encode.kind = CommandKind::encode;
  encode.tensor = form.tensor;
  encode.form = FormId{1};
  encode.engine = engine;
  encode.position = static_cast<std::uint32_t>(operation + 1);
  encode.after = {after_operation(id_at<OperationId>(operation))};
  const bool limited = plan.machine.memories[index(memory)].bytes.has_value();
  if (limited) {
    const Memory& in = plan.machine.memories[index(memory)];
    const std::uint64_t room = in.bytes->value / in.alignment.value;
    encode.offset = Bytes{in.alignment.value * below_or_equal(random, room)};
  }
  Command decode = encode;
  decode.kind = CommandKind::decode;
  decode.offset.reset();
  const auto at = static_cast<std::int32_t>(plan.commands.size());
  decode.after = {{Wait::On::command, false, at}};
  if (operation + 1 < n) decode.before_operations = {static_cast<std::uint32_t>(operation + 1)};
  plan.commands.push_back(std::move(encode));
  plan.commands.push_back(std::move(decode));
  if (limited) {
    Command release;
    release.kind = CommandKind::release;
    release.tensor = form.tensor;
    release.form = FormId{1};
    release.memory = memory;
    release.after = {{Wait::On::command, false, at + 1}};
    plan.commands.push_back(std::move(release));
  }
  return "a value is encoded and decoded";
}

}  // namespace

std::string_view mutate(std::mt19937_64& random, Case& one) {
  Plan& plan = one.plan;
  const std::size_t n = one.trace.operations.size();
  const std::size_t kind = one_of(random, 14);
  if (kind == 0) return add_run(random, one);
  if (kind == 1) return add_codec(random, one);
  if (kind == 2) {
    divide(random, one);
    return "a tensor is divided";
  }
  if (kind == 3 && !plan.initial.empty()) {
    Place& place = plan.initial[one_of(random, plan.initial.size())];
    place.valid = !place.valid;
    return "a claim changes";
  }
  if (kind == 4 && !plan.initial.empty()) {
    plan.initial.erase(plan.initial.begin() + static_cast<std::ptrdiff_t>(one_of(random, plan.initial.size())));
    return "a place at the beginning is missing";
  }
  if (plan.commands.empty()) return "nothing";
  Command& command = plan.commands[one_of(random, plan.commands.size())];
  switch (kind) {
    case 5: command.after.push_back(random_wait(random, one)); return "a wait more";
    case 6:
    case 7:
      if (command.after.empty()) return "nothing";
      command.after.erase(command.after.begin() + static_cast<std::ptrdiff_t>(one_of(random, command.after.size())));
      return "a wait less";
    case 8: command.before_operations.clear(); return "no operation waits";
    case 9:
      command.before_operations.push_back(static_cast<std::uint32_t>(one_of(random, 2 * n)));
      return "one more operation waits";
    case 10: {
      Command& other = plan.commands[one_of(random, plan.commands.size())];
      std::swap(command.after, other.after);
      return "two commands change their waits";
    }
    case 11:
      if (!command.offset || command.kind == CommandKind::run) return "nothing";
      *command.offset += Bytes{8};
      return "another offset";
    case 12:
      if (has_engine(command.kind)) command.position = static_cast<std::uint32_t>(one_of(random, n + 1));
      return "another position";
    default: command.after = {random_wait(random, one)}; return "other waits";
  }
}

}  // namespace swapmm::test::general
