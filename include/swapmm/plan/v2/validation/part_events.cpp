// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/validation/part_events.hpp>

#include <algorithm>
#include <tuple>

namespace swapmm::v2::validation {

// Goes through the list of operations twice at most: the values of operations that run again, and the events of the
// iteration. Calls visit(part, event).
template <class Visit>
void PartEvents::for_each_event(const Trace& trace, const Plan& plan, const Parts& parts, Visit&& visit) {
  const std::size_t n = trace.operations.size();
  std::vector<std::vector<std::uint32_t>> again(n);  // commands that run the operation again
  for (std::uint32_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    if (command.kind == CommandKind::run) again[index(command.operation)].push_back(j);
  }
  std::vector<std::vector<std::uint32_t>> given(n);  // inputs that get a value at the end of the operation
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    if (trace.tensors[t].kind != TensorKind::input) continue;
    given[giving_operation(trace.tensors[t], n)].push_back(t);
  }
  std::vector<std::vector<std::uint32_t>> read_by_host(n);
  for (const HostRead& read : trace.host_reads) {
    read_by_host[index(read.after_operation)].push_back(static_cast<std::uint32_t>(read.tensor));
  }
  const auto for_each_part = [&](std::uint32_t tensor, auto&& with) {
    for (std::size_t part = parts.first_part(tensor); part < parts.first_part(tensor + 1); ++part) with(part);
  };

  std::fill(values_.begin(), values_.end(), 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    for (const PartAccess& access : parts.accesses(i)) {
      visit(access.part, PartEvent{i, PartEvent::What::access, access.access, values_[access.part]});
      for (const std::uint32_t j : again[i]) {
        // Whether it is the operation of this iteration or of the one before is decided when it is visited.
        visit(access.part, PartEvent{static_cast<std::uint32_t>(n) + j, PartEvent::What::command, access.access,
                                     values_[access.part]});
      }
    }
    for (const PartAccess& access : parts.accesses(i)) {
      if (access.access != Access::read) ++values_[access.part];
    }
    for (const std::uint32_t tensor : read_by_host[i]) {
      for_each_part(tensor, [&](std::size_t part) {
        visit(part, PartEvent{i, PartEvent::What::host_read, Access::read, values_[part]});
      });
    }
    for (const std::uint32_t tensor : given[i]) {
      for_each_part(tensor, [&](std::size_t part) {
        visit(part, PartEvent{i, PartEvent::What::given, Access::write, values_[part]});
        ++values_[part];
      });
    }
  }
  for (std::uint32_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    if (command.kind == CommandKind::run) continue;
    visit(parts.part(command.tensor, command.piece),
          PartEvent{static_cast<std::uint32_t>(n) + j, PartEvent::What::command, Access::read, 0});
  }
}

PartEvents::PartEvents(const Trace& trace, const Plan& plan, const Parts& parts, const Order& order)
    : first_(parts.parts() + 1), values_(parts.parts()) {
  for_each_event(trace, plan, parts, [&](std::size_t part, const PartEvent&) { ++first_[part + 1]; });
  for (std::size_t part = 0; part < parts.parts(); ++part) first_[part + 1] += first_[part];
  events_.resize(first_.back());
  std::vector<std::size_t> next = first_;
  for_each_event(trace, plan, parts, [&](std::size_t part, const PartEvent& event) { events_[next[part]++] = event; });

  // Operations that run again with a position before them are those of the iteration before.
  const std::size_t n = trace.operations.size();
  const auto runs_before = [&](const PartEvent& event) {
    if (event.what != PartEvent::What::command) return false;
    const Command& command = plan.commands[event.node - n];
    return command.kind == CommandKind::run && command.position.value_or(n) <= index(command.operation);
  };
  const auto key = [&](const PartEvent& event) { return std::tuple(order.rank(event.node), event.node, event.what); };
  for (std::size_t part = 0; part < parts.parts(); ++part) {
    const auto first = events_.begin() + static_cast<std::ptrdiff_t>(first_[part]);
    const auto last = events_.begin() + static_cast<std::ptrdiff_t>(first_[part + 1]);
    for (auto event = first; event != last; ++event) {
      if (runs_before(*event)) event->number -= values_[part];
    }
    std::stable_sort(first, last, [&](const PartEvent& a, const PartEvent& b) { return key(a) < key(b); });
  }
}

}  // namespace swapmm::v2::validation
