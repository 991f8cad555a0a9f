// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words for plans of version 2 that are written by hand.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/explain.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/transition.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/plan_text.hpp"
#include "support/told.hpp"

namespace swapmm::v2::hand {

using namespace swapmm::test;
using BeforeAll = std::vector<std::uint32_t>;
constexpr std::uint64_t byte_per_ns = 1'000'000'000;
constexpr auto gpu = MemoryId{0};
constexpr auto host = MemoryId{1};

inline Link link(std::string name, MemoryId from, MemoryId to, std::uint64_t rate = byte_per_ns) {
  return {std::move(name), from, to, rate, std::chrono::nanoseconds{0}, std::nullopt, {}};
}
/// A device, the host, links h2d (0) and d2h (1), and an engine on the device.
inline Machine device(std::uint64_t bytes, std::optional<Bytes> arena = std::nullopt) {
  Machine machine;
  machine.name = "test";
  machine.memories = {{"gpu", Bytes{bytes}, Bytes{1}, arena}, {"host", std::nullopt, Bytes{1}, std::nullopt}};
  machine.engines = {{"gpu", gpu}};
  machine.links = {link("h2d", host, gpu), link("d2h", gpu, host)};
  machine.host = host;
  return machine;
}
inline Command copy(std::uint32_t tensor, std::uint32_t on, Waits after, BeforeAll before = {},
                    std::optional<Bytes> offset = std::nullopt) {
  Command command;
  command.kind = CommandKind::copy;
  command.tensor = TensorId{tensor};
  command.link = LinkId{on};
  command.offset = offset;
  command.after = std::move(after);
  command.before_operations = std::move(before);
  return command;
}
inline Command take(std::uint32_t tensor, std::uint64_t offset, Waits after, BeforeAll before = {}) {
  Command command;
  command.kind = CommandKind::allocate;
  command.tensor = TensorId{tensor};
  command.memory = gpu;
  command.offset = Bytes{offset};
  command.after = std::move(after);
  command.before_operations = std::move(before);
  return command;
}
inline Command give_back(std::uint32_t tensor, Waits after) {
  Command command;
  command.kind = CommandKind::release;
  command.tensor = TensorId{tensor};
  command.memory = gpu;
  command.after = std::move(after);
  return command;
}
inline Place place(std::uint32_t tensor, std::uint64_t offset, bool valid = true) {
  return {TensorId{tensor}, std::nullopt, FormId::plain, gpu, Bytes{offset}, valid};
}
inline Plan plan_of(const Trace& trace, Machine machine, std::vector<Place> initial, std::vector<Command> commands) {
  Plan plan;
  plan.trace_digest = digest(trace);
  plan.planner = "by hand";
  plan.machine = std::move(machine);
  plan.initial = std::move(initial);
  plan.commands = std::move(commands);
  return plan;
}
inline std::string told(const std::vector<Violation>& violations) { return swapmm::test::told(violations); }
inline std::string told(const Trace& trace, const Plan& plan) { return swapmm::test::told(v2::validate(trace, plan)); }

}  // namespace swapmm::v2::hand
