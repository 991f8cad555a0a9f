// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/machine.hpp>

#include <swapmm/ir/limits.hpp>

namespace swapmm {
namespace {

using Finding = std::optional<Problem>;

Finding check_size(const std::string& field, Bytes bytes) {
  if (bytes.value == 0) return Problem{field + ": 0 is not above 0"};
  if (bytes.value >= limits::magnitude)
    return Problem{field + ": " + std::to_string(bytes.value) + " is not below 2^62"};
  return std::nullopt;
}

Finding check_link(const std::string& field, const Link& link, Bytes budget) {
  if (auto finding = check_size(field + ".bytes_per_second", Bytes{link.bytes_per_second})) return finding;
  const std::int64_t latency = link.latency.count();
  if (latency < 0) return Problem{field + ".latency_ns: " + std::to_string(latency) + " is below 0"};
  // budget * 1e9 / bytes_per_second + latency < 2^62, without a product that could wrap around.
  const long double copy =
      static_cast<long double>(budget.value) * 1e9L / static_cast<long double>(link.bytes_per_second);
  if (copy + static_cast<long double>(latency) >= static_cast<long double>(limits::magnitude)) {
    return Problem{field + ": a copy of the whole budget of " + std::to_string(budget.value) +
                   " bytes takes 2^62 ns or more"};
  }
  return std::nullopt;
}

Finding check_places(const Machine& machine) {
  if (auto finding = check_size("alignment_bytes", machine.alignment)) return finding;
  if (machine.alignment.value > limits::alignment_bytes) {
    return Problem{"alignment_bytes: " + std::to_string(machine.alignment.value) + " is above 2^40"};
  }
  if (!machine.max_allocation) return std::nullopt;
  const Bytes arena = *machine.max_allocation;
  if (auto finding = check_size("max_allocation_bytes", arena)) return finding;
  if (arena.value % machine.alignment.value != 0) {
    return Problem{"max_allocation_bytes: " + std::to_string(arena.value) + " is not a multiple of the alignment, " +
                   std::to_string(machine.alignment.value)};
  }
  return std::nullopt;
}

}  // namespace

Check check_machine(const Machine& machine) {
  if (auto finding = check_size("device_budget_bytes", machine.device_budget)) return *finding;
  if (auto finding = check_places(machine)) return *finding;
  if (auto finding = check_link("h2d", machine.h2d, machine.device_budget)) return *finding;
  if (auto finding = check_link("d2h", machine.d2h, machine.device_budget)) return *finding;
  return Done{};
}

}  // namespace swapmm
