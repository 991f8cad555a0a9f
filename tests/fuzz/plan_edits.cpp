// SPDX-License-Identifier: Apache-2.0
#include "fuzz/plan_edits.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace swapmm::fuzz {
namespace {

constexpr std::size_t most_commands = 256;

template <class List>
typename List::iterator at(List& list, std::size_t position) {
  return list.begin() + static_cast<typename List::difference_type>(position);
}

TensorId tensor_of(const Plan& plan, Decoder& in) {
  // Mostly one that the plan knows.
  const std::uint8_t number = in.byte();
  if (number % 8 == 0 || plan.commands.empty()) return TensorId{number};
  return plan.commands[number % plan.commands.size()].tensor;
}

Bytes offset_of(const Plan& plan, Decoder& in) {
  const std::uint8_t number = in.byte();
  if (number % 4 == 0 || plan.commands.empty()) return Bytes{in.any_size()};
  return plan.commands[number % plan.commands.size()].offset;
}

Wait wait_of(Decoder& in) {
  Wait wait;
  const std::uint8_t shape = in.byte();
  wait.on = (shape & 1U) == 0 ? Wait::On::operation : Wait::On::command;
  wait.previous = (shape & 2U) != 0;
  wait.index = in.byte();
  return wait;
}

void edit_command(Plan& plan, Decoder& in, std::uint8_t kind) {
  if (plan.commands.empty()) return;
  const std::size_t position = in.one_of(plan.commands.size());
  Command& command = plan.commands[position];
  switch (kind) {
    case 0: plan.commands.erase(at(plan.commands, position)); return;
    case 1:
      if (plan.commands.size() < most_commands) {
        Command copy = command;
        plan.commands.insert(at(plan.commands, in.one_of(plan.commands.size())), std::move(copy));
      }
      return;
    case 2: std::swap(command, plan.commands[in.one_of(plan.commands.size())]); return;
    case 3: {
      constexpr CommandKind kinds[] = {CommandKind::allocate, CommandKind::swap_in, CommandKind::swap_out,
                                       CommandKind::release};
      command.kind = kinds[in.one_of(4)];
      return;
    }
    case 4: command.tensor = tensor_of(plan, in); return;
    case 5: command.offset = offset_of(plan, in); return;
    case 6: command.after.push_back(wait_of(in)); return;
    case 7:
      if (!command.after.empty()) command.after.erase(at(command.after, in.one_of(command.after.size())));
      return;
    case 8:
      command.before_operation.reset();
      if (const std::uint8_t operation = in.byte(); operation != 0) command.before_operation = operation - 1U;
      return;
    default: return;
  }
}

void edit_resident(Plan& plan, Decoder& in, std::uint8_t kind) {
  if (kind == 9) {
    plan.initial.push_back({tensor_of(plan, in), offset_of(plan, in), in.one_of(2) == 0});
    return;
  }
  if (plan.initial.empty()) return;
  const std::size_t position = in.one_of(plan.initial.size());
  Resident& resident = plan.initial[position];
  switch (kind) {
    case 10: plan.initial.erase(at(plan.initial, position)); return;
    case 11: resident.host_valid = !resident.host_valid; return;
    case 12: resident.offset = offset_of(plan, in); return;
    default: return;
  }
}

}  // namespace

void edit(Plan& plan, Decoder& in) {
  while (!in.at_end()) {
    const auto kind = static_cast<std::uint8_t>(in.one_of(15));
    if (kind < 9) {
      edit_command(plan, in, kind);
    } else if (kind < 13) {
      edit_resident(plan, in, kind);
    } else if (kind == 13) {
      plan.machine.device_budget = Bytes{in.any_size()};
    } else {
      plan.machine.alignment = Bytes{in.small()};
    }
  }
}

}  // namespace swapmm::fuzz
