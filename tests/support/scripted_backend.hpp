// SPDX-License-Identifier: Apache-2.0
#pragma once

// A null device that takes the times that a test says: an event has the time at which it was recorded.

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include <swapmm/backend/backend.hpp>

#include "support/null_backend.hpp"

namespace swapmm::test {

/// What a test says of a scripted device. Recordings are counted from 1.
struct Script {
  std::chrono::nanoseconds now{0};
  std::uint64_t ended = std::numeric_limits<std::uint64_t>::max();  ///< recordings up to this one have ended
  std::set<std::uint64_t> failed;                                   ///< of those that have ended
  std::set<std::uint64_t> timeless;
  std::uint64_t refused = 0;  ///< this one throws std::runtime_error
};

class ScriptedBackend : public NullBackend {
 public:
  [[nodiscard]] Script& script() { return state_->script; }
  /// Which recording was made last.
  [[nodiscard]] std::uint64_t recorded() const { return state_->recorded; }

  void record(QueueKind queue, Event& event) {
    const std::uint64_t number = ++state_->recorded;
    if (number == script().refused) throw std::runtime_error("record " + std::to_string(number) + " refused");
    NullBackend::record(queue, event);
    event.at = number;
    state_->at[number] = {queue, script().now};
  }
  [[nodiscard]] QueueKind queue_of(std::uint64_t number) const { return state_->at.at(number).queue; }

  [[nodiscard]] EventStatus status(const Event& event) {
    if (event.at > script().ended) return EventStatus::running;
    return script().failed.contains(event.at) ? EventStatus::failed : EventStatus::complete;
  }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event& from, const Event& to) {
    if (script().timeless.contains(from.at) || script().timeless.contains(to.at)) return std::nullopt;
    return state_->at.at(to.at).time - state_->at.at(from.at).time;
  }

 private:
  struct Recording {
    QueueKind queue = QueueKind::compute;
    std::chrono::nanoseconds time{0};
  };
  struct State {
    Script script;
    std::uint64_t recorded = 0;
    std::map<std::uint64_t, Recording> at;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

static_assert(Backend<ScriptedBackend>);

}  // namespace swapmm::test
