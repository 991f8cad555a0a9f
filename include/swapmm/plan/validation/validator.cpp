// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/validate.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include <swapmm/ir/graph.hpp>
#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/validation/findings.hpp>
#include <swapmm/plan/validation/happens_before.hpp>
#include <swapmm/plan/validation/place_check.hpp>
#include <swapmm/plan/validation/tensor_events.hpp>
#include <swapmm/plan/validation/value_check.hpp>

namespace swapmm {
namespace {

using validation::Findings;

/// Checks that everything that the rules refer to exists (rule 0). The other checks rely on it.
class StructureCheck {
 public:
  StructureCheck(const Trace& trace, const Plan& plan, Findings& findings)
      : trace_(trace), plan_(plan), findings_(findings) {}

  void run() {
    if (const std::string expected = digest(trace_); plan_.trace_digest != expected) {
      findings_.add(0, "trace: the plan is for program " + shortened(plan_.trace_digest) + ", this one is " + expected);
    }
    if (const Check machine = check_machine(plan_.machine); !machine) {
      findings_.add(0, "machine: " + machine.problem().message);
    }
    if (plan_.commands.size() > limits::commands) {
      findings_.add(0, "commands: " + std::to_string(plan_.commands.size()) + " are more than the " +
                           std::to_string(limits::commands) + " that a plan may have");
      return;
    }
    initial();
    for (std::size_t j = 0; j < plan_.commands.size() && !findings_.full(); ++j) command(j);
  }

 private:
  // The text comes from a file and may be long.
  static std::string shortened(const std::string& text) {
    return text.size() <= 64 ? '"' + text + '"' : '"' + text.substr(0, 64) + "...\"";
  }

  bool is_tensor(TensorId id, const std::string& where) {
    if (index(id) < trace_.tensors.size()) return true;
    findings_.add(0, where + ".tensor: " + std::to_string(index(id)) + " is not the id of one of the " +
                         std::to_string(trace_.tensors.size()) + " tensors");
    return false;
  }

  void initial() {
    std::vector<bool> seen(trace_.tensors.size(), false);
    for (std::size_t i = 0; i < plan_.initial.size() && !findings_.full(); ++i) {
      const TensorId id = plan_.initial[i].tensor;
      const std::string where = "initial[" + std::to_string(i) + ']';
      if (!is_tensor(id, where)) continue;
      if (seen[index(id)]) findings_.add(5, where + ": " + findings_.tensor(index(id)) + " is on the device twice");
      seen[index(id)] = true;
    }
  }

  void command(std::size_t j) {
    const Command& command = plan_.commands[j];
    const std::size_t n = trace_.operations.size();
    const auto where = [&] { return "commands[" + std::to_string(j) + ']'; };
    if (index(command.tensor) >= trace_.tensors.size()) (void)is_tensor(command.tensor, where());
    if (command.before_operation && *command.before_operation >= 2 * n) {
      findings_.add(0, where() + ".before_operation: " + std::to_string(*command.before_operation) +
                           " is not below 2n = " + std::to_string(2 * n));
    }
    for (std::size_t w = 0; w < command.after.size(); ++w) {
      const std::string wrong = what_is_wrong(command.after[w]);
      if (!wrong.empty()) findings_.add(0, where() + ".after[" + std::to_string(w) + "]: " + wrong);
    }
  }

  /// Empty if the wait names something that exists.
  [[nodiscard]] std::string what_is_wrong(const Wait& wait) const {
    const std::int64_t at = wait.index;
    const auto n = static_cast<std::int64_t>(trace_.operations.size());
    if (wait.on == Wait::On::command) {
      if (at >= 0 && at < static_cast<std::int64_t>(plan_.commands.size())) return {};
      return std::to_string(at) + " is not one of the " + std::to_string(plan_.commands.size()) + " commands";
    }
    if (wait.previous) return "previous is for commands, an operation of the iteration before has a negative number";
    if (at >= -n && at < n) return {};
    return std::to_string(at) + " is not one of the " + std::to_string(n) + " operations or those before";
  }

  const Trace& trace_;
  const Plan& plan_;
  Findings& findings_;
};

void report_circle(const validation::HappensBefore& order, Findings& findings) {
  constexpr std::size_t most_told = 8;
  const auto name = [&](std::uint32_t node) {
    return node < order.operations() ? findings.operation(node) : findings.command(node - order.operations());
  };
  const auto& circle = order.circle();
  std::string message = "waits go in a circle: " + name(circle.front());
  for (std::size_t i = 1; i < circle.size() && i < most_told; ++i) message += " waits for " + name(circle[i]);
  if (circle.size() > most_told) message += " ... (" + std::to_string(circle.size()) + " in all)";
  findings.add(7, message + " waits for " + name(circle.front()));
}

void check_rules(const Trace& trace, const Plan& plan, Findings& findings) {
  validation::check_places(trace, plan, findings);
  const bool placed = findings.count() == 0;
  const validation::HappensBefore order(trace, plan);
  if (!order.circle().empty()) {
    report_circle(order, findings);
    return;
  }
  if (!order.settled()) {
    findings.add(6,
                 "commands: what comes first cannot be told: allocates and releases wait for one another back "
                 "through too many iterations");
    return;
  }
  const validation::TensorEvents events(trace, make_graph(trace), plan, order);
  const std::vector<bool> sound = validation::check_values(trace, plan, order, events, findings);
  // Ends of places outside the budget may not even fit 64 bits.
  if (placed) validation::check_overlaps(trace, plan, order, events, sound, findings);
}

}  // namespace

std::vector<Violation> validate(const Trace& trace, const Plan& plan) {
  Findings findings(trace, plan);
  StructureCheck(trace, plan, findings).run();
  if (findings.count() == 0) check_rules(trace, plan, findings);
  return std::move(findings).take();
}

}  // namespace swapmm
