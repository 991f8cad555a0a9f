// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/plan.hpp>
#include <swapmm/plan/v2/validation/parts.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::v2::validation {

/// Collects the violations found so far, and names things for their messages.
class Findings {
 public:
  static constexpr std::size_t most = 100;

  Findings(const Trace& trace, const Plan& plan) : trace_(trace), plan_(plan) {}

  void add(int rule, std::string message) {
    if (!full()) violations_.push_back({rule, std::move(message)});
  }
  [[nodiscard]] bool full() const { return violations_.size() >= most; }
  [[nodiscard]] std::size_t count() const { return violations_.size(); }
  [[nodiscard]] std::vector<Violation> take() && { return std::move(violations_); }

  [[nodiscard]] std::string tensor(std::size_t id) const {
    return "tensor " + std::to_string(id) + quoted(trace_.tensors[id].name);
  }
  /// `tensor 3 "weights", piece 2`
  [[nodiscard]] std::string part(const Parts& parts, std::size_t part) const {
    const std::size_t id = parts.tensor_of(part);
    return tensor(id) + (parts.divided(id) ? ", piece " + std::to_string(part - parts.first_part(id)) : std::string{});
  }
  /// The same with the form, if it is not plain.
  [[nodiscard]] std::string unit(const Parts& parts, std::size_t unit) const {
    if (unit < parts.parts()) return part(parts, unit);
    return part(parts, parts.part_of(unit)) + ", form " + trace_.forms[unit - parts.parts()].name;
  }
  [[nodiscard]] std::string operation(std::size_t id) const {
    return "operation " + std::to_string(id) + quoted(trace_.operations[id].name);
  }
  /// `command 7 (copy of tensor 3 "weights")`
  [[nodiscard]] std::string command(std::size_t id) const {
    const Command& command = plan_.commands[id];
    const std::string what =
        command.kind == CommandKind::run ? operation(index(command.operation)) : tensor(index(command.tensor));
    return "command " + std::to_string(id) + " (" + std::string(to_string(command.kind)) + " of " + what + ')';
  }
  /// An operation, or a command behind all operations.
  [[nodiscard]] std::string node(std::size_t node) const {
    return node < trace_.operations.size() ? operation(node) : command(node - trace_.operations.size());
  }
  [[nodiscard]] const std::string& memory(MemoryId id) const { return plan_.machine.memories[index(id)].name; }

 private:
  static std::string quoted(std::string_view name) {
    return name.empty() ? std::string{} : " \"" + std::string(name) + '"';
  }

  const Trace& trace_;
  const Plan& plan_;
  std::vector<Violation> violations_;
};

}  // namespace swapmm::v2::validation
