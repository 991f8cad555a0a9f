// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/validation/tensor_events.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace swapmm::validation {
namespace {

// The events at the ends of operations. An input that is available from operation 0 gets the value of the next
// iteration at the end of this one.
std::vector<TensorEvent> events_at_ends(const Trace& trace) {
  std::vector<TensorEvent> events;
  for (const HostRead& read : trace.host_reads) {
    events.push_back(
        {static_cast<std::uint32_t>(read.tensor), static_cast<std::uint32_t>(read.after_operation), Event::host_read});
  }
  const auto n = static_cast<std::uint32_t>(trace.operations.size());
  for (std::uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const TraceTensor& tensor = trace.tensors[t];
    if (tensor.kind != TensorKind::input) continue;
    events.push_back({t, (tensor.available_from > 0 ? tensor.available_from : n) - 1, Event::given});
  }
  std::sort(events.begin(), events.end(), [](const TensorEvent& a, const TensorEvent& b) {
    return std::tuple(a.operation, a.event, a.tensor) < std::tuple(b.operation, b.event, b.tensor);
  });
  return events;
}

}  // namespace

TensorEvents::TensorEvents(const Trace& trace, const Plan& plan, const HappensBefore& order) {
  collect_events(trace);
  collect_commands(trace, plan, order);
}

void TensorEvents::collect_events(const Trace& trace) {
  const std::vector<TensorEvent> at_ends = events_at_ends(trace);
  // Visits all events in the order of operations, so that a stable counting sort by tensor keeps it.
  const auto for_each = [&](auto&& visit) {
    auto next = at_ends.begin();
    for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
      for_each_access(trace.operations[i], [&](TensorId id, Access access) {
        const Event event = access == Access::read    ? Event::read
                            : access == Access::write ? Event::write
                                                      : Event::update;
        visit(TensorEvent{static_cast<std::uint32_t>(id), i, event});
      });
      for (; next != at_ends.end() && next->operation == i; ++next) visit(*next);
    }
  };
  first_event_.assign(trace.tensors.size() + 1, 0);
  for_each([&](const TensorEvent& event) { ++first_event_[event.tensor + 1]; });
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) first_event_[t + 1] += first_event_[t];
  events_.resize(first_event_.back());
  std::vector<std::size_t> next = first_event_;
  for_each([&](const TensorEvent& event) { events_[next[event.tensor]++] = event; });
}

void TensorEvents::collect_commands(const Trace& trace, const Plan& plan, const HappensBefore& order) {
  first_command_.assign(trace.tensors.size() + 1, 0);
  for (const Command& command : plan.commands) ++first_command_[index(command.tensor) + 1];
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) first_command_[t + 1] += first_command_[t];
  commands_.resize(plan.commands.size());
  std::vector<std::size_t> next = first_command_;
  for (std::uint32_t j = 0; j < plan.commands.size(); ++j) {
    commands_[next[index(plan.commands[j].tensor)]++] = j;
  }
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(order.rank(a), a) < std::pair(order.rank(b), b);
  };
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const auto first = commands_.begin() + static_cast<std::ptrdiff_t>(first_command_[t]);
    const auto last = commands_.begin() + static_cast<std::ptrdiff_t>(first_command_[t + 1]);
    if (!std::is_sorted(first, last, earlier)) std::sort(first, last, earlier);
  }
}

}  // namespace swapmm::validation
