// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/validate.hpp>

namespace swapmm::validation {

/// Collects the violations found so far, and names tensors, operations and commands for their messages.
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
  [[nodiscard]] std::string operation(std::size_t id) const {
    return "operation " + std::to_string(id) + quoted(trace_.operations[id].name);
  }
  /// `command 7 (swap_in of tensor 3 "weights")`
  [[nodiscard]] std::string command(std::size_t id) const {
    const Command& command = plan_.commands[id];
    return "command " + std::to_string(id) + " (" + std::string(to_string(command.kind)) + " of " +
           tensor(index(command.tensor)) + ')';
  }

 private:
  static std::string quoted(std::string_view name) {
    return name.empty() ? std::string{} : " \"" + std::string(name) + '"';
  }

  const Trace& trace_;
  const Plan& plan_;
  std::vector<Violation> violations_;
};

}  // namespace swapmm::validation
