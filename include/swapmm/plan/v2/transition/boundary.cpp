// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/transition/boundary.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <swapmm/plan/v2/engines.hpp>
#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/event_run.hpp>

namespace swapmm::v2::transition {
namespace {

using validation::HostEnds;
using validation::PartAccess;
using validation::Parts;

/// Follows the values of a plan through its iterations. Races are out of the question, because the plan is valid.
class ValueRun {
 public:
  ValueRun(const Trace& trace, const Plan& plan)
      : trace_(trace),
        plan_(plan),
        parts_(trace, plan),
        host_ends_(trace, parts_),
        engines_(trace, plan.machine),
        last_(parts_.parts(), 0) {
    for (std::size_t i = 0; i < trace.operations.size(); ++i) {
      for (const PartAccess& access : parts_.accesses(i)) {
        if (access.access != Access::read) last_[access.part] = written_by(i);
      }
      for (const PartAccess& access : host_ends_.at(i)) {
        if (access.access != Access::read) last_[access.part] = given_after(i);
      }
    }
    for (const Holding& holding : beginning_of(trace, plan, newest_after(0))) {
      at_[{holding.unit, holding.memory}] = {holding.offset, holding.value};
    }
  }

  /// Something of an iteration, counted from 1, has ended.
  void end(std::size_t element, std::size_t iteration) {
    const std::size_t n = trace_.operations.size();
    if (element < n) {
      write_all(element, iteration);
      for (const PartAccess& access : host_ends_.at(element)) {
        if (access.access == Access::read) read_by_host(access.part, element, iteration);
      }
      for (const PartAccess& access : host_ends_.at(element)) {
        if (access.access != Access::read) put(access.part, plan_.machine.host, id(iteration, given_after(element)));
      }
    } else if (element < n + plan_.commands.size()) {
      command(plan_.commands[element - n], iteration);
    }
  }

  [[nodiscard]] Boundary boundary(std::size_t iterations) const {
    Boundary result;
    result.newest = newest_after(iterations);
    for (const auto& [key, place] : at_) {
      const bool is_limited = plan_.machine.memories[index(key.second)].bytes.has_value();
      if (is_limited || place.value != 0) result.holdings.push_back({key.first, key.second, place.offset, place.value});
    }
    result.is_needed = needed_parts();
    if (!owed_.empty()) result.owed_to_host = owed_.begin()->first;
    return result;
  }

 private:
  struct Place {
    Bytes offset;
    ValueId value = 0;
  };

  [[nodiscard]] static ValueId written_by(std::size_t operation) { return 2 * operation + 1; }
  [[nodiscard]] static ValueId given_after(std::size_t operation) { return 2 * operation + 2; }
  /// Values ascend in the order of the list, iteration after iteration. What is never written has one value.
  [[nodiscard]] ValueId id(std::size_t iteration, ValueId in_iteration) const {
    return 1 + iteration * (2 * trace_.operations.size() + 2) + in_iteration;
  }
  [[nodiscard]] std::vector<ValueId> newest_after(std::size_t iterations) const {
    std::vector<ValueId> newest;
    for (const ValueId last : last_) newest.push_back(last == 0 ? 1 : id(iterations, last));
    return newest;
  }

  /// By the first access of the next iteration.
  [[nodiscard]] std::vector<bool> needed_parts() const {
    std::vector<bool> is_needed(parts_.parts(), false);
    std::vector<bool> is_known(parts_.parts(), false);
    const auto see = [&](const PartAccess& access) {
      if (!is_known[access.part]) is_needed[access.part] = access.access != Access::write;
      is_known[access.part] = true;
    };
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      for (const PartAccess& access : parts_.accesses(i)) see(access);
      for (const PartAccess& access : host_ends_.at(i)) {
        if (access.access == Access::read) see(access);
      }
      for (const PartAccess& access : host_ends_.at(i)) see(access);
    }
    return is_needed;
  }

  void put(std::size_t unit, MemoryId memory, ValueId value) {
    at_[{static_cast<std::uint32_t>(unit), memory}].value = value;
    if (memory != plan_.machine.host) return;
    const auto owed = owed_.find(static_cast<std::uint32_t>(unit));
    if (owed != owed_.end() && owed->second == value) owed_.erase(owed);
  }
  void write_all(std::size_t operation, std::size_t iteration) {
    for (const PartAccess& access : parts_.accesses(operation)) {
      if (access.access == Access::read) continue;
      put(access.part, engines_.memory(id_at<OperationId>(operation)), id(iteration, written_by(operation)));
    }
  }

