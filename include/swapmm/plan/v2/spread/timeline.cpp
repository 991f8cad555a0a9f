// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/spread/timeline.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include <swapmm/plan/v2/baselines/paths.hpp>
#include <swapmm/plan/v2/baselines/uses.hpp>
#include <swapmm/plan/v2/engines.hpp>

namespace swapmm::v2::planning {
namespace {

using std::chrono::nanoseconds;

std::optional<nanoseconds> time_on_link(const Machine& machine, MemoryId from, MemoryId to, Bytes bytes) {
  const std::optional<LinkId> link = fastest_link(machine, from, to);
  if (!link) return std::nullopt;
  const Link& it = machine.links[index(*link)];
  const double seconds = static_cast<double>(bytes.value) / static_cast<double>(rate_alone(machine, it));
  constexpr double longest = 1e18;
  return it.latency + nanoseconds{static_cast<std::int64_t>(std::min(seconds * 1e9, longest))};
}

class TimelineMaker {
 public:
  TimelineMaker(const Trace& trace, const Machine& machine)
      : trace_(trace),
        machine_(machine),
        engines_(trace, machine),
        uses_(trace),
        reads_at_(trace.operations.size()),
        states_(trace.tensors.size()),
        free_(engine_count(machine)) {
    line_.spans.resize(trace.operations.size());
    for (const HostRead& read : trace.host_reads) reads_at_[index(read.after_operation)].push_back(read.tensor);
  }

  Result<Timeline> run(const std::vector<Span>& earliest) {
    // The host gives some inputs at the end of the operation that is the last one of the list.
    const bool last_is_last = std::ranges::any_of(trace_.tensors, [](const TraceTensor& tensor) {
      return tensor.kind == TensorKind::input && tensor.available_from == 0;
    });
    nanoseconds latest_start{0};
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      const auto id = id_at<OperationId>(i);
      nanoseconds start = free_[index(engines_.engine(id))];
      if (!earliest.empty()) start = std::max(start, earliest[i].start);
      if (last_is_last && i + 1 == trace_.operations.size()) start = std::max(start, latest_start);
      if (const auto problem = look_at_tensors(id, start)) return *problem;
      const nanoseconds end = start + trace_.operations[i].duration;
      line_.spans[i] = {start, end};
      free_[index(engines_.engine(id))] = end;
      line_.end = std::max(line_.end, end);
      latest_start = std::max(latest_start, start);
      note(id, line_.spans[i]);
    }
    line_.order.resize(trace_.operations.size());
    for (std::size_t i = 0; i < line_.order.size(); ++i) line_.order[i] = id_at<OperationId>(i);
    std::ranges::stable_sort(line_.order, {}, [this](OperationId id) { return line_.spans[index(id)].start; });
    for (const TraceTensor& tensor : trace_.tensors) {
      if (tensor.available_from == 0 || index(line_.order.back()) + 1 != tensor.available_from) continue;
      return Problem{"the host gives an input at the end of the iteration that no operation uses"};
    }
    return std::move(line_);
  }

 private:
  struct Use {
    MemoryId memory{};
    Span span;
  };
  /// What has happened to a tensor so far in the iteration.
  struct State {
    std::optional<Use> writer;  // the last one
    std::vector<Use> since{};   // reads of what it wrote, or of what the tensor began with
  };

  /// Moves the start to where the operation may begin.
  std::optional<Problem> look_at_tensors(OperationId id, nanoseconds& start) {
    const MemoryId memory = engines_.memory(id);
    std::optional<Problem> problem;
    for_each_access(trace_.operations[index(id)], [&](TensorId tensor, Access access) {
      const TraceTensor& accessed = trace_.tensors[index(tensor)];
      const State& state = states_[index(tensor)];
      if (state.writer) {
        const bool needs_value = access != Access::write || !uses_.writes_whole(tensor, id);
        const MemoryId from = state.writer->memory;
        if (from == memory) {
          start = std::max(start, state.writer->span.end);
        } else if (!needs_value) {
          start = std::max(start, state.writer->span.start);
        } else if (const auto time = hand_over_time(machine_, from, memory, accessed.bytes)) {
          start = std::max(start, state.writer->span.end + *time);
        } else {
          problem = Problem{"there is no way for tensor " + std::to_string(index(tensor)) + " \"" + accessed.name +
                            "\" from memory " + machine_.memories[index(from)].name + " to " +
                            machine_.memories[index(memory)].name};
        }
      } else if (accessed.kind == TensorKind::input && accessed.available_from > 0) {
        start = std::max(start, line_.spans[accessed.available_from - 1].end);
      }
      if (access == Access::read) return;
      for (const Use& use : state.since) {
        start = std::max(start, use.memory == memory ? use.span.end : use.span.start);
      }
    });
    for (const TensorId tensor : reads_at_[index(id)]) {
      const State& state = states_[index(tensor)];
      if (state.writer) start = std::max(start, state.writer->span.start);
    }
    return problem;
  }

  void note(OperationId id, const Span& span) {
    const Use use{engines_.memory(id), span};
    for_each_access(trace_.operations[index(id)], [&](TensorId tensor, Access access) {
      State& state = states_[index(tensor)];
      if (access == Access::read) {
        state.since.push_back(use);
      } else {
        state = {use};
      }
    });
    for (const TensorId tensor : reads_at_[index(id)]) states_[index(tensor)].since.push_back({machine_.host, span});
  }

  const Trace& trace_;
  const Machine& machine_;
  const detail::Engines engines_;
  const Uses uses_;
  std::vector<std::vector<TensorId>> reads_at_;  // by the host, of each operation
  std::vector<State> states_;                    // of each tensor
  std::vector<nanoseconds> free_;                // when each engine has ended what it has so far
  Timeline line_;
};

}  // namespace

std::optional<nanoseconds> hand_over_time(const Machine& machine, MemoryId from, MemoryId to, Bytes bytes) {
  const std::optional<nanoseconds> direct = time_on_link(machine, from, to, bytes);
  const std::optional<nanoseconds> out = time_on_link(machine, from, machine.host, bytes);
  const std::optional<nanoseconds> in = time_on_link(machine, machine.host, to, bytes);
  if (!out || !in) return direct;
  return direct ? std::min(*direct, *out + *in) : *out + *in;
}

Result<Timeline> make_timeline(const Trace& trace, const Machine& machine, const std::vector<Span>& earliest) {
  return TimelineMaker(trace, machine).run(earliest);
}

OrderedProgram in_order(const Trace& trace, Timeline line) {
  OrderedProgram result{trace, std::move(line)};
  const std::vector<OperationId>& order = result.line.order;
  const std::vector<Span> spans = std::exchange(result.line.spans, {});
  std::vector<OperationId> now(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    now[index(order[i])] = id_at<OperationId>(i);
    result.trace.operations[i] = trace.operations[index(order[i])];
    result.line.spans.push_back(spans[index(order[i])]);
  }
  for (TraceTensor& tensor : result.trace.tensors) {
    if (tensor.available_from > 0) {
      tensor.available_from = static_cast<std::uint32_t>(now[tensor.available_from - 1]) + 1;
    }
  }
  for (HostRead& read : result.trace.host_reads) read.after_operation = now[index(read.after_operation)];
  for (AccessRange& range : result.trace.ranges) range.operation = now[index(range.operation)];
  std::ranges::sort(result.trace.ranges, {},
                    [](const AccessRange& range) { return std::tuple(range.operation, range.tensor); });
  return result;
}

}  // namespace swapmm::v2::planning
