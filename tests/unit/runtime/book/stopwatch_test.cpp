// SPDX-License-Identifier: Apache-2.0
// Which rounds a stopwatch times, and what it says of them once they have ended.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <swapmm/runtime/book/stopwatch.hpp>

#include "support/scripted_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::runtime;
using namespace swapmm::test;
using std::chrono::nanoseconds;

struct TimedRound {
  FollowablePtr plan;
  std::uint64_t sequence = 0;
  bool observed = false;
  std::optional<nanoseconds> time;
};

struct StopwatchDesk {
  ScriptedBackend device;
  Stopwatch<ScriptedBackend> watch{device};
  FollowablePtr plan = std::make_shared<const CompiledPlan>();

  void begin(std::int64_t at) {
    device.script().now = nanoseconds{at};
    watch.begin();
  }
  void end(std::int64_t at, bool by_plan, bool observed = false) {
    device.script().now = nanoseconds{at};
    watch.end(by_plan ? plan : nullptr, observed);
  }
  /// Takes 10 ns.
  void round(bool by_plan, bool observed = false) {
    begin(0);
    end(10, by_plan, observed);
  }
  std::vector<TimedRound> collect() {
    std::vector<TimedRound> rounds;
    watch.collect([&](const FollowablePtr& by, std::uint64_t sequence, bool observed, const auto& time) {
      rounds.push_back({by, sequence, observed, time});
    });
    return rounds;
  }
};

}  // namespace

TEST_CASE("a round takes the time between its two events in the compute queue") {
  StopwatchDesk desk;
  CHECK(desk.watch.ready());
  CHECK(!desk.watch.running());
  desk.begin(100);
  CHECK(desk.watch.running());
  CHECK(!desk.watch.ready());
  desk.end(350, true, true);
  CHECK(!desk.watch.running());
  CHECK(desk.watch.ready());
  REQUIRE(desk.device.recorded() == 2);
  CHECK(desk.device.queue_of(1) == QueueKind::compute);
  CHECK(desk.device.queue_of(2) == QueueKind::compute);
  const auto rounds = desk.collect();
  REQUIRE(rounds.size() == 1);
  CHECK(rounds[0].plan == desk.plan);
  CHECK(rounds[0].sequence == 0);
  CHECK(rounds[0].observed);
  CHECK(rounds[0].time == nanoseconds{250});
  CHECK(desk.collect().empty());
}

TEST_CASE("eight rounds at most wait for their times, and all events are made with the first one") {
  StopwatchDesk desk;
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 8; ++i) {
      CHECK(desk.watch.ready());
      desk.begin(1000 * i);
      desk.end(1001 * i, true);
    }
    CHECK(!desk.watch.ready());
    CHECK(desk.device.counters().objects_made == 16);
    const auto rounds = desk.collect();
    REQUIRE(rounds.size() == 8);
    for (int i = 0; i < 8; ++i) CHECK(rounds[static_cast<std::size_t>(i)].time == nanoseconds{i});
    CHECK(desk.watch.ready());
  }
}

TEST_CASE("rounds are told in their order as far as they have ended, and the others later") {
  StopwatchDesk desk;
  desk.device.script().ended = 0;
  for (int i = 0; i < 3; ++i) desk.round(true);
  CHECK(desk.collect().empty());
  desk.device.script().ended = 3;  // the second one has only begun
  CHECK(desk.collect().size() == 1);
  CHECK(desk.collect().empty());
  desk.device.script().ended = 6;
  CHECK(desk.collect().size() == 2);
}

TEST_CASE("a round that failed is told to nobody, one whose time the device does not know without a time") {
  StopwatchDesk desk;
  for (int i = 0; i < 3; ++i) desk.round(true);
  desk.device.script().failed = {2};
  desk.device.script().timeless = {4};
  const auto rounds = desk.collect();
  REQUIRE(rounds.size() == 2);
  CHECK(!rounds[0].time);
  CHECK(rounds[1].time == nanoseconds{10});
}

TEST_CASE("a round on demand is told by its sequence, and not without one") {
  StopwatchDesk desk;
  desk.watch.name_last(6);  // there is none
  desk.round(false);        // never named
  desk.round(false, true);
  desk.watch.name_last(7);
  desk.watch.name_last(8);  // has a name
  desk.round(true);
  desk.watch.name_last(9);  // by a plan
  const auto rounds = desk.collect();
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].plan == nullptr);
  CHECK(rounds[0].sequence == 7);
  CHECK(rounds[0].observed);
  CHECK(rounds[1].plan == desk.plan);
  CHECK(rounds[1].sequence == 0);
  CHECK(!rounds[1].observed);
}

TEST_CASE("what was said of a round is forgotten where its events are used again") {
  StopwatchDesk desk;
  desk.round(false, true);
  desk.watch.name_last(7);
  for (int i = 0; i < 7; ++i) desk.round(true, true);
  CHECK(desk.collect().size() == 8);
  desk.round(false);
  CHECK(desk.collect().empty());
  for (int i = 0; i < 8; ++i) {
    desk.round(false);
    desk.watch.name_last(8);
    const auto rounds = desk.collect();
    REQUIRE(rounds.size() == 1);
    CHECK(rounds[0].plan == nullptr);
    CHECK(rounds[0].sequence == 8);
    CHECK(!rounds[0].observed);
  }
}

TEST_CASE("a round that is dropped is not told, and its place is free") {
  StopwatchDesk desk;
  desk.round(true);
  desk.begin(20);
  desk.watch.drop();
  CHECK(!desk.watch.running());
  CHECK(desk.watch.ready());
  desk.begin(100);
  desk.end(130, true);
  const auto rounds = desk.collect();
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[1].time == nanoseconds{30});
}

TEST_CASE("all rounds can be dropped at once") {
  StopwatchDesk desk;
  for (int i = 0; i < 7; ++i) desk.round(true);
  desk.begin(0);
  desk.watch.drop_all();
  CHECK(!desk.watch.running());
  CHECK(desk.watch.ready());
  CHECK(desk.collect().empty());
  CHECK(desk.plan.use_count() == 1);
  for (int i = 0; i < 8; ++i) desk.round(true);
  CHECK(!desk.watch.ready());
  CHECK(desk.collect().size() == 8);
}

TEST_CASE("a stopwatch holds the plan of a round only until its time is told") {
  StopwatchDesk desk;
  for (int i = 0; i < 4; ++i) desk.round(true);
  CHECK(desk.plan.use_count() == 5);
  (void)desk.collect();
  CHECK(desk.plan.use_count() == 1);
}

TEST_CASE("a round whose events cannot be recorded is not timed") {
  StopwatchDesk desk;
  desk.device.script().refused = 1;
  CHECK_THROWS_AS(desk.begin(0), std::runtime_error);
  CHECK(!desk.watch.running());
  desk.device.script().refused = 3;
  desk.begin(0);
  CHECK_THROWS_AS(desk.end(10, true), std::runtime_error);
  CHECK(!desk.watch.running());
  CHECK(desk.collect().empty());
  CHECK(desk.plan.use_count() == 1);
  desk.round(true);
  CHECK(desk.collect().size() == 1);
}
