// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <swapmm/ir/graph.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/validation/happens_before.hpp>

namespace swapmm::validation {

/// An event: something that the program itself does to a tensor in one iteration.
enum class Event : std::uint8_t {
  read,
  write,
  update,
  host_read,  ///< from here on, the host needs the value that the tensor has here
  given,      ///< the host gives an input its next value
  forgotten,  ///< from here on, the value may be lost: it has lingered until now
};

[[nodiscard]] constexpr bool is_access(Event event) {
  return event == Event::read || event == Event::write || event == Event::update;
}

struct TensorEvent {
  std::uint32_t tensor = 0;
  /// The operation. Accesses happen in it; host_read, given and forgotten at its end, but forgotten right before the
  /// access if the operation overwrites the value.
  std::uint32_t operation = 0;
  Event event = Event::read;
};

/// The events and the commands of each tensor, each in the order in which they happen in an iteration. The events are
/// those of the tensor's values, as the graph of the trace has them.
class TensorEvents {
 public:
  /// `graph` is that of `trace`.
  TensorEvents(const Trace& trace, const Graph& graph, const Plan& plan, const HappensBefore& order);

  [[nodiscard]] std::span<const TensorEvent> events(std::size_t tensor) const {
    return {events_.data() + first_event_[tensor], first_event_[tensor + 1] - first_event_[tensor]};
  }
  /// Sorted by HappensBefore::rank, which is their order if they have one.
  [[nodiscard]] std::span<const std::uint32_t> commands(std::size_t tensor) const {
    return {commands_.data() + first_command_[tensor], first_command_[tensor + 1] - first_command_[tensor]};
  }

 private:
  void collect_events(const Trace& trace, const Graph& graph);
  void insert_given(const Trace& trace, std::size_t tensor);
  void insert_forgotten(const Trace& trace);
  void collect_commands(const Trace& trace, const Plan& plan, const HappensBefore& order);

  std::vector<std::size_t> first_event_;
  std::vector<TensorEvent> events_;
  std::vector<std::size_t> first_command_;
  std::vector<std::uint32_t> commands_;
};

}  // namespace swapmm::validation
