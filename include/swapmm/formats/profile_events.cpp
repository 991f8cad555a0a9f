// SPDX-License-Identifier: Apache-2.0
#include <swapmm/formats/profile_events.hpp>

#include <algorithm>
#include <array>
#include <ostream>
#include <string>
#include <string_view>

#include <swapmm/base/text/figures.hpp>
#include <swapmm/formats/json/writer.hpp>

namespace swapmm {
namespace {

using std::chrono::nanoseconds;

constexpr std::array<std::string_view, lane_count> lane_names = {"compute", "H2D", "D2H"};

/// Viewers treat thread 0 of process 0 as the idle thread of the system, so both numbers begin at 1.
std::size_t thread_of(Lane lane) { return static_cast<std::size_t>(lane) + 1; }

class EventWriter {
 public:
  EventWriter(std::ostream& out, nanoseconds origin) : out_(out), origin_(origin) {}

  void write(const Profile& profile);

 private:
  void write_names(const Profile& profile);
  void write_span(const ProfileSpan& span);
  void write_counter(std::string_view name, nanoseconds time, Bytes value);
  void write_levels(const Profile& profile, nanoseconds end);

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

void EventWriter::write_names(const Profile& profile) {
  begin("M", "process_name", 0);
  arguments("name", profile.device.empty() ? profile.title : profile.title + " on " + profile.device);
  begin("M", "process_sort_index", 0);
  arguments("sort_index", process_);
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    const std::size_t thread = thread_of(static_cast<Lane>(lane));
    begin("M", "thread_name", thread);
    arguments("name", lane_names[lane]);
    begin("M", "thread_sort_index", thread);
    arguments("sort_index", thread);
  }
}

void EventWriter::write_span(const ProfileSpan& span) {
  begin("X", span.name, thread_of(span.lane));
  member("ts", span.start - origin_);
  member("dur", span.end - span.start);
  if (span.lane == Lane::compute) {
    end();
  } else {
    arguments("bytes", span.bytes.value);
  }
}

void EventWriter::write_counter(std::string_view name, nanoseconds time, Bytes value) {
  begin("C", name, 0);
  member("ts", time - origin_);
  arguments("bytes", value.value);
}

// A counter is drawn from event to event, so a last event marks its end.
void EventWriter::write_levels(const Profile& profile, nanoseconds end) {
  for (const ProfileLevel& level : profile.levels) write_counter("bytes taken", level.time, level.used);
  if (!profile.levels.empty() && profile.levels.back().time < end) {
    write_counter("bytes taken", end, profile.levels.back().used);
  }
  if (profile.device_budget.value == 0) return;
  write_counter("budget", nanoseconds{0}, profile.device_budget);
  if (end > nanoseconds{0}) write_counter("budget", end, profile.device_budget);
}

void EventWriter::write(const Profile& profile) {
  ++process_;
  write_names(profile);
  for (const ProfileSpan& span : profile.spans) write_span(span);
  write_levels(profile, profile_end(profile));
  for (std::size_t i = 0; i < profile.iteration_ends.size(); ++i) {
    begin("i", "end of iteration " + std::to_string(i), thread_of(Lane::compute));
    member("ts", profile.iteration_ends[i] - origin_);
    line_ += ", \"s\": \"p\"";
    this->end();
  }
}

nanoseconds earliest(std::span<const Profile> profiles) {
  nanoseconds earliest{0};
  for (const Profile& profile : profiles) {
    for (const ProfileSpan& span : profile.spans) earliest = std::min(earliest, span.start);
    for (const ProfileLevel& level : profile.levels) earliest = std::min(earliest, level.time);
  }
  return earliest;
}

}  // namespace

void write_trace_events(std::ostream& out, std::span<const Profile> profiles) {
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  EventWriter writer(out, earliest(profiles));
  for (const Profile& profile : profiles) writer.write(profile);
  out << "\n]}\n";
}

}  // namespace swapmm
