// SPDX-License-Identifier: Apache-2.0
// Copies that wait for copies of another device, while any call of one of the devices fails: a turn that cannot be
// taken is none, and nothing waits for ever.

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <swapmm/backend/testing/fault_plan.hpp>
#include <swapmm/backend/testing/faulty.hpp>

#include "support/faulty_simulated.hpp"
#include "support/turn_desk.hpp"

namespace swapmm::test::turns_test {

using Desk = TurnDesk<FaultySimulated>;

constexpr int rounds = 6;

/// What happens to one of two managers.
struct Case {
  FaultClass fault_class{};
  FaultMode mode{};
  bool of_first = false;  ///< the one that is waited for
  bool sticks = false;    ///< a command that fails loses the device
};

struct Seen {
  std::uint64_t fired = 0;
  std::string problem{};
};

class World {
 public:
  World(const Case& what, std::uint64_t n) : what_(what) {
    Desk& broken = what.of_first ? first_ : second_;
    broken.backend.restart({what.fault_class, what.mode, n});
  }

  Seen run() {
    start(first_);
    start(second_);
    for (int round = 0; round < rounds; ++round) {
      go(first_, 0);
      go(second_, 1);
      if (what_.of_first ? second_gone_ : first_gone_) fail("the other device is lost, too");
    }
    Desk& broken = what_.of_first ? first_ : second_;
    seen_.fired = broken.backend.fired();
    const std::uint64_t turns = second_.taker.taken() + second_.taker.missed();
    if (!second_gone_ && turns > rounds) fail("more turns than there are");
    for (Desk* const desk : {&first_, &second_}) desk->backend.restart({});
    if (!first_gone_ && !second_gone_) goes_on();
    return seen_;
  }

 private:
  simulated::Options options() const {
    simulated::Options options = options_for_turns(clock_);
    options.failures_stick = what_.sticks;
    return options;
  }
  void fail(const std::string& text) {
    if (seen_.problem.empty()) seen_.problem = text;
  }

  /// The plan may not begin, and then the manager takes no turns.
  void start(Desk& desk) {
    try {
      desk.taker.start(&desk.turns);
    } catch (const BackendError&) {
      if (what_.fault_class != FaultClass::event_creation) fail("a plan does not begin");
    }
  }
  /// Turns fail only with the device.
  void go(Desk& desk, std::uint32_t step) {
    bool& gone = &desk == &first_ ? first_gone_ : second_gone_;
    if (gone) return;
    try {
      desk.begin_round();
      desk.copy(step);
    } catch (const BackendError& error) {
      if (error.kind == BackendError::Kind::device_lost) {
        gone = true;
      } else if (what_.fault_class != FaultClass::copy_to_device && what_.mode != FaultMode::lazy) {
        fail(std::string("a turn throws: ") + error.what());
      }
    }
  }
  /// After the fault turns are taken again.
  void goes_on() {
    try {
      for (Desk* const desk : {&first_, &second_}) {
        desk->taker.start(&desk->turns);
        desk->backend.finish();
      }
      const std::uint64_t before = second_.taker.taken();
      first_.begin_round();
      first_.copy(0);
      second_.begin_round();
      second_.copy(1);
      second_.backend.finish();
      if (second_.taker.taken() != before + 1) fail("no turn is taken after the fault");
      if (first_.last_start(first_.backend.inner()) + 1000 > second_.last_start(second_.backend.inner())) {
        fail("after the fault a copy does not wait");
      }
    } catch (const BackendError& error) {
      // A failure of before that no event has told of, or a device that it has taken along.
      if (what_.mode != FaultMode::late && what_.mode != FaultMode::lazy) {
        fail(std::string("after the fault: ") + error.what());
      }
    }
  }

  Case what_;
  std::shared_ptr<simulated::SharedClock> clock_ = std::make_shared<simulated::SharedClock>();
  std::shared_ptr<runtime::TurnBoard<FaultySimulated>> board_ = std::make_shared<runtime::TurnBoard<FaultySimulated>>();
  Desk first_{1, 2, FaultySimulated(simulated::Backend(options())), board_};
  Desk second_{2, 1, FaultySimulated(simulated::Backend(options())), board_};
  bool first_gone_ = false;
  bool second_gone_ = false;
  Seen seen_;
};

TEST_CASE("a turn that cannot be taken is none, whatever call fails on either device") {
  constexpr std::array classes{FaultClass::event_creation, FaultClass::copy_to_device, FaultClass::record,
                               FaultClass::barrier_wait, FaultClass::flush};
  constexpr std::array modes{FaultMode::once,  FaultMode::for_ever, FaultMode::device_lost, FaultMode::late,
                             FaultMode::blind, FaultMode::lazy,     FaultMode::slow};
  std::uint64_t runs = 0;
  for (const FaultClass fault_class : classes) {
    for (const FaultMode mode : modes) {
      if (!why_not(fault_class, mode).empty()) continue;
      for (const bool of_first : {true, false}) {
        for (const bool sticks : {false, true}) {
          for (std::uint64_t n = 1;; ++n) {
            const Seen seen = World({fault_class, mode, of_first, sticks}, n).run();
            CHECK_MESSAGE(seen.problem.empty(),
                          to_string(fault_class) << " " << to_string(mode) << (of_first ? ", of the first" : "")
                                                 << (sticks ? ", sticks" : "") << ", n " << n << ": " << seen.problem);
            if (seen.fired == 0) break;
            ++runs;
          }
        }
      }
    }
  }
  CHECK(runs > 300);
}

}  // namespace swapmm::test::turns_test
