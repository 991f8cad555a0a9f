// SPDX-License-Identifier: Apache-2.0
// The rounds of a followed plan, and which points of the queues its waits mean.
#include <doctest/doctest.h>

#include <cstdint>

#include <swapmm/runtime/moves/round_clock.hpp>

#include "support/null_backend.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using runtime::Clock;
using runtime::Needs;

/// A plan that records two points on the compute queue and one on the d2h queue in each round. Five points were
/// recorded on each queue before it starts.
struct RoundDesk {
  explicit RoundDesk(std::size_t run_ahead = 3) : rounds(timeline, run_ahead) {
    for (const QueueKind queue : runtime::base_queues) {
      for (int i = 0; i < 5; ++i) timeline.mark(queue);
    }
    rounds.start({2, 0, 1});
  }
  void record(QueueKind queue) {
    timeline.mark(queue);
    rounds.recorded(queue);
  }
  void round() {
    rounds.begin_round();
    record(QueueKind::compute);
    record(QueueKind::d2h);
    record(QueueKind::compute);
    rounds.end_round();
  }
  /// The need of a point of one queue.
  [[nodiscard]] Clock resolved(QueueKind queue, std::int8_t back, std::uint32_t ordinal) const {
    Needs needs;
    needs.add(queue, back, ordinal);
    return rounds.resolve(needs);
  }

  NullBackend backend{true};
  runtime::Timeline<NullBackend> timeline{backend, 64};
  runtime::RoundClock<NullBackend> rounds;
};

const Clock before_the_plan{{5, 5, 5}};

}  // namespace

TEST_CASE("rounds are numbered from 1, and between two rounds the number is that of the next one") {
  RoundDesk desk;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    CHECK(!desk.rounds.begun());
    CHECK(desk.rounds.round() == number);
    desk.rounds.begin_round();
    CHECK(desk.rounds.begun());
    CHECK(desk.rounds.round() == number);
    desk.rounds.end_round();
  }
}

TEST_CASE("a plan that starts in the middle of another one's round has no round yet") {
  RoundDesk desk;
  desk.round();
  desk.rounds.begin_round();
  desk.rounds.start({1, 1, 1});
  CHECK(!desk.rounds.begun());
  CHECK(desk.rounds.round() == 1);
}

TEST_CASE("a need is the point of that number in this round, or in a round before") {
  RoundDesk desk;
  desk.round();  // compute 6 and 7, d2h 6
  desk.round();  // compute 8 and 9, d2h 7
  desk.rounds.begin_round();
  CHECK(desk.resolved(QueueKind::compute, 0, 0) == Clock{{10, 0, 0}});
  CHECK(desk.resolved(QueueKind::compute, 0, 1) == Clock{{11, 0, 0}});
  desk.record(QueueKind::compute);
  CHECK(desk.resolved(QueueKind::compute, 0, 0) == Clock{{10, 0, 0}});
  CHECK(desk.resolved(QueueKind::compute, 1, 0) == Clock{{8, 0, 0}});
  CHECK(desk.resolved(QueueKind::compute, 1, 1) == Clock{{9, 0, 0}});
  CHECK(desk.resolved(QueueKind::compute, 2, 0) == Clock{{6, 0, 0}});
  CHECK(desk.resolved(QueueKind::d2h, 1, 0) == Clock{{0, 0, 7}});
  CHECK(desk.resolved(QueueKind::d2h, 2, 0) == Clock{{0, 0, 6}});
}

TEST_CASE("the first round comes after all that was queued before the plan, whatever it needs") {
  RoundDesk desk;
  desk.rounds.begin_round();
  CHECK(desk.rounds.resolve({}) == before_the_plan);
  CHECK(desk.resolved(QueueKind::compute, 1, 0) == before_the_plan);
  CHECK(desk.resolved(QueueKind::compute, 0, 0) == Clock{{6, 5, 5}});
}

TEST_CASE("a need of a round before the plan is a need of all that its queue had then, and of no other queue") {
  RoundDesk desk;
  desk.round();
  desk.rounds.begin_round();
  CHECK(desk.rounds.resolve({}) == Clock{});
  CHECK(desk.resolved(QueueKind::compute, 2, 0) == Clock{{5, 0, 0}});
  CHECK(desk.resolved(QueueKind::compute, 3, 0) == Clock{{5, 0, 0}});
  CHECK(desk.resolved(QueueKind::d2h, 3, 0) == Clock{{0, 0, 5}});
  // The first round of this plan is no round before it.
  CHECK(desk.resolved(QueueKind::d2h, 1, 0) == Clock{{0, 0, 6}});
}

TEST_CASE("the host waits for the round that is run_ahead rounds back, and in the first rounds of a plan for none") {
  for (const std::size_t run_ahead : {1U, 2U, 3U}) {
    CAPTURE(run_ahead);
    RoundDesk desk(run_ahead);
    for (int start = 0; start < 2; ++start) {
      const auto last_before = desk.timeline.issued(QueueKind::compute);
      const auto confirmed_before = desk.timeline.confirmed(QueueKind::compute);
      for (std::size_t round = 0; round < 5; ++round) {
        desk.round();
        const auto awaited = desk.timeline.confirmed(QueueKind::compute);
        // At the beginning of round r, rounds 0 to r - run_ahead have ended.
        CHECK(awaited == (round < run_ahead ? confirmed_before : last_before + 2 * (round - run_ahead + 1)));
      }
      desk.rounds.start({2, 0, 1});
    }
  }
}
