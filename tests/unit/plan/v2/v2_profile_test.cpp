// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/formats/trace_json.hpp>
#include <swapmm/formats/v2/plan_json.hpp>
#include <swapmm/plan/v2/predicted_profile.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/v2/rich_plan.hpp"

namespace swapmm::v2::profile_test {

using std::chrono::nanoseconds;

std::string text_of(const Profile& profile) {
  std::ostringstream out;
  for (const ProfileSpan& span : profile.spans) {
    constexpr const char* kinds[] = {"operation", "again", "coding", "copy"};
    out << profile.rows[span.row].name << ": " << kinds[static_cast<int>(span.kind)] << ' ' << span.name << ' '
        << span.start.count() << '-' << span.end.count();
    if (span.bytes != Bytes{0}) out << ", " << span.bytes.value << " B";
    out << '\n';
  }
  for (const ProfileMemory& memory : profile.memories) {
    out << memory.name << " of " << memory.bytes.value << ':';
    for (const ProfileLevel& level : memory.levels) out << ' ' << level.time.count() << '=' << level.used.value;
    out << '\n';
  }
  return out.str();
}

TEST_CASE("v2: a predicted profile shows a whole period, engine by engine, link by link and memory by memory") {
  const Trace trace = read_trace(test::general::rich_trace).value();
  const Plan plan = read_plan(test::general::rich_plan(digest(trace))).value();
  REQUIRE(v2::validate(trace, plan).empty());
  const Profile profile = v2::predicted_profile(trace, plan);
  CHECK(profile.title == "rich, by hand, predicted");
  CHECK(profile.machine == "pair");
  // The link gpu0-host copies nothing.
  CHECK(profile.rows == std::vector<ProfileRow>{{"gpu0", ProfileRow::Kind::engine},
                                                {"gpu1", ProfileRow::Kind::engine},
                                                {"host-gpu0", ProfileRow::Kind::link_in},
                                                {"host-gpu1", ProfileRow::Kind::link_in}});
  // Iterations take 97 and 93 ns in turns. From 178 to 186 two copies share the capacity, so that 8 ns of each move 4
  // bytes: w0 takes 44 ns instead of 40, 12 of them before the end of the period.
  CHECK(text_of(profile) ==
        "host-gpu0: copy w0 0-32, 30 B\n"
        "gpu1: operation other 0-45\n"
        "gpu0: operation first 32-42\n"
        "gpu0: operation second 42-52\n"
        "host-gpu1: copy w1[0] 45-65, 20 B\n"
        "gpu0: coding y to zeros 52-55\n"
        "gpu0: operation third 55-75\n"
        "host-gpu1: copy w1[1] 65-85, 20 B\n"
        "gpu0: again first 75-85\n"
        "gpu0: coding y from zeros 85-87\n"
        "host-gpu0: copy w0 85-125, 40 B\n"
        "gpu0: operation fourth 87-97\n"
        "gpu1: operation other 97-142\n"
        "gpu0: operation first 125-135\n"
        "gpu0: operation second 135-145\n"
        "host-gpu1: copy w1[0] 142-162, 20 B\n"
        "gpu0: coding y to zeros 145-148\n"
        "gpu0: operation third 148-168\n"
        "host-gpu1: copy w1[1] 162-186, 20 B\n"
        "gpu0: again first 168-178\n"
        "gpu0: coding y from zeros 178-180\n"
        "host-gpu0: copy w0 178-190, 10 B\n"
        "gpu0: operation fourth 180-190\n"
        "gpu0 of 100: 0=80 52=100 55=80 85=100 87=80 145=100 148=80 178=100 180=80\n"
        "gpu1 of 50: 0=40 45=20 65=40 142=20 162=40\n");
  CHECK(profile.iteration_ends == std::vector{nanoseconds{97}, nanoseconds{190}});
  CHECK(busy_times(profile) == std::vector{nanoseconds{130}, nanoseconds{90}, nanoseconds{84}, nanoseconds{84}});
  CHECK(busy_times(profile, SpanKind::coding) ==
        std::vector{nanoseconds{10}, nanoseconds{0}, nanoseconds{0}, nanoseconds{0}});
  CHECK(
      describe(profile) ==
      "2 iterations of 95 ns on average \xC2\xB7 gpu0 idle 60 ns (31.6 %) \xC2\xB7 gpu1 idle 100 ns (52.6 %) \xC2\xB7 "
      "160 B copied");
}

TEST_CASE("v2: a copy on an engine that runs operations is in the rows of both") {
  Trace trace = read_trace(test::general::rich_trace).value();
  Plan plan = read_plan(test::general::rich_plan(digest(trace))).value();
  plan.machine.links[2].engine = EngineId{1};
  for (const std::size_t copy : {1U, 2U}) plan.commands[copy].position = 4;
  REQUIRE(v2::validate(trace, plan).empty());
  const Profile profile = v2::predicted_profile(trace, plan);
  std::vector<std::string> on_engine;
  std::vector<std::string> on_link;
  for (const ProfileSpan& span : profile.spans) {
    if (span.kind != SpanKind::copy || span.name.find("w1") == std::string::npos) continue;
    (profile.rows[span.row].name == "gpu1" ? on_engine : on_link).push_back(span.name);
  }
  CHECK(on_engine.size() >= 2);
  CHECK(on_engine == on_link);
  // Copied bytes are those of links: none is counted twice.
  Bytes bytes;
  for (const Bytes link : v2::simulate(trace, plan).links) bytes += link;
  const auto iterations = profile.iteration_ends.size();
  CHECK(describe(profile).find(std::to_string(bytes.value * iterations) + " B copied") != std::string::npos);
}

TEST_CASE("v2: a profile of nothing says so") {
  CHECK(describe(Profile{}) == "nothing ran");
  CHECK(profile_end(Profile{}) == nanoseconds{0});
}

TEST_CASE("v2: a profile in words counts what all links copy, also those into memories that do not compute") {
  using std::chrono::nanoseconds;
  v2::Profile profile;
  v2::ProfileRow row;
  row.name = "gpu";
  row.kind = v2::ProfileRow::Kind::engine;
  profile.rows.push_back(row);
  row.name = "in";
  row.kind = v2::ProfileRow::Kind::link_in;
  profile.rows.push_back(row);
  row.name = "out";
  row.kind = v2::ProfileRow::Kind::link_out;
  profile.rows.push_back(row);
  const auto span = [&](std::uint32_t at, v2::SpanKind kind, Bytes bytes) {
    v2::ProfileSpan one;
    one.row = at;
    one.kind = kind;
    one.bytes = bytes;
    one.end = nanoseconds{60};
    profile.spans.push_back(one);
  };
  span(0, v2::SpanKind::operation, Bytes{500});
  span(1, v2::SpanKind::copy, Bytes{10});
  span(2, v2::SpanKind::copy, Bytes{20});
  profile.iteration_ends = {nanoseconds{80}};
  CHECK(v2::describe(profile) == "iteration 80 ns \xC2\xB7 gpu idle 20 ns (25.0 %) \xC2\xB7 30 B copied");
}

}  // namespace swapmm::v2::profile_test
