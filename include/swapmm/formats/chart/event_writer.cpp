// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/chart/event_writer.hpp>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm::chart {
namespace {

using std::chrono::nanoseconds;

/// Viewers treat thread 0 of process 0 as the idle thread of the system, so both numbers begin at 1.
constexpr std::size_t first_thread = 1;

class EventWriter {
 public:
  EventWriter(std::ostream& out, nanoseconds origin) : out_(out), origin_(origin) {}

  void write(const Chart& chart);

 private:
  void write_names(const Chart& chart);
  void write_span(const Chart& chart, const Span& span);
  void write_counter(std::string_view name, nanoseconds time, Bytes value);
  void write_levels(const Memory& memory, nanoseconds end);

  /// Begins an event: `{"ph": ..., "name": ..., "pid": ..., "tid": ...`. The event stays open.
  void begin(std::string_view phase, std::string_view name, std::size_t thread);
  void member(std::string_view name, nanoseconds time);
  void member(std::string_view name, std::uint64_t number);
  /// Writes `, "args": {...}` with one member, and ends the event.
  void arguments(std::string_view name, std::string_view text);
  void arguments(std::string_view name, std::uint64_t number);
  void key(std::string_view before, std::string_view name);
  void end();

  std::ostream& out_;
  nanoseconds origin_;
  std::size_t process_ = 0;
  bool first_ = true;
  std::string line_;
};

void EventWriter::begin(std::string_view phase, std::string_view name, std::size_t thread) {
  line_ = first_ ? "\n  {\"ph\": \"" : ",\n  {\"ph\": \"";
  first_ = false;
  line_ += phase;
  line_ += "\", \"name\": ";
  json::append_text(line_, name);
  member("pid", process_);
  member("tid", thread);
}

void EventWriter::key(std::string_view before, std::string_view name) {
  line_ += before;
  line_ += name;
  line_ += "\": ";
}

void EventWriter::member(std::string_view name, nanoseconds time) {
  key(", \"", name);
  line_ += text::fixed_point(time.count(), 1000, 3);
}

void EventWriter::member(std::string_view name, std::uint64_t number) {
  key(", \"", name);
  json::append_number(line_, number);
}

void EventWriter::arguments(std::string_view name, std::string_view text) {
  key(", \"args\": {\"", name);
  json::append_text(line_, text);
  line_ += '}';
  end();
}

void EventWriter::arguments(std::string_view name, std::uint64_t number) {
  key(", \"args\": {\"", name);
  json::append_number(line_, number);
  line_ += '}';
  end();
}

void EventWriter::end() { out_ << line_ << '}'; }

void EventWriter::write_names(const Chart& chart) {
  begin("M", "process_name", 0);
  std::string name(chart.title);
  if (!chart.machine.empty()) name += " on " + std::string(chart.machine);
  arguments("name", name);
  begin("M", "process_sort_index", 0);
  arguments("sort_index", process_);
  for (std::size_t row = 0; row < chart.rows.size(); ++row) {
    const std::size_t thread = first_thread + row;
    begin("M", "thread_name", thread);
    arguments("name", chart.rows[row].name);
    begin("M", "thread_sort_index", thread);
    arguments("sort_index", thread);
  }
}

void EventWriter::write_span(const Chart& chart, const Span& span) {
  begin("X", span.name, first_thread + span.row);
  if (const std::string_view category = chart.kinds[span.kind].category; !category.empty()) {
    key(", \"", "cat");
    json::append_text(line_, category);
  }
  member("ts", span.start - origin_);
  member("dur", span.end - span.start);
  if (chart.rows[span.row].shows_bytes) {
    arguments("bytes", span.bytes.value);
  } else {
    end();
  }
}

void EventWriter::write_counter(std::string_view name, nanoseconds time, Bytes value) {
  begin("C", name, 0);
  member("ts", time - origin_);
  arguments("bytes", value.value);
}

// A counter is drawn from event to event, so a last event marks its end.
void EventWriter::write_levels(const Memory& memory, nanoseconds end) {
  for (const ProfileLevel& level : memory.levels) write_counter(memory.used_counter, level.time, level.used);
  if (!memory.levels.empty() && memory.levels.back().time < end) {
    write_counter(memory.used_counter, end, memory.levels.back().used);
  }
  if (memory.limit.value == 0) return;
  write_counter(memory.limit_counter, nanoseconds{0}, memory.limit);
  if (end > nanoseconds{0}) write_counter(memory.limit_counter, end, memory.limit);
}

void EventWriter::write(const Chart& chart) {
  ++process_;
  write_names(chart);
  for (const Span& span : chart.spans) write_span(chart, span);
  for (const Memory& memory : chart.memories) write_levels(memory, chart.end);
  for (std::size_t i = 0; i < chart.iteration_ends.size(); ++i) {
    begin("i", "end of iteration " + std::to_string(i), first_thread);
    member("ts", chart.iteration_ends[i] - origin_);
    line_ += ", \"s\": \"p\"";
    this->end();
  }
}

nanoseconds earliest(std::span<const Chart> charts) {
  nanoseconds earliest{0};
  for (const Chart& chart : charts) {
    for (const Span& span : chart.spans) earliest = std::min(earliest, span.start);
    for (const Memory& memory : chart.memories) {
      for (const ProfileLevel& level : memory.levels) earliest = std::min(earliest, level.time);
    }
  }
  return earliest;
}

}  // namespace

void write_events(std::ostream& out, std::span<const Chart> charts) {
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  EventWriter writer(out, earliest(charts));
  for (const Chart& chart : charts) writer.write(chart);
  out << "\n]}\n";
}

}  // namespace swapmm::chart
