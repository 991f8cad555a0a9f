// SPDX-License-Identifier: Apache-2.0
// What a profiler makes of events and clocks, on a device that takes the times that the test says.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/runtime/timing/profiler.hpp>

#include "support/failing_new.hpp"
#include "support/null_backend.hpp"
#include "support/scripted_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using namespace swapmm::test;
using std::chrono::nanoseconds;

/// A profiler that begins at 1000 ns of the device's time; times of the tests count from there.
struct ProfilerDesk {
  using When = Profiler<ScriptedBackend>::When;

  explicit ProfilerDesk(std::uint64_t used = 0) { start(used); }
  void start(std::uint64_t used = 0) {
    at(0);
    profiler.start(Bytes{used});
  }
  void at(std::int64_t time) { device.script().now = nanoseconds{1000 + time}; }
  void begin(QueueKind queue, std::int64_t time, std::string_view name = "", std::uint64_t bytes = 0) {
    at(time);
    profiler.begin(queue, name, Bytes{bytes});
  }
  void end(QueueKind queue, std::int64_t time, QueuePoint point) {
    at(time);
    profiler.end(queue, point);
  }
  void operation(std::int64_t from, std::int64_t to, QueuePoint point) {
    begin(QueueKind::compute, from);
    end(QueueKind::compute, to, point);
  }
  /// The copy of a tensor to the device.
  void arrival(std::int64_t from, std::int64_t to, QueuePoint point, std::uint32_t tensor) {
    at(from);
    profiler.begin(QueueKind::h2d, "", Bytes{64}, tensor);
    end(QueueKind::h2d, to, point);
  }

  ScriptedBackend device;
  Profiler<ScriptedBackend> profiler{device};
};

using ProfileLevels = std::vector<ProfileLevel>;
ProfileLevel level_at(std::int64_t time, std::uint64_t used) { return {nanoseconds{time}, Bytes{used}}; }
Clock after_point(QueueKind queue, QueuePoint point) { return Clock::point(queue, point); }

}  // namespace

TEST_CASE("spans have lane, name, bytes and times from the beginning, and are sorted by their starts") {
  ProfilerDesk desk;
  CHECK(desk.profiler.active());
  desk.begin(QueueKind::compute, 40, "step");
  desk.end(QueueKind::compute, 90, 1);
  desk.begin(QueueKind::h2d, 10, "in", 64);
  desk.end(QueueKind::h2d, 30, 1);
  desk.begin(QueueKind::d2h, -5, "out", 32);  // began before
  desk.end(QueueKind::d2h, 20, 1);
  const Profile profile = desk.profiler.stop();
  CHECK(!desk.profiler.active());
  CHECK(profile.spans == std::vector<ProfileSpan>{{Lane::d2h, "out", Bytes{32}, nanoseconds{-5}, nanoseconds{20}},
                                                  {Lane::h2d, "in", Bytes{64}, nanoseconds{10}, nanoseconds{30}},
                                                  {Lane::compute, "step", Bytes{0}, nanoseconds{40}, nanoseconds{90}}});
  CHECK(profile.iteration_ends.empty());
  CHECK(profile.levels == ProfileLevels{level_at(0, 0)});
}

TEST_CASE("spans that start together are in the order in which they were queued") {
  ProfilerDesk desk;
  for (const std::string_view name : {"b", "c", "a"}) {
    desk.begin(QueueKind::h2d, 10, name);
    desk.end(QueueKind::h2d, 20, 1);
  }
  const Profile profile = desk.profiler.stop();
  REQUIRE(profile.spans.size() == 3);
  CHECK(profile.spans[0].name == "b");
  CHECK(profile.spans[1].name == "c");
  CHECK(profile.spans[2].name == "a");
}

TEST_CASE("work without an end, or without times, has no span, and none ends before it starts") {
  ProfilerDesk desk;
  desk.begin(QueueKind::compute, 10, "given up");
  desk.end(QueueKind::h2d, 20, 1);  // of another queue
  desk.begin(QueueKind::compute, 30, "no start");
  desk.device.script().timeless.insert(desk.device.recorded());
  desk.end(QueueKind::compute, 40, 1);
  desk.begin(QueueKind::compute, 50, "no end");
  desk.end(QueueKind::compute, 60, 2);
  desk.device.script().timeless.insert(desk.device.recorded());
  desk.begin(QueueKind::compute, 70, "backwards");
  desk.end(QueueKind::compute, 65, 3);
  desk.begin(QueueKind::compute, 80, "once");
  desk.end(QueueKind::compute, 90, 4);
  desk.end(QueueKind::compute, 99, 5);  // has ended
  const Profile profile = desk.profiler.stop();
  REQUIRE(profile.spans.size() == 2);
  CHECK(profile.spans[0].name == "backwards");
  CHECK(profile.spans[0].start == nanoseconds{70});
  CHECK(profile.spans[0].end == nanoseconds{70});
  CHECK(profile.spans[1].name == "once");
  CHECK(profile.spans[1].end == nanoseconds{90});
}

