// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/hand_over.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::planning {
namespace {

class DirectCopies {
 public:
  DirectCopies(const Trace& trace, const Machine& machine, SerialPlan& plan)
      : trace_(trace),
        machine_(machine),
        plan_(plan),
        engines_(trace, machine),
        places_(trace.tensors.size()),
        uses_(trace),
        is_read_by_host_(trace.tensors.size(), false) {
    for (const HostRead& read : trace.host_reads) is_read_by_host_[index(read.tensor)] = true;
    for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
      if (!machine.memories[index(machine.host)].bytes) put(id_at<TensorId>(t), machine.host, 0);
      if (trace.tensors[t].kind != TensorKind::input) continue;
      is_read_by_host_[t] = true;  // the host has it for a reason of its own
    }
    for (const Place& place : plan.initial) put(place.tensor, place.memory, place.valid ? 0 : nothing);
  }

  std::vector<std::uint32_t> run() {
    walk(false);
    walk(true);  // what the first iteration leaves is what each one begins with
    return leave_out();
  }

 private:
  static constexpr std::int64_t nothing = -1;
  struct Held {
    MemoryId memory{};
    std::int64_t value = nothing;
  };

  void put(TensorId tensor, MemoryId memory, std::int64_t value) {
    std::vector<Held>& places = places_[index(tensor)];
    const auto found = std::ranges::find(places, memory, &Held::memory);
    if (found != places.end()) {
      found->value = value;
    } else {
      places.push_back({memory, value});
    }
  }
  [[nodiscard]] std::int64_t value_in(TensorId tensor, MemoryId memory) const {
    const auto found = std::ranges::find(places_[index(tensor)], memory, &Held::memory);
    return found == places_[index(tensor)].end() ? nothing : found->value;
  }

  void walk(bool changes_links) {
    std::size_t next = 0;
    for (std::uint32_t i = 0; i <= trace_.operations.size(); ++i) {
      for (; next < plan_.commands.size() && plan_.before[next] == i; ++next) run(plan_.commands[next], changes_links);
      if (i == trace_.operations.size()) break;
      for_each_access(trace_.operations[i], [&](TensorId tensor, Access access) {
        if (access != Access::read) put(tensor, engines_.memory(OperationId{i}), ++values_);
      });
      for (const TensorId tensor : uses_.given_at(OperationId{i})) put(tensor, machine_.host, ++values_);
    }
  }

  void run(Command& command, bool changes_links) {
    if (command.kind == CommandKind::allocate || command.kind == CommandKind::release) {
      put(command.tensor, command.memory, nothing);
      return;
    }
    if (command.kind != CommandKind::copy) return;
    const MemoryId to = machine_.links[index(command.link)].to;
    const std::int64_t value = value_in(command.tensor, machine_.links[index(command.link)].from);
    if (changes_links && value != nothing && to != machine_.host) take_direct_link(command, to, value);
    put(command.tensor, to, value);
  }

  void take_direct_link(Command& command, MemoryId to, std::int64_t value) const {
    const auto rate = [&](LinkId id) { return rate_alone(machine_, machine_.links[index(id)]); };
    for (const Held& held : places_[index(command.tensor)]) {
      if (held.value != value || held.memory == to || held.memory == machine_.links[index(command.link)].from) continue;
      const std::optional<LinkId> link = fastest_link(machine_, held.memory, to);
      if (link && rate(*link) >= rate(command.link)) command.link = *link;
    }
  }

  /// What happens in the host to a tensor that only copies and operations use there.
  struct Event {
    bool puts = false;
    std::optional<std::uint32_t> copy{};  // a copy that could be left out
  };

  std::vector<std::uint32_t> leave_out() {
    std::vector<std::vector<Event>> events(trace_.tensors.size());
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i <= trace_.operations.size(); ++i) {
      for (; next < plan_.commands.size() && plan_.before[next] == i; ++next) {
        const Command& command = plan_.commands[next];
        if (command.kind != CommandKind::copy) continue;
        const Link& link = machine_.links[index(command.link)];
        if (link.from == machine_.host) events[index(command.tensor)].push_back({});
        if (link.to == machine_.host && !command.offset) events[index(command.tensor)].push_back({true, next});
      }
      if (i == trace_.operations.size() || engines_.memory(OperationId{i}) != machine_.host) continue;
      for_each_access(trace_.operations[i], [&](TensorId tensor, Access) { events[index(tensor)].push_back({}); });
    }
    std::vector<bool> stays(plan_.commands.size(), true);
    for (std::size_t t = 0; t < events.size(); ++t) {
      if (is_read_by_host_[t]) continue;
      const std::vector<Event>& all = events[t];
      for (std::size_t e = 0; e < all.size(); ++e) {
        if (all[e].copy && all[(e + 1) % all.size()].puts) stays[*all[e].copy] = false;
      }
    }
    std::vector<std::uint32_t> kept;
    SerialPlan result{{}, {}, std::move(plan_.initial)};
    for (std::uint32_t c = 0; c < plan_.commands.size(); ++c) {
      if (!stays[c]) continue;
      kept.push_back(c);
      result.commands.push_back(std::move(plan_.commands[c]));
      result.before.push_back(plan_.before[c]);
    }
    plan_ = std::move(result);
    return kept;
  }

  const Trace& trace_;
  const Machine& machine_;
  SerialPlan& plan_;
  const detail::Engines engines_;
  std::int64_t values_ = 0;
  std::vector<std::vector<Held>> places_;  // of each tensor
  const Uses uses_;
  std::vector<bool> is_read_by_host_;  // of each tensor
};

}  // namespace

std::vector<std::uint32_t> hand_over_directly(const Trace& trace, const Machine& machine, SerialPlan& plan) {
  return DirectCopies(trace, machine, plan).run();
}

}  // namespace swapmm::v2::planning
