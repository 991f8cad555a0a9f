// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <locale>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json.hpp>

#include <swapmm/formats/profile_events.hpp>

#include "support/golden.hpp"
#include "support/profile_examples.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

namespace {

struct Event {
  std::string phase;
  std::string name;
  std::int64_t process = 0;
  std::int64_t thread = 0;
  double time = 0;      // microseconds
  double duration = 0;  // microseconds
  std::string scope;
  // Of the only argument:
  std::string argument;
  std::string text;
  std::int64_t number = 0;
};

Event event_of(const boost::json::object& object) {
  Event event;
  event.phase = object.at("ph").as_string();
  event.name = object.at("name").as_string();
  event.process = object.at("pid").as_int64();
  event.thread = object.at("tid").as_int64();
  if (const auto* time = object.if_contains("ts")) event.time = time->to_number<double>();
  if (const auto* duration = object.if_contains("dur")) event.duration = duration->to_number<double>();
  if (const auto* scope = object.if_contains("s")) event.scope = scope->as_string();
  if (const auto* arguments = object.if_contains("args")) {
    REQUIRE(arguments->as_object().size() == 1);
    const auto& argument = *arguments->as_object().begin();
    event.argument = argument.key();
    if (argument.value().is_string()) event.text = argument.value().as_string();
    if (argument.value().is_int64()) event.number = argument.value().as_int64();
  }
  return event;
}

std::string events_text(std::span<const Profile> profiles) {
  std::ostringstream out;
  write_trace_events(out, profiles);
  return out.str();
}

std::vector<Event> events_of(std::span<const Profile> profiles) {
  const boost::json::value document = boost::json::parse(events_text(profiles));
  CHECK(document.at("displayTimeUnit").as_string() == "ms");
  std::vector<Event> events;
  for (const boost::json::value& event : document.at("traceEvents").as_array()) {
    events.push_back(event_of(event.as_object()));
  }
  return events;
}

/// Those of a phase, of one process, in order.
std::vector<Event> only(const std::vector<Event>& events, std::string_view phase, std::int64_t process = 1) {
  std::vector<Event> found;
  for (const Event& event : events) {
    if (event.phase == phase && event.process == process) found.push_back(event);
  }
  return found;
}

}  // namespace

TEST_CASE("events are, byte for byte, those that were looked at") {
  const std::vector<Profile> profiles{one_layer_swapped(), two_iterations()};
  check_golden("profile/two_profiles.json", events_text(profiles));
}

TEST_CASE("each profile is a process, each lane a thread, in order") {
  const std::vector<Profile> profiles{one_layer_swapped(), two_iterations()};
  const std::vector<Event> events = events_of(profiles);
  using Names = std::vector<std::pair<std::int64_t, std::string>>;
  using Order = std::vector<std::pair<std::int64_t, std::int64_t>>;
  for (const std::int64_t process : {1, 2}) {
    Names thread_names;
    Order thread_order;
    for (const Event& event : only(events, "M", process)) {
      if (event.name == "process_name") {
        CHECK(event.argument == "name");
        CHECK(event.text == (process == 1 ? "forward & backward on a <small> device" : "two iterations"));
      } else if (event.name == "process_sort_index") {
        CHECK(event.argument == "sort_index");
        CHECK(event.number == process);
      } else if (event.name == "thread_name") {
        CHECK(event.argument == "name");
        thread_names.emplace_back(event.thread, event.text);
      } else {
        CHECK(event.name == "thread_sort_index");
        CHECK(event.argument == "sort_index");
        thread_order.emplace_back(event.thread, event.number);
      }
    }
    CHECK(thread_names == Names{{1, "compute"}, {2, "H2D"}, {3, "D2H"}});
    CHECK(thread_order == Order{{1, 1}, {2, 2}, {3, 3}});
  }
  CHECK(only(events, "M", 3).empty());
}

TEST_CASE("each span is a complete event in microseconds, with the bytes of a copy") {
  const std::vector<Profile> profiles{one_layer_swapped()};
  const std::vector<Event> spans = only(events_of(profiles), "X");
  REQUIRE(spans.size() == 6);
  CHECK(spans[1].name == "conv2");
  CHECK(spans[1].thread == 1);
  CHECK(spans[1].time == 2000);
  CHECK(spans[1].duration == 3000);
  CHECK(spans[1].argument.empty());
  CHECK(spans[2].name == "a1");
  CHECK(spans[2].thread == 3);
  CHECK(spans[2].argument == "bytes");
  CHECK(spans[2].number == 33'554'432);
  CHECK(spans[4].thread == 2);
}

