// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/validate.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include <swapmm/ir/limits.hpp>
#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/validation/findings.hpp>
#include <swapmm/plan/v2/validation/order.hpp>
#include <swapmm/plan/v2/validation/parts.hpp>
#include <swapmm/plan/v2/validation/place_check.hpp>
#include <swapmm/plan/v2/validation/value_check.hpp>

namespace swapmm::v2 {
namespace {

using validation::Findings;
using validation::Parts;

std::string element(std::string_view list, std::size_t position) {
  return std::string(list) + '[' + std::to_string(position) + ']';
}

/// Checks that everything that the rules refer to exists (rule 0). The other checks rely on it.
class StructureCheck {
 public:
  StructureCheck(const Trace& trace, const Plan& plan, Findings& findings)
      : trace_(trace), plan_(plan), findings_(findings) {}

  void run() {
    if (const Check plan = check_plan(plan_); !plan) {
      findings_.add(0, plan.problem().message);
      return;
    }
    if (const std::string expected = digest(trace_); plan_.trace_digest != expected) {
      findings_.add(0, "trace: the plan is for program " + plan_.trace_digest + ", this one is " + expected);
    }
    engines();
    pieces();
    if (findings_.count() != 0) return;  // parts need sound divisions
    for (std::size_t i = 0; i < plan_.initial.size() && !findings_.full(); ++i) {
      const Place& place = plan_.initial[i];
      unit(place.tensor, place.form, element("initial", i));
    }
    for (std::size_t j = 0; j < plan_.commands.size() && !findings_.full(); ++j) command(j);
    if (findings_.count() == 0) amounts();
  }

 private:
  void engines() {
    if (const std::string* name = detail::missing_engine(trace_, plan_.machine)) {
      findings_.add(0, "machine: it has no engine " + *name + " with a memory, and operations name it");
    }
  }

  /// Limits that keep the work of the other checks within bounds.
  void amounts() {
    std::vector<std::size_t> pieces(trace_.tensors.size(), 1);
    for (const Division& division : plan_.pieces) pieces[index(division.tensor)] = division.at.size() + 1;
    std::vector<std::size_t> of_operation;
    std::size_t accesses = 0;
    for (const TraceOperation& operation : trace_.operations) {
      std::size_t count = 0;
      for_each_access(operation, [&](TensorId tensor, Access) { count += pieces[index(tensor)]; });
      of_operation.push_back(count);
      accesses += count;
    }
    for (const HostRead& read : trace_.host_reads) accesses += pieces[index(read.tensor)];
    const detail::Engines engines(trace_, plan_.machine);
    std::set<EngineId> used;
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) used.insert(engines.engine(id_at<OperationId>(i)));
    for (const Command& command : plan_.commands) {
      if (command.kind == CommandKind::run) accesses += of_operation[index(command.operation)];
      if (command.kind == CommandKind::copy) used.insert(engine_of(plan_.machine, command.link));
    }
    if (accesses > limits::accesses_of_parts) {
      findings_.add(0, "operations access " + std::to_string(accesses) + " parts, more than the " +
                           std::to_string(limits::accesses_of_parts) + " of a plan");
    }
    const std::size_t clocks = (trace_.operations.size() + plan_.commands.size()) * used.size();
    if (clocks > limits::clocks) {
      findings_.add(0, std::to_string(used.size()) + " engines are too many for so many operations and commands");
    }
  }

  bool is_tensor(TensorId id, const std::string& where) {
    if (index(id) < trace_.tensors.size()) return true;
    findings_.add(0, where + ".tensor: " + std::to_string(index(id)) + " is not the id of one of the " +
                         std::to_string(trace_.tensors.size()) + " tensors");
    return false;
  }

  void pieces() {
    for (std::size_t i = 0; i < plan_.pieces.size(); ++i) {
      const Division& division = plan_.pieces[i];
      if (!is_tensor(division.tensor, element("pieces", i))) continue;
      if (division.at.back() < trace_.tensors[index(division.tensor)].bytes) continue;
      findings_.add(0, element("pieces", i) + ".at: " + std::to_string(division.at.back().value) + " is not within " +
                           findings_.tensor(index(division.tensor)));
    }
  }