  /// The value that is current after the operation is in the host, or will be.
  void read_by_host(std::uint32_t part, std::size_t operation, std::size_t iteration) {
    ValueId wanted = 0;
    for (std::size_t i = 0; i <= operation; ++i) {
      for (const PartAccess& access : parts_.accesses(i)) {
        if (access.part == part && access.access != Access::read) wanted = id(iteration, written_by(i));
      }
      for (const PartAccess& access : host_ends_.at(i)) {
        if (i < operation && access.part == part && access.access != Access::read)
          wanted = id(iteration, given_after(i));
      }
    }
    if (wanted == 0) wanted = newest_after(iteration - 1)[part];
    const auto at = at_.find({part, plan_.machine.host});
    if (at == at_.end() || at->second.value != wanted) owed_[part] = wanted;
  }

  void command(const Command& command, std::size_t iteration) {
    if (command.kind == CommandKind::run) {
      const std::size_t operation = index(command.operation);
      const bool of_this = command.position.value_or(static_cast<std::uint32_t>(trace_.operations.size())) > operation;
      return write_all(operation, of_this ? iteration : iteration - 1);
    }
    const std::size_t part = parts_.part(command.tensor, command.piece);
    const auto unit = static_cast<std::uint32_t>(*parts_.unit(part, command.form));
    switch (command.kind) {
      case CommandKind::allocate: at_[{unit, command.memory}] = {*command.offset, 0}; break;
      case CommandKind::release: at_.erase({unit, command.memory}); break;
      case CommandKind::copy: {
        const Link& link = plan_.machine.links[index(command.link)];
        fill(unit, link.to, at_[{unit, link.from}].value, command.offset);
        break;
      }
      case CommandKind::encode:
      case CommandKind::decode: {
        const MemoryId memory = *plan_.machine.engines[index(command.engine)].memory;
        const auto plain = static_cast<std::uint32_t>(part);
        const bool encodes = command.kind == CommandKind::encode;
        fill(encodes ? unit : plain, memory, at_[{encodes ? plain : unit, memory}].value, command.offset);
        break;
      }
      case CommandKind::run: break;
    }
  }
  void fill(std::uint32_t unit, MemoryId memory, ValueId value, std::optional<Bytes> offset) {
    if (offset) at_[{unit, memory}].offset = *offset;
    put(unit, memory, value);
  }

  const Trace& trace_;
  const Plan& plan_;
  const Parts parts_;
  const HostEnds host_ends_;
  const detail::Engines engines_;
  std::vector<ValueId> last_;  // of each part: what its iterations end with; 0: nothing writes it
  std::map<std::pair<std::uint32_t, MemoryId>, Place> at_;
  std::map<std::uint32_t, ValueId> owed_;  // of each part that the host waits for
};

}  // namespace

std::vector<Holding> beginning_of(const Trace& trace, const Plan& plan, const std::vector<ValueId>& newest) {
  const Parts parts(trace, plan);
  std::vector<Holding> holdings;
  std::vector<bool> in_host(parts.parts(), false);
  for (const Place& place : plan.initial) {
    const std::size_t part = parts.part(place.tensor, place.piece);
    const auto unit = static_cast<std::uint32_t>(*parts.unit(part, place.form));
    holdings.push_back({unit, place.memory, place.offset, place.valid ? newest[part] : 0});
    if (unit == part && place.memory == plan.machine.host) in_host[part] = true;
  }
  if (plan.machine.memories[index(plan.machine.host)].bytes) return holdings;
  for (std::size_t part = 0; part < parts.parts(); ++part) {
    if (!in_host[part]) {
      holdings.push_back({static_cast<std::uint32_t>(part), plan.machine.host, Bytes{0}, newest[part]});
    }
  }
  return holdings;
}

Boundary boundary_after(const Trace& trace, const Plan& plan, std::size_t iterations) {
  ValueRun values(trace, plan);
  if (iterations == 0) return values.boundary(0);
  const simulation::Parts parts(trace, plan);
  const std::vector<simulation::Element> elements = simulation::elements_of(trace, plan, parts);
  simulation::EventRun run(trace, plan, parts, elements);
  simulation::RunLog log;
  run.log_to(&log);
  run.record_up_to(iterations - 1);
  // Copies that nothing waits for may be far behind.
  constexpr std::size_t most_behind = 1000;
  while (!run.recorded_all() && run.step(iterations + most_behind)) {
  }
  // What has run ahead comes after everything that has not, if it matters at all.
  for (const simulation::ElementRun& ended : log.ended) {
    if (ended.iteration < iterations) values.end(ended.element, ended.iteration + 1);
  }
  return values.boundary(iterations);
}

}  // namespace swapmm::v2::transition