TEST_CASE("nanoseconds are decimals, and time begins with what began first in any profile") {
  const std::vector<Profile> profiles{one_layer_swapped(), two_iterations()};
  const std::vector<Event> events = events_of(profiles);
  const std::vector<Event> spans = only(events, "X", 2);
  REQUIRE(spans.size() == 6);
  CHECK(spans[0].time == 0);  // 100 ns before its profile
  CHECK(spans[0].duration == 0.2);
  CHECK(spans[4].time == 0.95);
  CHECK(spans[4].duration == 0.15);
  CHECK(only(events, "X", 1)[0].time == 0.1);
  CHECK(events_text(profiles).find("\"ts\": 0.950, \"dur\": 0.150") != std::string::npos);
}

TEST_CASE("time begins with a level that is the first of all") {
  std::vector<Profile> profiles{one_layer_swapped()};
  profiles[0].levels.insert(profiles[0].levels.begin(), level(-1000, 5));
  const std::vector<Event> events = events_of(profiles);
  CHECK(only(events, "C")[0].time == 0);
  CHECK(only(events, "X")[0].time == 1);
}

TEST_CASE("bytes taken and the budget are counters that reach to the end") {
  const std::vector<Profile> profiles{one_layer_swapped(), two_iterations()};
  const std::vector<Event> events = events_of(profiles);
  using Counter = std::vector<std::pair<double, std::int64_t>>;
  const auto counter = [&](std::int64_t process, std::string_view name) {
    Counter points;
    for (const Event& event : only(events, "C", process)) {
      if (event.name != name) continue;
      CHECK(event.argument == "bytes");
      points.emplace_back(event.time, event.number);
    }
    return points;
  };
  const std::int64_t mib = 1 << 20;
  CHECK(counter(1, "bytes taken") == Counter{{0.1, 32 * mib},
                                             {2000.1, 96 * mib},
                                             {4000.1, 64 * mib},
                                             {7000.1, 96 * mib},
                                             {11000.1, 48 * mib},
                                             {12000.1, 48 * mib}});
  CHECK(counter(1, "budget") == Counter{{0.1, 96 * mib}, {12000.1, 96 * mib}});
  CHECK(counter(2, "bytes taken") == Counter{{0.1, 1000}, {0.95, 1500}, {1.3, 1500}});
  CHECK(counter(2, "budget").empty());
}

TEST_CASE("an iteration's end is an instant event of its process") {
  const std::vector<Profile> profiles{two_iterations()};
  const std::vector<Event> ends = only(events_of(profiles), "i");
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].name == "end of iteration 0");
  CHECK(ends[0].time == 0.7);
  CHECK(ends[0].scope == "p");
  CHECK(ends[1].name == "end of iteration 1");
  CHECK(ends[1].time == 1.1);
}

TEST_CASE("any name gives a document that can be read") {
  std::vector<Profile> profiles{one_layer_swapped()};
  profiles[0].title = "\"\\/\b\f\n\r\t\x01\x7F";
  profiles[0].device.clear();
  profiles[0].spans[0].name = "\xFF\xED\xA0\x80";
  profiles[0].spans[1].name = std::string(1'000'000, 'x');
  const std::vector<Event> events = events_of(profiles);
  CHECK(only(events, "M")[0].text == profiles[0].title);
  CHECK(only(events, "X")[0].name == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(only(events, "X")[1].name == std::string(1024, 'x'));
}

TEST_CASE("no profile gives no event, an empty one its names alone") {
  CHECK(events_of({}).empty());
  const std::vector<Profile> empty(1);
  CHECK(events_of(empty).size() == 8);
}

TEST_CASE("events are written by no locale") {
  /// Groups digits as many languages do.
  struct Grouping : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::vector<Profile> profiles{one_layer_swapped()};
  std::ostringstream out;
  out.imbue(std::locale(std::locale::classic(), new Grouping));
  write_trace_events(out, profiles);
  CHECK(out.str() == events_text(profiles));
}
