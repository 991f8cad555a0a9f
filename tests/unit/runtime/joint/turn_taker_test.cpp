// SPDX-License-Identifier: Apache-2.0
// Copies that wait for copies of another manager.

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/joint/turn_board.hpp>

#include "support/turn_desk.hpp"

namespace swapmm::test::turn_taker_test {

using namespace swapmm::runtime;
using Sim = simulated::Backend;

class Desk : public TurnDesk<Sim> {
 public:
  Desk(LinkMemberId member, LinkMemberId other, const std::shared_ptr<simulated::SharedClock>& clock,
       const std::shared_ptr<TurnBoard<Sim>>& board)
      : TurnDesk(member, other, Sim(options_for_turns(clock)), board) {}
  [[nodiscard]] std::int64_t last_start() { return TurnDesk::last_start(backend); }
};

struct TwoDesks {
  std::shared_ptr<simulated::SharedClock> clock = std::make_shared<simulated::SharedClock>();
  std::shared_ptr<TurnBoard<Sim>> board = std::make_shared<TurnBoard<Sim>>();
  std::optional<Desk> first{std::in_place, 1, 2, clock, board};
  Desk second{2, 1, clock, board};
};

TEST_CASE_FIXTURE(TwoDesks, "a copy waits for the other manager's copy of the same round") {
  REQUIRE(second.can_wait);
  first->taker.start(&first->turns);
  second.taker.start(&second.turns);
  for (int round = 0; round < 6; ++round) {
    first->begin_round();
    first->taker.after(0, QueueKind::h2d);  // an older end, which the next one replaces
    first->copy(0);
    second.begin_round();
    second.copy(1);
    CHECK(second.last_start() == 2000 * round + 1000);
  }
  CHECK(second.taker.taken() == 6);
  CHECK(second.taker.missed() == 0);
}

TEST_CASE_FIXTURE(TwoDesks, "what is not there is not waited for") {
  second.taker.start(&second.turns);
  first->taker.start(&first->turns);
  SUBCASE("the other one has not queued it") {
    first->begin_round();
    second.begin_round();
    second.copy(1);
    first->copy(0);
  }
  SUBCASE("the other one has not begun a round") {
    second.begin_round();
    second.copy(1);
  }
  SUBCASE("the other one follows another plan") {
    first->turns.number = 8;
    first->taker.start(&first->turns);
    first->begin_round();
    first->copy(0);
    second.begin_round();
    second.copy(1);
  }
  SUBCASE("the other one has left its plan") {
    first->begin_round();
    first->copy(0);
    first->taker.stop();
    second.begin_round();
    second.copy(1);
  }
  SUBCASE("the other one is gone") {
    first->begin_round();
    first->copy(0);
    second.begin_round();
    first.reset();
    second.copy(1);
  }
  CHECK(second.last_start() == 0);
  CHECK(second.taker.taken() == 0);
  CHECK(second.taker.missed() == 1);
}

TEST_CASE_FIXTURE(TwoDesks, "no turns are taken while they pause, or in a plan without turns") {
  first->taker.start(&first->turns);
  first->begin_round();
  first->copy(0);
  SUBCASE("pause") {
    second.taker.start(&second.turns);
    second.pauses = true;
  }
  SUBCASE("none") { second.taker.start(nullptr); }
  CHECK(!second.taker.active());
  second.begin_round();
  second.copy(1);
  CHECK(second.last_start() == 0);
  CHECK(second.taker.taken() + second.taker.missed() == 0);
}

TEST_CASE_FIXTURE(TwoDesks, "rounds that belong together stay together, until they drift apart") {
  first->taker.start(&first->turns);
  second.taker.start(&second.turns);
  // The first manager is a round ahead from the second round on, as far as the second one's host can see.
  first->begin_round();
  first->copy(0);
  second.begin_round();
  second.copy(1);
  first->begin_round();
  first->copy(0);
  for (int round = 0; round < 10; ++round) {
    first->begin_round();
    first->copy(0);
    second.begin_round();
    second.copy(1);
    CHECK(second.last_start() == 1000 * (round + 2));  // and not that of the round that was queued last
  }
  // After a while in which its latest round was never the one, it is.
  for (int round = 10; round < 20; ++round) {
    first->begin_round();
    first->copy(0);
    second.begin_round();
    second.copy(1);
  }
  CHECK(second.last_start() == 1000 * 22);
  CHECK(second.taker.missed() == 0);
}

TEST_CASE("managers on devices with clocks of their own cannot wait for each other") {
  const auto board = std::make_shared<TurnBoard<Sim>>();
  const Desk first(1, 2, std::make_shared<simulated::SharedClock>(), board);
  const Desk second(2, 1, std::make_shared<simulated::SharedClock>(), board);
  CHECK(first.can_wait);
  CHECK(!second.can_wait);
  CHECK(!board->all_can_wait());
  board->remove(2);
  CHECK(board->all_can_wait());
}

}  // namespace swapmm::test::turn_taker_test