TEST_CASE("an end where nothing has begun is none") {
  ProfilerDesk desk;
  desk.end(QueueKind::compute, 10, 1);
  CHECK(desk.device.recorded() == 1);
  CHECK(desk.profiler.stop().spans.empty());
}

TEST_CASE("an iteration ends with the last of its operations that has a time") {
  ProfilerDesk desk;
  desk.profiler.iteration_ended();
  desk.operation(10, 20, 1);
  desk.operation(20, 50, 2);
  desk.begin(QueueKind::h2d, 60);
  desk.end(QueueKind::h2d, 500, 1);
  desk.profiler.iteration_ended();
  desk.begin(QueueKind::compute, 70);  // given up
  desk.profiler.iteration_ended();
  desk.operation(80, 95, 3);
  desk.operation(85, 90, 4);
  desk.profiler.iteration_ended();
  desk.operation(100, 110, 5);  // belongs to the next one
  const Profile profile = desk.profiler.stop();
  CHECK(profile.iteration_ends ==
        std::vector<nanoseconds>{nanoseconds{0}, nanoseconds{50}, nanoseconds{50}, nanoseconds{95}});
}

TEST_CASE("bytes are taken and freed when all that their clocks name has ended") {
  ProfilerDesk desk(100);
  desk.operation(10, 30, 1);
  desk.operation(30, 80, 3);
  desk.begin(QueueKind::d2h, 20);
  desk.end(QueueKind::d2h, 60, 2);
  desk.profiler.taken(Bytes{64}, after_point(QueueKind::compute, 1), ProfilerDesk::When::after_clock);
  desk.profiler.taken(Bytes{32}, after_point(QueueKind::compute, 2),
                      ProfilerDesk::When::after_clock);  // at point 1, still
  desk.profiler.freed(Bytes{50}, after_point(QueueKind::compute, 3));
  Clock both = after_point(QueueKind::compute, 1);
  both.join(after_point(QueueKind::d2h, 2));
  desk.profiler.freed(Bytes{10}, both);
  desk.profiler.freed(Bytes{5}, after_point(QueueKind::d2h, 1));  // before all of it
  desk.profiler.freed(Bytes{1}, Clock{});
  CHECK(desk.profiler.stop().levels ==
        ProfileLevels{level_at(0, 94), level_at(30, 190), level_at(60, 180), level_at(80, 130)});
}

TEST_CASE("work that its queue ended earlier than what was queued before it has ended with that") {
  ProfilerDesk desk;
  desk.operation(10, 50, 1);
  desk.operation(20, 40, 2);
  desk.profiler.taken(Bytes{8}, after_point(QueueKind::compute, 2), ProfilerDesk::When::after_clock);
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 0), level_at(50, 8)});
}

TEST_CASE("more bytes cannot be free than were taken") {
  ProfilerDesk desk(10);
  desk.operation(10, 20, 1);
  desk.operation(20, 30, 2);
  desk.profiler.freed(Bytes{15}, after_point(QueueKind::compute, 1));
  desk.profiler.taken(Bytes{25}, after_point(QueueKind::compute, 2), ProfilerDesk::When::after_clock);
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 10), level_at(20, 0), level_at(30, 20)});
}

TEST_CASE("bytes for an operation on demand are taken when it starts, or later if their clock says so") {
  ProfilerDesk desk;
  constexpr auto next = ProfilerDesk::When::with_next_operation;
  desk.operation(10, 20, 1);
  desk.profiler.taken(Bytes{1}, after_point(QueueKind::compute, 1), next);
  desk.operation(50, 60, 2);
  desk.profiler.taken(Bytes{2}, Clock{}, next);
  desk.begin(QueueKind::d2h, 60);
  desk.end(QueueKind::d2h, 95, 1);
  desk.profiler.taken(Bytes{4}, after_point(QueueKind::d2h, 1), next);
  desk.operation(70, 80, 3);
  desk.profiler.taken(Bytes{8}, after_point(QueueKind::compute, 3), next);  // no operation comes
  CHECK(desk.profiler.stop().levels ==
        ProfileLevels{level_at(0, 0), level_at(50, 1), level_at(70, 3), level_at(80, 11), level_at(95, 15)});
}

