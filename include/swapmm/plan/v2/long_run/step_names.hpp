// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::long_run {

/// The name of an element for people. An operation, also one that runs again: its name. A command: the tensor's name,
/// with the piece if there are several, and the form if it is not plain: `t5[2]`, `t6 as zeros`.
[[nodiscard]] inline std::string step_name(const Trace& trace, const Plan& plan, std::size_t element) {
  const std::size_t n = trace.operations.size();
  if (element < n) return trace.operations[element].name;
  const Command& command = plan.commands[element - n];
  if (command.kind == CommandKind::run) return trace.operations[index(command.operation)].name;
  std::string name = trace.tensors[index(command.tensor)].name;
  if (command.piece) name += '[' + std::to_string(*command.piece) + ']';
  if (command.form == FormId::plain) return name;
  name += command.kind == CommandKind::decode ? " from " : command.kind == CommandKind::encode ? " to " : " as ";
  return name += name_of(plan, command.form);
}

}  // namespace swapmm::v2::long_run
