// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/validation/tensor_events.hpp>

#include <algorithm>
#include <utility>

namespace swapmm::validation {
namespace {

/// For each value, whether its tensor's next value is made of it, by an update.
std::vector<bool> updated_values(const Trace& trace, const Graph& graph) {
  std::vector<bool> updated(graph.data.size());
  std::vector<const DataNode*> next(trace.tensors.size());
  for (std::size_t d = graph.data.size(); d-- > 0;) {
    const DataNode& value = graph.data[d];
    const DataNode*& after = next[index(value.tensor)];
    updated[d] = after != nullptr && !value.used_by.empty() && value.used_by.back() == after->made_by;
    after = &value;
  }
  return updated;
}

/// Calls visit(event) for all that the program does to the values, for each tensor in order.
template <class Visit>
void for_each_event(const Trace& trace, const Graph& graph, const std::vector<bool>& updated, Visit&& visit) {
  std::vector<bool> is_updated(trace.tensors.size());  // the value before
  for (std::size_t d = 0; d < graph.data.size(); ++d) {
    const DataNode& value = graph.data[d];
    const auto tensor = static_cast<std::uint32_t>(value.tensor);
    const auto event = [&](OperationId operation, Event what) {
      visit(TensorEvent{tensor, static_cast<std::uint32_t>(operation), what});
    };
    if (value.made_by) event(*value.made_by, is_updated[tensor] ? Event::update : Event::write);
    is_updated[tensor] = updated[d];
    auto host_read = value.host_reads.begin();
    const auto reads_end = value.used_by.end() - (updated[d] ? 1 : 0);  // the update is an event of the next value
    for (auto use = value.used_by.begin(); use != reads_end; ++use) {
      for (; host_read != value.host_reads.end() && *host_read < *use; ++host_read) event(*host_read, Event::host_read);
      event(*use, Event::read);
    }
    for (; host_read != value.host_reads.end(); ++host_read) event(*host_read, Event::host_read);
  }
}

}  // namespace

TensorEvents::TensorEvents(const Trace& trace, const Graph& graph, const Plan& plan, const HappensBefore& order) {
  collect_events(trace, graph);
  collect_commands(trace, plan, order);
}

void TensorEvents::collect_events(const Trace& trace, const Graph& graph) {
  const std::vector<bool> updated = updated_values(trace, graph);
  const auto is_input = [&](std::size_t t) { return trace.tensors[t].kind == TensorKind::input; };
  first_event_.assign(trace.tensors.size() + 1, 0);
  for_each_event(trace, graph, updated, [&](const TensorEvent& event) { ++first_event_[event.tensor + 1]; });
  for (const LingeringValue& value : trace.lingering) ++first_event_[index(value.tensor) + 1];
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    first_event_[t + 1] += first_event_[t] + (is_input(t) ? 1U : 0U);
  }
  events_.resize(first_event_.back());
  std::vector<std::size_t> next = first_event_;
  for_each_event(trace, graph, updated, [&](const TensorEvent& event) { events_[next[event.tensor]++] = event; });
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    if (is_input(t)) insert_given(trace, t);
  }
  insert_forgotten(trace);
}

void TensorEvents::insert_forgotten(const Trace& trace) {
  for (std::size_t i = 0; i < trace.lingering.size();) {
    const std::size_t tensor = index(trace.lingering[i].tensor);
    const auto first = events_.begin() + static_cast<std::ptrdiff_t>(first_event_[tensor]);
    auto last = events_.begin() + static_cast<std::ptrdiff_t>(first_event_[tensor + 1]);
    std::size_t end = i;
    while (end < trace.lingering.size() && index(trace.lingering[end].tensor) == tensor) ++end;
    last -= static_cast<std::ptrdiff_t>(end - i);
    for (; i < end; ++i, ++last) {
      const auto until = static_cast<std::uint32_t>(trace.lingering[i].until % trace.operations.size());
      const auto at = std::lower_bound(
          first, last, until, [](const TensorEvent& a, std::uint32_t operation) { return a.operation < operation; });
      std::move_backward(at, last, last + 1);
      *at = {static_cast<std::uint32_t>(tensor), until, Event::forgotten};
    }
  }
}

// An input that is available from operation 0 gets the value of the next iteration at the end of this one.
void TensorEvents::insert_given(const Trace& trace, std::size_t tensor) {
  const std::size_t giver = giving_operation(trace.tensors[tensor], trace.operations.size());
  const TensorEvent given{static_cast<std::uint32_t>(tensor), static_cast<std::uint32_t>(giver), Event::given};
  const auto first = events_.begin() + static_cast<std::ptrdiff_t>(first_event_[tensor]);
  const auto last = events_.begin() + static_cast<std::ptrdiff_t>(first_event_[tensor + 1]) - 1;
  const auto at = std::upper_bound(
      first, last, given, [](const TensorEvent& a, const TensorEvent& b) { return a.operation < b.operation; });
  std::move_backward(at, last, last + 1);
  *at = given;
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
