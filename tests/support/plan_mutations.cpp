// SPDX-License-Identifier: Apache-2.0
#include "support/plan_mutations.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "support/random_trace.hpp"

namespace swapmm::test {
namespace {

bool acquires(const Command& command) {
  return command.kind == CommandKind::allocate || command.kind == CommandKind::swap_in;
}

/// Calls visit(Wait&) for each wait of the plan.
template <class Visit>
void for_each_wait(Plan& plan, Visit&& visit) {
  for (Command& command : plan.commands) {
    for (Wait& wait : command.after) visit(wait);
  }
}

// Who waited for it waits for what it waited for, or for nothing.
void remove_command(Plan& plan, std::size_t gone, bool hand_on) {
  const auto at = static_cast<std::int32_t>(gone);
  const std::vector<Wait> inherited = plan.commands[gone].after;
  const auto is_gone = [&](const Wait& wait) { return wait.on == Wait::On::command && wait.index == at; };
  for (Command& command : plan.commands) {
    for (std::size_t w = 0; w < command.after.size();) {
      if (!is_gone(command.after[w])) {
        ++w;
        continue;
      }
      const bool previous = command.after[w].previous;
      command.after.erase(command.after.begin() + static_cast<std::ptrdiff_t>(w));
      if (!hand_on || previous) continue;
      for (const Wait& wait : inherited) {
        if (!is_gone(wait)) command.after.push_back(wait);
      }
    }
  }
  plan.commands.erase(plan.commands.begin() + at);
  for_each_wait(plan, [&](Wait& wait) {
    if (wait.on == Wait::On::command && wait.index > at) --wait.index;
  });
}

// Moves a command in the list; waits follow it.
void move_command(Plan& plan, std::size_t from, std::size_t to) {
  std::vector<std::size_t> order;
  for (std::size_t j = 0; j < plan.commands.size(); ++j) order.push_back(j);
  order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), from);
  std::vector<Command> commands;
  std::vector<std::int32_t> now(order.size());
  for (std::size_t position = 0; position < order.size(); ++position) {
    commands.push_back(plan.commands[order[position]]);
    now[order[position]] = static_cast<std::int32_t>(position);
  }
  plan.commands = std::move(commands);
  for_each_wait(plan, [&](Wait& wait) {
    if (wait.on == Wait::On::command) wait.index = now[static_cast<std::size_t>(wait.index)];
  });
}

/// A random command that is one of what `wanted` says, if any is.
std::optional<std::size_t> pick(std::mt19937_64& random, const Plan& plan,
                                const std::function<bool(const Command&)>& wanted) {
  std::vector<std::size_t> found;
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    if (wanted(plan.commands[j])) found.push_back(j);
  }
  if (found.empty()) return std::nullopt;
  return found[one_of(random, found.size())];
}

bool has_waits(const Command& command) { return !command.after.empty(); }

void drop_wait(std::mt19937_64& random, Plan& plan) {
  const auto at = pick(random, plan, has_waits);
  if (!at) return;
  auto& after = plan.commands[*at].after;
  after.erase(after.begin() + static_cast<std::ptrdiff_t>(one_of(random, after.size())));
}

Wait random_wait(std::mt19937_64& random, const Trace& trace, const Plan& plan) {
  const std::size_t n = trace.operations.size();
  const bool previous = chance(random, 0.3);
  if (plan.commands.empty() || chance(random, 0.5)) {
    const auto id = id_at<OperationId>(one_of(random, n));
    return previous ? after_previous_operation(id, n) : after_operation(id);
  }
  const auto id = id_at<CommandId>(one_of(random, plan.commands.size()));
  return previous ? after_previous_command(id) : after_command(id);
}

void change_wait(std::mt19937_64& random, const Trace& trace, Plan& plan) {
  const auto at = pick(random, plan, has_waits);
  if (!at) return;
  auto& after = plan.commands[*at].after;
  after[one_of(random, after.size())] = random_wait(random, trace, plan);
}

void change_offset(std::mt19937_64& random, Plan& plan) {
  const auto at = pick(random, plan, acquires);
  const auto other = pick(random, plan, acquires);
  if (!at) return;
  Bytes& offset = plan.commands[*at].offset;
  const Bytes step{plan.machine.alignment.value * (1 + one_of(random, 8))};
  switch (one_of(random, 3)) {
    case 0: offset = plan.commands[*other].offset; break;
    case 1: offset += step; break;
    default: offset = offset > step ? offset - step : Bytes{0};
  }
}

void change_before(std::mt19937_64& random, const Trace& trace, Plan& plan) {
  const auto at = pick(random, plan, [](const Command&) { return true; });
  if (!at) return;
  auto& before = plan.commands[*at].before_operation;
  const auto n = static_cast<std::uint32_t>(trace.operations.size());
  if (before && chance(random, 0.5)) {
    before = (*before + n) % (2 * n);
  } else {
    before = static_cast<std::uint32_t>(one_of(random, 2 * n));
  }
}