  /// The tensor exists and has the form.
  void unit(TensorId tensor, FormId form, const std::string& where) {
    if (!is_tensor(tensor, where) || form == FormId::plain) return;
    if (find_form(trace_, tensor, name_of(plan_, form)) != nullptr) return;
    findings_.add(
        0, where + ".form: " + findings_.tensor(index(tensor)) + " has no form " + std::string(name_of(plan_, form)));
  }

  void command(std::size_t j) {
    const Command& command = plan_.commands[j];
    const std::size_t n = trace_.operations.size();
    const auto where = [&] { return element("commands", j); };
    if (command.kind == CommandKind::run) {
      if (index(command.operation) >= n) {
        findings_.add(0, where() + ".operation: " + std::to_string(index(command.operation)) + " is not one of the " +
                             std::to_string(n));
      } else if (!trace_.operations[index(command.operation)].replayable) {
        findings_.add(4, where() + ": " + findings_.operation(index(command.operation)) + " is not replayable");
      }
    } else {
      unit(command.tensor, command.form, where());
    }
    if (command.position && *command.position > n) {
      findings_.add(0,
                    where() + ".position: " + std::to_string(*command.position) + " is above n = " + std::to_string(n));
    }
    for (const std::uint32_t operation : command.before_operations) {
      if (operation < 2 * n) continue;
      findings_.add(0, where() + ".before_operation: " + std::to_string(operation) +
                           " is not below 2n = " + std::to_string(2 * n));
    }
    for (std::size_t w = 0; w < command.after.size(); ++w) {
      const Wait& wait = command.after[w];
      if (wait.on == Wait::On::command) continue;  // check_plan() has seen it
      const auto length = static_cast<std::int64_t>(n);
      if (!wait.previous && wait.index >= -length && wait.index < length) continue;
      findings_.add(0, where() + '.' + element("after", w) + ": " + std::to_string(wait.index) + " is not one of the " +
                           std::to_string(n) + " operations or those before");
    }
  }

  const Trace& trace_;
  const Plan& plan_;
  Findings& findings_;
};

void report_circle(const validation::Order& order, Findings& findings) {
  constexpr std::size_t most_told = 8;
  const auto& circle = order.circle();
  std::string message = "waits go in a circle: " + findings.node(circle.front());
  for (std::size_t i = 1; i < circle.size() && i < most_told; ++i) message += " waits for " + findings.node(circle[i]);
  if (circle.size() > most_told) message += " ... (" + std::to_string(circle.size()) + " in all)";
  findings.add(7, message + " waits for " + findings.node(circle.front()));
}

void check_rules(const Trace& trace, const Plan& plan, Findings& findings) {
  const Parts parts(trace, plan);
  validation::check_places(plan, parts, findings);
  const bool placed = findings.count() == 0;
  const detail::Engines engines(trace, plan.machine);
  const validation::Order order(trace, plan, parts, engines);
  if (!order.circle().empty()) {
    report_circle(order, findings);
    return;
  }
  if (!order.settled()) {
    findings.add(6,
                 "commands: what comes first cannot be told: commands without an engine wait for one another back "
                 "through too many iterations");
    return;
  }
  const std::vector<bool> sound = validation::check_values(trace, plan, parts, engines, order, findings);
  // Ends of places outside their memory may not even fit 64 bits.
  if (placed) validation::check_overlaps(plan, parts, order, sound, findings);
}

}  // namespace

std::vector<Violation> validate(const Trace& trace, const Plan& plan) {
  Findings findings(trace, plan);
  StructureCheck(trace, plan, findings).run();
  if (findings.count() == 0) check_rules(trace, plan, findings);
  return std::move(findings).take();
}

}  // namespace swapmm::v2
