// SPDX-License-Identifier: Apache-2.0
#include <swapmm/answers/machine.hpp>

#include <utility>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/ir/liveness.hpp>

namespace swapmm::answers {
namespace {

/// Otherwise liveness and what else rounds up would have to be ready for anything.
Result<Machine> checked(Machine machine) {
  if (const Check check = check_machine(machine); !check) {
    return Problem{"this machine cannot be: " + check.problem().message};
  }
  return machine;
}

void apply(const MachineFigures& figures, Machine& machine) {
  if (figures.bandwidth) machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = *figures.bandwidth;
  if (figures.bandwidth_in) machine.h2d.bytes_per_second = *figures.bandwidth_in;
  if (figures.bandwidth_out) machine.d2h.bytes_per_second = *figures.bandwidth_out;
  if (figures.latency) machine.h2d.latency = machine.d2h.latency = *figures.latency;
  if (figures.alignment) machine.alignment = *figures.alignment;
  if (figures.max_allocation) machine.max_allocation = figures.max_allocation;
  if (figures.half_duplex) machine.duplex = Duplex::half;
}

}  // namespace

bool has_figures(const MachineFigures& figures) {
  return figures.budget || figures.bandwidth || figures.bandwidth_in || figures.bandwidth_out || figures.latency ||
         figures.alignment || figures.max_allocation || figures.half_duplex;
}

Result<Machine> links_with(const MachineFigures& figures) {
  Machine machine;
  machine.alignment = Bytes{256};
  machine.h2d.bytes_per_second = machine.d2h.bytes_per_second = default_bandwidth;
  machine.device_budget = Bytes{1};
  apply(figures, machine);
  return checked(std::move(machine));
}

Result<Machine> machine_with(const MachineFigures& figures, std::optional<Machine> machine, const Trace& trace) {
  if (!machine && !figures.budget) return Problem{"a budget or a machine is missing"};
  if (machine) apply(figures, *machine);
  Result<Machine> made = machine ? checked(*std::move(machine)) : links_with(figures);
  if (!made) return made;
  if (figures.budget) {
    made->device_budget = figures.budget->of(analyze_liveness(trace, made->alignment).peak);
    made = checked(*std::move(made));
  }
  if (made && made->name.empty()) made->name = describe(*made);
  return made;
}

std::string speed_text(std::uint64_t bytes_per_second) { return decimal_size(Bytes{bytes_per_second}) + "/s"; }

std::string describe_links(const Machine& machine) {
  const std::string in = speed_text(machine.h2d.bytes_per_second);
  const std::string out = speed_text(machine.d2h.bytes_per_second);
  std::string text = in == out ? in + " each way" : in + " in, " + out + " out";
  const std::chrono::nanoseconds in_latency = machine.h2d.latency;
  const std::chrono::nanoseconds out_latency = machine.d2h.latency;
  if (in_latency != out_latency) {
    text += ", latency " + text::time_text(in_latency) + " in, " + text::time_text(out_latency) + " out";
  } else if (in_latency.count() != 0) {
    text += ", latency " + text::time_text(in_latency);
  }
  if (machine.duplex == Duplex::half) text += ", one at a time";
  return text;
}

std::string describe(const Machine& machine) {
  return decimal_size(machine.device_budget) + ", " + describe_links(machine);
}

}  // namespace swapmm::answers
