// SPDX-License-Identifier: Apache-2.0
#pragma once

// A manager's copies that take turns with another manager's, on simulated devices with one clock.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/runtime/joint/turn_board.hpp>
#include <swapmm/runtime/joint/turn_taker.hpp>

namespace swapmm::test {

inline constexpr Bytes turn_copy{1000};  ///< a microsecond

[[nodiscard]] inline simulated::Options options_for_turns(const std::shared_ptr<simulated::SharedClock>& clock) {
  simulated::Options options;
  options.clock = clock;
  options.log = true;
  return options;
}

/// A manager: step 0 of its plan publishes a copy, step 1 waits for that of the other manager.
template <class B>
class TurnDesk {
 public:
  TurnDesk(runtime::LinkMemberId member, runtime::LinkMemberId other, B device,
           const std::shared_ptr<runtime::TurnBoard<B>>& board)
      : backend(std::move(device)),
        taker(backend),
        memory_(backend.allocate(turn_copy)),
        host_(backend.allocate_host(turn_copy, HostKind::pinned)),
        place_(backend.address(memory_, Bytes{}, turn_copy)),
        event_(backend.make_event()) {
    board->add(member, backend);
    can_wait = board->all_can_wait();
    taker.join(board, member, pauses);
    turns.number = 7;
    turns.members = {member, other};
    turns.slots = 1;
    turns.of_step = {{0, 0, 0}, {runtime::PlanTurns::none, 0, 1}};
    turns.waits = {{1, 0}};
  }
  void copy(std::uint32_t step) {
    if (taker.active()) taker.before(step, QueueKind::h2d);
    backend.copy_to_device(place_, host_, Bytes{}, turn_copy, {}, event_);
    if (taker.active()) taker.after(step, QueueKind::h2d);
  }
  void begin_round() {
    if (taker.active()) taker.begin_round();
  }
  /// When the last copy started, by the log of the simulated device; -1: none did.
  [[nodiscard]] std::int64_t last_start(const simulated::Backend& device) {
    backend.finish();
    std::int64_t start = -1;
    for (const simulated::LogEntry& entry : device.log()) {
      if (entry.kind == simulated::CommandKind::copy_to_device) start = entry.start.count();
    }
    return start;
  }
  /// Of the last copy.
  [[nodiscard]] EventStatus status() { return backend.status(event_); }

  bool pauses = false;
  bool can_wait = false;
  runtime::PlanTurns turns;
  B backend;
  runtime::TurnTaker<B> taker;

 private:
  typename B::DeviceMemory memory_;
  typename B::HostMemory host_;
  typename B::Address place_;
  typename B::Event event_;
};

}  // namespace swapmm::test