TEST_CASE("bytes for an operation without a time are taken by their clock") {
  ProfilerDesk desk;
  desk.operation(10, 20, 1);
  desk.profiler.taken(Bytes{1}, after_point(QueueKind::compute, 1), ProfilerDesk::When::with_next_operation);
  desk.begin(QueueKind::compute, 50);  // given up
  desk.operation(60, 70, 2);
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 0), level_at(20, 1)});
}

TEST_CASE("bytes into which a value is copied are taken from the start of the copy") {
  constexpr auto next = ProfilerDesk::When::with_next_operation;
  constexpr auto by_clock = ProfilerDesk::When::after_clock;
  ProfilerDesk desk;
  desk.profiler.taken(Bytes{1}, Clock{}, next, 7);
  desk.profiler.taken(Bytes{2}, Clock{}, by_clock, 8);
  desk.profiler.taken(Bytes{4}, Clock{}, next, 9);  // its copy comes later
  desk.profiler.freed(Bytes{0}, Clock{});
  desk.arrival(10, 30, 1, 8);
  desk.arrival(30, 40, 2, 7);
  desk.arrival(60, 70, 3, 8);  // for the same bytes: only the first copy counts
  desk.operation(50, 60, 1);
  CHECK(desk.profiler.stop().levels ==
        ProfileLevels{level_at(0, 0), level_at(10, 2), level_at(30, 3), level_at(50, 7)});
}

TEST_CASE("a copy is for the bytes that were taken last for its tensor, and counts where it has a time") {
  constexpr auto by_clock = ProfilerDesk::When::after_clock;
  ProfilerDesk desk;
  desk.profiler.taken(Bytes{1}, Clock{}, by_clock, 7);
  desk.profiler.taken(Bytes{2}, Clock{}, by_clock, 7);
  desk.arrival(10, 20, 1, 7);
  desk.profiler.taken(Bytes{4}, Clock{}, by_clock, 8);
  desk.begin(QueueKind::d2h, 30, "", 1);  // no arrival
  desk.end(QueueKind::d2h, 35, 1);
  desk.profiler.taken(Bytes{8}, Clock{}, by_clock, 9);
  desk.profiler.begin(QueueKind::h2d, "given up", Bytes{1}, 9);
  desk.profiler.taken(Bytes{16}, after_point(QueueKind::d2h, 1), by_clock, 10);
  desk.arrival(32, 40, 2, 10);  // its place is free only later
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 13), level_at(10, 15), level_at(35, 31)});
}

TEST_CASE("bytes that are freed only for the next ones stay taken until those are taken") {
  constexpr auto by_clock = ProfilerDesk::When::after_clock;
  ProfilerDesk desk(100);
  for (int i = 0; i < 4; ++i) desk.operation(10 * i, 10 * i + 10, static_cast<QueuePoint>(i) + 1);
  desk.profiler.freed(Bytes{40}, after_point(QueueKind::compute, 1), true);
  desk.profiler.freed(Bytes{1}, after_point(QueueKind::compute, 2));
  desk.profiler.taken(Bytes{30}, after_point(QueueKind::compute, 4), by_clock);
  desk.profiler.taken(Bytes{20}, after_point(QueueKind::compute, 3),
                      by_clock);                                            // the earliest of those that come later
  desk.profiler.freed(Bytes{2}, after_point(QueueKind::compute, 1), true);  // none comes later
  desk.profiler.freed(Bytes{4}, after_point(QueueKind::compute, 4));
  CHECK(desk.profiler.stop().levels ==
        ProfileLevels{level_at(0, 100), level_at(10, 98), level_at(20, 97), level_at(30, 77), level_at(40, 103)});
}

TEST_CASE("where no bytes are taken no room is needed") {
  ProfilerDesk desk(100);
  for (int i = 0; i < 3; ++i) desk.operation(10 * i, 10 * i + 10, static_cast<QueuePoint>(i) + 1);
  desk.profiler.freed(Bytes{40}, after_point(QueueKind::compute, 1), true);
  desk.profiler.taken(Bytes{0}, after_point(QueueKind::compute, 2), ProfilerDesk::When::after_clock);
  desk.profiler.taken(Bytes{30}, after_point(QueueKind::compute, 3), ProfilerDesk::When::after_clock);
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 100), level_at(20, 100), level_at(30, 90)});
}

TEST_CASE("bytes that become free after the next ones are taken are free only then") {
  ProfilerDesk desk(100);
  desk.operation(0, 10, 1);
  desk.operation(10, 20, 2);
  desk.profiler.freed(Bytes{40}, after_point(QueueKind::compute, 2), true);
  desk.profiler.taken(Bytes{20}, after_point(QueueKind::compute, 1), ProfilerDesk::When::after_clock);
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 100), level_at(10, 120), level_at(20, 80)});
}

