// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/machine.hpp>

#include <algorithm>
#include <set>
#include <string_view>

#include <swapmm/ir/limits.hpp>
#include <swapmm/ir/trace.hpp>

namespace swapmm::v2 {
namespace {

using Finding = std::optional<Problem>;

std::string element_name(std::string_view list, std::size_t position) {
  return std::string(list) + '[' + std::to_string(position) + ']';
}

/// Names of one list are names, and differ.
template <class Element>
Finding check_names(std::string_view list, const std::vector<Element>& elements, std::size_t most) {
  if (elements.size() > most) {
    return Problem{std::string(list) + ": " + std::to_string(elements.size()) + " are more than the " +
                   std::to_string(most) + " that a machine may have"};
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!is_name(elements[i].name)) {
      return Problem{element_name(list, i) + ".name: not 1 to 100 characters out of A-Z a-z 0-9 . _ -"};
    }
    if (!names.insert(elements[i].name).second) {
      return Problem{element_name(list, i) + ".name: " + elements[i].name + " is the name of two"};
    }
  }
  return std::nullopt;
}

Finding check_above_zero(const std::string& field, std::uint64_t value) {
  if (value == 0) return Problem{field + ": 0 is not above 0"};
  if (value >= limits::magnitude) return Problem{field + ": " + std::to_string(value) + " is not below 2^62"};
  return std::nullopt;
}

template <class Id>
Finding check_id(const std::string& field, Id id, std::size_t count) {
  if (index(id) < count) return std::nullopt;
  return Problem{field + ": " + std::to_string(index(id)) + " is not one of the " + std::to_string(count)};
}

Finding check_memory(const Memory& memory, const std::string& where) {
  if (!memory.bytes) return std::nullopt;
  if (auto finding = check_above_zero(where + ".bytes", memory.bytes->value)) return finding;
  if (auto finding = check_above_zero(where + ".alignment_bytes", memory.alignment.value)) return finding;
  if (memory.alignment.value > limits::alignment_bytes) {
    return Problem{where + ".alignment_bytes: " + std::to_string(memory.alignment.value) + " is above 2^40"};
  }
  if (!memory.max_allocation) return std::nullopt;
  if (auto finding = check_above_zero(where + ".max_allocation_bytes", memory.max_allocation->value)) return finding;
  if (memory.max_allocation->value % memory.alignment.value == 0) return std::nullopt;
  return Problem{where + ".max_allocation_bytes: " + std::to_string(memory.max_allocation->value) +
                 " is not a multiple of the alignment, " + std::to_string(memory.alignment.value)};
}

Finding check_engines(const Machine& machine) {
  bool computes = false;
  for (std::size_t i = 0; i < machine.engines.size(); ++i) {
    const auto& memory = machine.engines[i].memory;
    if (!memory) continue;
    computes = true;
    if (auto finding = check_id(element_name("engines", i) + ".memory", *memory, machine.memories.size()))
      return finding;
  }
  if (computes) return std::nullopt;
  return Problem{"engines: none has a memory, so none can run operations"};
}

Finding check_link(const Machine& machine, const Link& link, const std::string& where) {
  if (auto finding = check_id(where + ".from", link.from, machine.memories.size())) return finding;
  if (auto finding = check_id(where + ".to", link.to, machine.memories.size())) return finding;
  if (link.from == link.to) return Problem{where + ": from and to are the same memory"};
  if (auto finding = check_above_zero(where + ".bytes_per_second", link.bytes_per_second)) return finding;
  const std::int64_t latency = link.latency.count();
  if (latency < 0 || latency >= static_cast<std::int64_t>(limits::magnitude)) {
    return Problem{where + ".latency_ns: " + std::to_string(latency) + " is not from 0 to below 2^62"};
  }
  if (link.engine) {
    if (auto finding = check_id(where + ".engine", *link.engine, machine.engines.size())) return finding;
  }
  std::set<CapacityId> seen;
  for (const CapacityId capacity : link.capacities) {
    if (auto finding = check_id(where + ".capacities", capacity, machine.capacities.size())) return finding;
    if (seen.insert(capacity).second) continue;
    return Problem{where + ".capacities: " + machine.capacities[index(capacity)].name + " stands twice"};
  }
  return std::nullopt;
}

Finding check_links(const Machine& machine) {
  std::vector<std::uint64_t> users(machine.capacities.size());
  std::size_t sharings = 0;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const Link& link = machine.links[i];
    if (auto finding = check_link(machine, link, element_name("links", i))) return finding;
    sharings += link.capacities.size();
    if (sharings > limits::sharings) {
      return Problem{"links: they name more than " + std::to_string(limits::sharings) + " capacities"};
    }
    for (const CapacityId capacity : link.capacities) ++users[index(capacity)];
  }
  for (std::size_t i = 0; i < machine.capacities.size(); ++i) {
    const std::string field = element_name("capacities", i) + ".bytes_per_second";
    const std::uint64_t rate = machine.capacities[i].bytes_per_second;
    if (auto finding = check_above_zero(field, rate)) return finding;
    if (rate >= users[i]) continue;
    return Problem{field + ": " + std::to_string(rate) + " is less than one for each of the " +
                   std::to_string(users[i]) + " links that share it"};
  }
  return std::nullopt;
}

Finding check_all(const Machine& machine) {
  if (machine.memories.empty()) return Problem{"memories: a machine has at least one"};
  if (auto finding = check_names("memories", machine.memories, limits::memories)) return finding;
  if (auto finding = check_names("engines", machine.engines, limits::engines)) return finding;
  if (auto finding = check_names("capacities", machine.capacities, limits::links)) return finding;
  if (auto finding = check_names("links", machine.links, limits::links)) return finding;
  for (std::size_t i = 0; i < machine.memories.size(); ++i) {
    if (auto finding = check_memory(machine.memories[i], element_name("memories", i))) return finding;
  }
  if (auto finding = check_engines(machine)) return finding;
  if (auto finding = check_links(machine)) return finding;
  return check_id("host", machine.host, machine.memories.size());
}

}  // namespace

Check check_machine(const Machine& machine) {
  if (auto finding = check_all(machine)) return *finding;
  return Done{};
}

EngineId default_engine(const Machine& machine) {
  const auto computes = [](const Engine& engine) { return engine.memory.has_value(); };
  const auto found = std::ranges::find_if(machine.engines, computes);
  return id_at<EngineId>(static_cast<std::size_t>(found - machine.engines.begin()));
}

Machine from_version_1(const swapmm::Machine& machine) {
  const auto device = MemoryId{0};
  const auto host = MemoryId{1};
  const bool half = machine.duplex == Duplex::half;
  Machine result;
  result.name = machine.name;
  result.memories = {{"device", machine.device_budget, machine.alignment, machine.max_allocation},
                     {"host", std::nullopt, Bytes{1}, std::nullopt}};
  result.engines = {{"compute", device}, {"h2d", std::nullopt}};
  if (!half) result.engines.push_back({"d2h", std::nullopt});
  result.links = {
      {"h2d", host, device, machine.h2d.bytes_per_second, machine.h2d.latency, EngineId{1}, {}},
      {"d2h", device, host, machine.d2h.bytes_per_second, machine.d2h.latency, EngineId{half ? 1U : 2U}, {}}};
  result.host = host;
  return result;
}

}  // namespace swapmm::v2
