// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/changed_trace.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/ir/graph.hpp>
#include <swapmm/plan/step_times.hpp>

namespace swapmm {
namespace {

class ChangedTrace {
 public:
  ChangedTrace(const Trace& trace, const Plan& plan)
      : trace_(trace), plan_(plan), times_(step_times(trace, plan)), changed_{trace.name, trace.tensors, {}, {}} {
    reduced_.resize(trace.tensors.size());
    reductions_.resize(trace.tensors.size());
    // What lingers into the next iteration may be reduced there.
    for (const LingeringValue& value : trace.lingering) {
      if (value.until >= trace.operations.size()) changed_.tensors[index(value.tensor)].kind = TensorKind::persistent;
    }
  }

  Trace build() && {
    const std::vector<Place> places = places_of_commands();
    std::vector<std::size_t> order(plan_.commands.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return places[a] < places[b]; });
    std::vector<bool> came_in(trace_.tensors.size());
    for (const Resident& resident : plan_.initial) came_in[index(resident.tensor)] = true;
    auto next = order.begin();
    std::vector<std::uint32_t> moved_to(trace_.operations.size());  // positions in the changed trace
    for (std::uint32_t i = 0; i <= trace_.operations.size(); ++i) {
      for (; next != order.end() && places[*next].operation == i; ++next) add_move(*next, came_in);
      if (i == trace_.operations.size()) break;
      moved_to[i] = static_cast<std::uint32_t>(changed_.operations.size());
      changed_.operations.push_back(trace_.operations[i]);
    }
    for (TraceTensor& tensor : changed_.tensors) {
      if (tensor.kind == TensorKind::input) tensor.available_from = moved_to[tensor.available_from];
    }
    for (const DataNode& value : make_graph(trace_).data) {
      for (const OperationId read : value.host_reads) changed_.host_reads.push_back(moved_read(value, read, moved_to));
    }
    std::stable_sort(changed_.host_reads.begin(), changed_.host_reads.end(),
                     [](const HostRead& a, const HostRead& b) { return a.after_operation < b.after_operation; });
    return std::move(changed_);
  }

 private:
  /// Behind all that a command waits for: before an operation, and behind so many commands that wait for each other
  /// there.
  struct Place {
    std::uint32_t operation = 0;
    std::uint32_t depth = 0;
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  Place place_behind(const Wait& wait, const std::vector<Place>& places) const {
    if (wait.on == Wait::On::operation) {
      return {wait.index < 0 ? 0 : static_cast<std::uint32_t>(wait.index) + 1, 0};
    }
    if (wait.previous) return {};
    const Place& other = places[static_cast<std::size_t>(wait.index)];
    return {other.operation, other.depth + 1};
  }

  std::vector<Place> places_of_commands() const {
    std::vector<Place> places(plan_.commands.size());
    for (bool again = true; again;) {  // a command may wait for one that is behind it in the list
      again = false;
      for (std::size_t c = 0; c < places.size(); ++c) {
        for (const Wait& wait : plan_.commands[c].after) {
          const Place behind = place_behind(wait, places);
          if (behind <= places[c]) continue;
          places[c] = behind;
          again = true;
        }
      }
    }
    return places;
  }

  TensorId reduced_form(TensorId tensor) {
    std::optional<TensorId>& known = reduced_[index(tensor)];
    if (!known) {
      known = id_at<TensorId>(changed_.tensors.size());
      const TraceTensor& whole = trace_.tensors[index(tensor)];
      changed_.tensors.push_back({whole.name + ", reduced", Bytes{0}, whole.kind, whole.available_from});
    }
    return *known;
  }

  // The host reads the reduced form of the value, as soon as there is one.
  HostRead moved_read(const DataNode& value, OperationId read, const std::vector<std::uint32_t>& moved_to) {
    const std::uint32_t after = moved_to[index(read)];
    if (!value.made_by) return {reduced_form(value.tensor), id_at<OperationId>(after)};  // the host has it
    const std::vector<std::uint32_t>& reductions = reductions_[index(value.tensor)];
    const auto copied = std::upper_bound(reductions.begin(), reductions.end(), moved_to[index(*value.made_by)]);
    if (copied == reductions.end()) return {value.tensor, id_at<OperationId>(after)};  // in the next iteration
    return {reduced_form(value.tensor), id_at<OperationId>(std::max(after, *copied))};
  }

  void add_move(std::size_t command, std::vector<bool>& came_in) {
    const CommandKind kind = plan_.commands[command].kind;
    const TensorId tensor = plan_.commands[command].tensor;
    const std::string& name = trace_.tensors[index(tensor)].name;
    if (kind == CommandKind::allocate) came_in[index(tensor)] = true;
    if (kind == CommandKind::swap_out) {
      reductions_[index(tensor)].push_back(static_cast<std::uint32_t>(changed_.operations.size()));
      changed_.operations.push_back({"reduce " + name, times_.commands[command], {tensor}, {reduced_form(tensor)}, {}});
    } else if (kind == CommandKind::swap_in) {
      const bool is_arrival = trace_.tensors[index(tensor)].kind == TensorKind::input && !came_in[index(tensor)];
      came_in[index(tensor)] = true;
      if (is_arrival) return;
      changed_.operations.push_back(
          {"restore " + name, times_.commands[command], {reduced_form(tensor)}, {tensor}, {}});
    }
  }

  const Trace& trace_;
  const Plan& plan_;
  StepTimes times_;
  Trace changed_;
  std::vector<std::optional<TensorId>> reduced_;
  std::vector<std::vector<std::uint32_t>> reductions_;  ///< per tensor: their positions in the changed trace
};

}  // namespace

Trace changed_trace(const Trace& trace, const Plan& plan) { return ChangedTrace(trace, plan).build(); }

}  // namespace swapmm
