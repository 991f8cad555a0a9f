// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/plan.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/ir/limits.hpp>

namespace swapmm {
namespace {

using Finding = std::optional<Problem>;

std::string plan_element(std::string_view list, std::size_t position) {
  return std::string(list) + '[' + std::to_string(position) + ']';
}

Finding check_offset(std::string_view list, std::size_t position, Bytes offset, const Machine& machine) {
  const auto text = [&] { return plan_element(list, position) + ".offset: " + std::to_string(offset.value); };
  if (offset.value % machine.alignment.value != 0) {
    return Problem{text() + " is not a multiple of the alignment, " + std::to_string(machine.alignment.value)};
  }
  // A tensor of 0 bytes may be at the very end.
  if (offset > machine.device_budget) {
    return Problem{text() + " is beyond the budget of " + std::to_string(machine.device_budget.value) + " bytes"};
  }
  return std::nullopt;
}

Finding check_digest(const std::string& digest) {
  const bool is_digest = digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_digest) return std::nullopt;
  return Problem{"trace: not a digest, which is 64 lower-case hexadecimal digits"};
}

Finding check_initial(const Plan& plan) {
  std::vector<bool> seen;
  for (std::size_t i = 0; i < plan.initial.size(); ++i) {
    const std::size_t id = index(plan.initial[i].tensor);
    if (id >= limits::tensors) {
      return Problem{plan_element("initial", i) + ".tensor: " + std::to_string(id) + " is above " +
                     std::to_string(limits::tensors - 1)};
    }
    if (seen.size() <= id) seen.resize(id + 1);
    if (seen[id])
      return Problem{plan_element("initial", i) + ".tensor: tensor " + std::to_string(id) + " stands twice"};
    seen[id] = true;
    if (auto finding = check_offset("initial", i, plan.initial[i].offset, plan.machine)) return finding;
  }
  return std::nullopt;
}

Finding check_command(const Plan& plan, std::size_t position) {
  const Command& command = plan.commands[position];
  for (std::size_t i = 0; i < command.after.size(); ++i) {
    const Wait& wait = command.after[i];
    if (wait.on != Wait::On::command || static_cast<std::size_t>(wait.index) < plan.commands.size()) continue;
    return Problem{plan_element("commands", position) + '.' + plan_element("after", i) +
                   ".command: " + std::to_string(wait.index) + " is not one of the " +
                   std::to_string(plan.commands.size()) + " commands"};
  }
  if (!has_place(command.kind)) return std::nullopt;
  return check_offset("commands", position, command.offset, plan.machine);
}

}  // namespace

Check check_plan(const Plan& plan) {
  const Check machine = check_machine(plan.machine);
  if (!machine) return Problem{"machine: " + machine.problem().message};
  if (auto finding = check_digest(plan.trace_digest)) return *finding;
  if (auto finding = check_initial(plan)) return *finding;
  for (std::size_t i = 0; i < plan.commands.size(); ++i) {
    if (auto finding = check_command(plan, i)) return *finding;
  }
  return Done{};
}

}  // namespace swapmm
