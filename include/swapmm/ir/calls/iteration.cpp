// SPDX-License-Identifier: Apache-2.0
#include <swapmm/ir/calls/iteration.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <swapmm/ir/calls/repetition.hpp>
#include <swapmm/ir/calls/window.hpp>

namespace swapmm::calls {
namespace {

using std::chrono::nanoseconds;

/// Buffers that live longer than an iteration, and are others one period later.
std::size_t other_buffers(const Run& run, std::size_t first, std::size_t period) {
  std::size_t count = 0;
  const std::size_t begin = run.operations[first].call;
  for (std::size_t i = first; i < first + period && i + period < run.operations.size(); ++i) {
    const auto& here = run.operations[i].accesses;
    const auto& there = run.operations[i + period].accesses;
    for (std::size_t a = 0; a < here.size() && a < there.size(); ++a) {
      if (here[a].storage == there[a].storage) continue;
      if (run.storages[here[a].storage].created < begin) ++count;
    }
  }
  return count;
}

/// A program may swap buffers back and forth: then two or more periods are one iteration.
std::size_t whole_period(const Run& run, const Repetition& found, std::size_t& others) {
  std::size_t best = 1;
  others = other_buffers(run, found.begin, found.period);
  for (std::size_t k = 2; k <= 8 && others != 0 && 2 * k <= found.count; ++k) {
    const std::size_t left = other_buffers(run, found.begin, k * found.period) / k;
    if (left >= others) continue;
    others = left;
    best = k;
  }
  return best;
}

/// The time of the operation in the middle of all repetitions.
std::optional<nanoseconds> duration(const CallLog& log, const Run& run, std::size_t position, const Repetition& found) {
  std::vector<nanoseconds> times;
  const std::size_t offset = (position - found.begin) % found.period;
  for (std::size_t i = 0; i < found.count; ++i) {
    const std::size_t at = found.begin + i * found.period + offset;
    if (const auto& time = log.calls[run.operations[at].call].duration) times.push_back(*time);
  }
  if (times.empty()) return std::nullopt;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

void fill_durations(Trace& trace, const std::vector<std::optional<nanoseconds>>& known, nanoseconds wall,
                    std::vector<std::string>& notes) {
  std::vector<nanoseconds> told;
  for (const auto& each : known) {
    if (each) told.push_back(*each);
  }
  nanoseconds filled{0};
  std::string how;
  if (!told.empty()) {
    const auto middle = told.begin() + static_cast<std::ptrdiff_t>(told.size() / 2);
    std::nth_element(told.begin(), middle, told.end());
    filled = *middle;
    how = "the median of the others";
  } else {
    filled = wall / static_cast<std::int64_t>(std::max<std::size_t>(1, known.size()));
    how = "an equal share of the time between the calls";
  }
  for (std::size_t i = 0; i < known.size(); ++i) trace.operations[i].duration = known[i].value_or(filled);
  const std::size_t missing = known.size() - told.size();
  if (missing == 0) return;
  notes.push_back("durations: the device told none for " + std::to_string(missing) + " of " +
                  std::to_string(known.size()) + " operations; they have " + how + ", " +
                  std::to_string(filled.count()) + " ns");
}

void note_limits(const CallLog& log, const Run& run, std::size_t first, std::size_t count, const TraceWindow& window,
                 std::vector<std::string>& notes) {
  std::size_t ranges = 0;
  std::size_t foreign = 0;
  std::size_t waits = 0;
  std::set<Object> queues;
  std::set<Object> user_events;
  for (const Call& call : log.calls) {
    if (call.kind == CallKind::create && call.object_kind == ObjectKind::user_event) user_events.insert(call.object);
  }
  std::size_t held = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    const RunOperation& operation = run.operations[i];
    const Call& call = log.calls[operation.call];
    ranges += std::any_of(operation.accesses.begin(), operation.accesses.end(),
                          [](const StorageAccess& access) { return !access.whole; })
                  ? 1
                  : 0;
    foreign += call.kind == CallKind::foreign ? 1 : 0;
    waits += call.waits.empty() ? 0 : 1;
    held +=
        std::any_of(call.waits.begin(), call.waits.end(), [&](Object event) { return user_events.count(event) != 0; })
            ? 1
            : 0;
    if (call.queue != 0) queues.insert(call.queue);
  }
  const auto note = [&](std::size_t number, const std::string& what) {
    if (number != 0) notes.push_back(what);
  };
  note(ranges, "ranges: " + std::to_string(ranges) +
                   " commands use a part of a buffer; the trace has whole tensors, a partial write is an update");
  note(queues.size() > 1 ? 1 : 0,
       "queues: commands of " + std::to_string(queues.size()) + " queues stand in the order of the calls");
  note(waits, "events: " + std::to_string(waits) + " commands wait for events; the trace has one order for all");
  note(held, "user events: " + std::to_string(held) + " commands wait for the program itself");
  note(foreign,
       "images and others: " + std::to_string(foreign) +
           " commands on what is not swapped (images, shared virtual memory, functions of the host); their time is "
           "not in the trace unless they use buffers");
  note(window.skipped_reads,
       "host reads: " + std::to_string(window.skipped_reads) + " stand before the first operation and are left out");
  note(window.unknown_writes,
       "accesses: " + std::to_string(window.unknown_writes) +
           " times a kernel may write a buffer; the trace says that it updates it, as long as nothing "
           "proves a whole write");
}

}  // namespace

Result<RecordedIteration> recorded_iteration(const CallLog& log, const Run& run, std::string name) {
  std::vector<std::uint64_t> tokens;
  std::vector<bool> reads;
  tokens.reserve(run.operations.size());
  reads.reserve(run.operations.size());
  for (const RunOperation& operation : run.operations) {
    tokens.push_back(operation.token);
    reads.push_back(operation.host_reads);
  }
  std::optional<Repetition> found = find_repetition(tokens, reads);
  if (!found)
    return Problem{"no sequence of commands repeats among the " + std::to_string(tokens.size()) + " of the run"};
  RecordedIteration result;
  std::size_t others = 0;
  const std::size_t periods = whole_period(run, *found, others);
  const std::size_t length = periods * found->period;
  result.repetitions = found->count / periods;
  result.covered = found->covered;
  result.operations = length;
  // One of the middle: what comes before and after it is like it.
  result.first = found->begin + (result.repetitions - 1) / 2 * length;
  const TraceWindow window = make_window(log, run, result.first, length);
  if (window.trace.operations.empty()) return Problem{"the repeated sequence has no command that uses a buffer"};
  result.trace = window.trace;
  result.trace.name = std::move(name);
  if (others != 0) {
    result.notes.push_back("buffers: " + std::to_string(others) +
                           " uses are of other buffers in the next repetition; the trace has those of one repetition");
  }
  note_limits(log, run, result.first, length, window, result.notes);
  std::vector<std::optional<nanoseconds>> known;
  for (const std::size_t operation : window.operations) known.push_back(duration(log, run, operation, *found));
  const Call& last = log.calls[run.operations[result.first + length - 1].call];
  fill_durations(result.trace, known, last.end - log.calls[run.operations[result.first].call].begin, result.notes);
  if (const Check checked = check_trace(result.trace); !checked) return checked.problem();
  return result;
}

}  // namespace swapmm::calls