void change_initial(std::mt19937_64& random, const Trace& trace, Plan& plan) {
  if (!plan.initial.empty() && chance(random, 0.7)) {
    Resident& resident = plan.initial[one_of(random, plan.initial.size())];
    resident.host_valid = !resident.host_valid;
    return;
  }
  const auto tensor = id_at<TensorId>(one_of(random, trace.tensors.size()));
  const auto is_it = [&](const Resident& resident) { return resident.tensor == tensor; };
  if (std::erase_if(plan.initial, is_it) > 0) return;
  const auto place = pick(random, plan, [&](const Command& c) { return acquires(c) && c.tensor == tensor; });
  const Bytes offset = place ? plan.commands[*place].offset : Bytes{0};
  plan.initial.push_back({tensor, offset, chance(random, 0.5)});
}

// The tensor stays where a release and what follows it took it away and brought it back.
void keep_resident(std::mt19937_64& random, Plan& plan) {
  const auto release = pick(random, plan, [](const Command& c) { return c.kind == CommandKind::release; });
  if (!release) return;
  const TensorId tensor = plan.commands[*release].tensor;
  const std::size_t count = plan.commands.size();
  for (std::size_t step = 1; step < count; ++step) {
    const std::size_t back = (*release + step) % count;
    if (plan.commands[back].tensor != tensor || !acquires(plan.commands[back])) continue;
    const bool wraps = back < *release;
    if (wraps) {
      const auto resident = [&](const Resident& r) { return r.tensor == tensor; };
      if (std::any_of(plan.initial.begin(), plan.initial.end(), resident)) return;
      plan.initial.push_back({tensor, plan.commands[back].offset, chance(random, 0.5)});
    }
    remove_command(plan, std::max(back, *release), true);
    remove_command(plan, std::min(back, *release), true);
    return;
  }
}

// The same command, counted to the next iteration or to this one: what it waits for is one iteration further back.
void turn_command(std::mt19937_64& random, const Trace& trace, Plan& plan) {
  const auto n = static_cast<std::int32_t>(trace.operations.size());
  const auto at = pick(random, plan, has_waits);
  if (!at) return;
  const bool later = chance(random, 0.5);
  Command& command = plan.commands[*at];
  for (Wait& wait : command.after) {
    if (wait.on == Wait::On::command) {
      wait.previous = later;
    } else if (later == (wait.index >= 0)) {
      wait.index += later ? -n : n;
    }
  }
  if (command.before_operation) {
    const auto un = static_cast<std::uint32_t>(n);
    command.before_operation = *command.before_operation % un + (later ? 0 : un);
  }
  for (Command& other : plan.commands) {
    for (Wait& wait : other.after) {
      const bool is_it = wait.on == Wait::On::command && wait.index == static_cast<std::int32_t>(*at);
      if (is_it && &other != &command) wait.previous = !later && wait.previous;
    }
  }
  move_command(plan, *at, later ? 0 : plan.commands.size() - 1);
}

}  // namespace

std::string_view mutate(std::mt19937_64& random, const Trace& trace, Plan& plan) {
  const auto any = [](const Command&) { return true; };
  switch (one_of(random, 14)) {
    case 0:
    case 1: drop_wait(random, plan); return "dropped a wait";
    case 2: change_wait(random, trace, plan); return "changed a wait";
    case 3:
      if (const auto at = pick(random, plan, any)) remove_command(plan, *at, chance(random, 0.5));
      return "dropped a command";
    case 4:
      if (const auto at = pick(random, plan, any)) move_command(plan, *at, one_of(random, plan.commands.size()));
      return "moved a command";
    case 5:
      if (const auto at = pick(random, plan, any)) {
        std::swap(plan.commands[*at], plan.commands[one_of(random, plan.commands.size())]);
      }
      return "swapped two commands";
    case 6: change_offset(random, plan); return "shifted an offset";
    case 7:
      if (const auto at = pick(random, plan, [](const Command& c) { return c.before_operation.has_value(); })) {
        plan.commands[*at].before_operation.reset();
      }
      return "dropped a before_operation";
    case 8: change_before(random, trace, plan); return "changed a before_operation";
    case 9: change_initial(random, trace, plan); return "changed initial";
    case 10:
    case 11: keep_resident(random, plan); return "kept a tensor";
    case 12:
      if (const auto at = pick(random, plan, any)) {
        plan.commands[*at].after.push_back(random_wait(random, trace, plan));
      }
      return "added a wait";
    default: turn_command(random, trace, plan); return "turned a command";
  }
}

void spread_out(const Trace& trace, Plan& plan) {
  std::vector<Bytes> offsets;
  Bytes next;
  for (const TraceTensor& tensor : trace.tensors) {
    if (plan.machine.max_allocation) {
      const Bytes arena = *plan.machine.max_allocation;
      if (tensor.bytes > arena) return;
      if (next.value % arena.value + tensor.bytes.value > arena.value) next = round_up(next, arena);
    }
    offsets.push_back(next);
    if (next + tensor.bytes > plan.machine.device_budget) return;
    next = round_up(next + tensor.bytes, plan.machine.alignment);
  }
  for (Command& command : plan.commands) {
    if (acquires(command)) command.offset = offsets[index(command.tensor)];
  }
}

}  // namespace swapmm::test