TEST_CASE("what is taken and freed while no profile is recorded is in none, and each begins anew") {
  ProfilerDesk desk(5);
  desk.operation(10, 20, 1);
  desk.profiler.iteration_ended();
  desk.profiler.taken(Bytes{3}, after_point(QueueKind::compute, 1), ProfilerDesk::When::after_clock);
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 5), level_at(20, 8)});
  desk.profiler.taken(Bytes{100}, Clock{}, ProfilerDesk::When::after_clock);
  desk.profiler.freed(Bytes{50}, Clock{});
  desk.start(7);
  desk.profiler.taken(Bytes{1}, Clock{}, ProfilerDesk::When::with_next_operation);
  desk.operation(30, 40, 2);
  desk.profiler.iteration_ended();
  Profile profile = desk.profiler.stop();
  CHECK(profile.spans.size() == 1);
  CHECK(profile.iteration_ends == std::vector<nanoseconds>{nanoseconds{40}});
  CHECK(profile.levels == ProfileLevels{level_at(0, 7), level_at(30, 8)});
  desk.start(9);
  desk.operation(10, 20, 3);
  desk.profiler.iteration_ended();
  desk.profiler.reset();
  CHECK(!desk.profiler.active());
  desk.start(11);
  profile = desk.profiler.stop();
  CHECK(profile.spans.empty());
  CHECK(profile.iteration_ends.empty());
  CHECK(profile.levels == ProfileLevels{level_at(0, 11)});
}

TEST_CASE("a failure before a work is thrown at once and leaves nothing, one behind it ends the profile") {
  ProfilerDesk desk;
  desk.device.script().refused = 2;
  CHECK_THROWS_WITH_AS(desk.begin(QueueKind::compute, 10), "record 2 refused", std::runtime_error);
  desk.operation(20, 30, 1);
  desk.profiler.iteration_ended();
  Profile profile = desk.profiler.stop();
  CHECK(profile.spans.size() == 1);
  CHECK(profile.iteration_ends == std::vector<nanoseconds>{nanoseconds{30}});

  desk.start(5);
  desk.device.script().refused = desk.device.recorded() + 2;
  const std::string said = "record " + std::to_string(desk.device.script().refused) + " refused";
  desk.operation(20, 30, 1);
  CHECK_THROWS_WITH_AS((void)desk.profiler.stop(), said.c_str(), std::runtime_error);
  CHECK(!desk.profiler.active());
  desk.start(3);
  CHECK(desk.profiler.stop().levels == ProfileLevels{level_at(0, 3)});  // nothing is left of the one that failed

  desk.start();
  desk.device.script().refused = desk.device.recorded() + 2;
  desk.operation(20, 30, 1);
  desk.profiler.reset();
  desk.start();
  CHECK_NOTHROW((void)desk.profiler.stop());

  desk.device.script().refused = desk.device.recorded() + 1;
  CHECK_THROWS_AS(desk.start(), std::runtime_error);
  CHECK(!desk.profiler.active());
}

TEST_CASE(
    "a profiler that records nothing costs nothing, and one that does allocates rarely and gives its events back") {
  NullBackend device;
  Profiler<NullBackend> profiler(device);
  const std::uint64_t before = allocations();
  for (int i = 0; i < 100; ++i) {
    profiler.taken(Bytes{64}, Clock{}, Profiler<NullBackend>::When::after_clock);
    profiler.freed(Bytes{64}, Clock{});
  }
  CHECK(allocations() == before);
  profiler.start(Bytes{0});
  const std::uint64_t started = allocations();
  for (QueuePoint i = 1; i <= 64; ++i) {
    profiler.begin(QueueKind::compute, "step", Bytes{0});
    profiler.end(QueueKind::compute, i);
  }
  CHECK(allocations() == started + 1);
  CHECK(device.counters().objects_live == 1 + 2 * 64);
  CHECK(profiler.stop().spans.size() == 64);
  CHECK(device.counters().objects_live == 1);
}

TEST_CASE("where memory runs out while a profile is recorded, the profile fails where it is asked for") {
  for (const int which : {0, 1, 2}) {
    CAPTURE(which);
    NullBackend device;
    Profiler<NullBackend> profiler(device);
    profiler.start(Bytes{0});
    {
      const FailingNew failing(1);
      for (int i = 0; i < 100 && !failing.fired(); ++i) {
        if (which == 0) profiler.iteration_ended();
        if (which == 1) profiler.taken(Bytes{64}, Clock{}, Profiler<NullBackend>::When::after_clock);
        if (which == 2) profiler.freed(Bytes{64}, Clock{});
      }
      REQUIRE(failing.fired());
    }
    CHECK_THROWS_AS((void)profiler.stop(), std::bad_alloc);
    profiler.start(Bytes{0});
    CHECK_NOTHROW((void)profiler.stop());
  }
}
