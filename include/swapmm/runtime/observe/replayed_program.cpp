// SPDX-License-Identifier: Apache-2.0
#include <swapmm/runtime/observe/replayed_program.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace swapmm::runtime {
namespace {

/// Appends an operation of `from`, with its accesses.
void append_operation(Program& to, const Program& from, std::uint32_t operation) {
  to.first_access.push_back(static_cast<std::uint32_t>(to.accesses.size()));
  to.accesses.insert(to.accesses.end(), from.accesses.begin() + from.first_access[operation],
                     from.accesses.begin() + from.first_access[operation + 1]);
  to.scratch_roles.push_back(from.scratch_roles[operation]);
  to.replayable.push_back(from.is_replayable(operation));
}

}  // namespace

Trace trace_with_replayable(const Program& program) {
  Trace trace = program.trace;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) trace.operations[i].replayable = program.is_replayable(i);
  return trace;
}

bool may_have_replays(const Program& program) {
  const auto ends = std::ranges::count(program.events, Event::What::end_of_iteration, &Event::what);
  return ends == 1 && std::ranges::count(program.replayable, true) != 0;
}

Result<Program> with_replays(const Program& program, std::span<const Replay> replays) {
  const WaysBack ways{{replays.begin(), replays.end()}, {}};
  Result<WrittenTrace> written = with_ways(trace_with_replayable(program), ways);
  if (!written) return written.problem();
  Program out;
  out.trace = std::move(written->trace);
  out.roles = program.roles;
  out.by_producer = program.by_producer;
  for (const WrittenStep& step : written->steps) {
    out.replays.runs.push_back(step.which);
    out.replays.is_replay.push_back(step.kind == WrittenStep::Kind::replay);
  }
  out.waits = program.waits;
  out.replays.times.assign(program.trace.operations.size(), 0);
  std::uint32_t next = 0;
  for (const Event& event : program.events) {
    if (event.what != Event::What::operation) {
      out.events.push_back(event);
      continue;
    }
    for (; out.replays.is_replay[next]; ++next) {
      out.events.push_back({Event::What::replay, next});
      ++out.replays.times[out.replays.runs[next]];
      append_operation(out, program, out.replays.runs[next]);
    }
    out.events.push_back({Event::What::operation, next++});
    append_operation(out, program, event.index);
  }
  out.first_access.push_back(static_cast<std::uint32_t>(out.accesses.size()));
  return out;
}

Trace with_times_of(const Trace& observed, const Program& replayed) {
  Trace trace = replayed.trace;
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) trace.tensors[t].copied = observed.tensors[t].copied;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    trace.operations[i].duration = observed.operations[replayed.replays.runs[i]].duration;
  }
  return trace;
}

}  // namespace swapmm::runtime
