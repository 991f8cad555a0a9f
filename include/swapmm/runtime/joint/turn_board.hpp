// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/joint/plan_turns.hpp>

namespace swapmm::runtime {

/// Where managers of one kind of backend publish the ends of copies for which other managers' copies wait. Each manager
/// uses it from its own thread.
template <Backend B>
class TurnBoard {
 public:
  /// Rounds whose ends are kept. The host is at most three rounds ahead of its device.
  static constexpr std::uint64_t depth = 4;

  /// Adds a manager.
  void add(LinkMemberId member, const B& backend) {
    const std::lock_guard lock(mutex_);
    members_[member].backend = &backend;
  }
  /// Whether all managers can wait for each other.
  [[nodiscard]] bool all_can_wait() const {
    if constexpr (TurnTakingBackend<B>) {
      const std::lock_guard lock(mutex_);
      return std::ranges::all_of(members_, [&](const auto& one) {
        return std::ranges::all_of(
            members_, [&](const auto& other) { return one.second.backend->can_wait_for(*other.second.backend); });
      });
    } else {
      return false;
    }
  }
  void remove(LinkMemberId member) noexcept {
    const std::lock_guard lock(mutex_);
    members_.erase(member);
  }

  /// The manager starts a plan that publishes in so many slots. Makes events.
  void start(LinkMemberId member, std::uint64_t plan, std::size_t slots, B& backend) {
    std::vector<Slot> made(slots);
    for (Slot& slot : made) {
      for (auto& event : slot.events) event.emplace(backend.make_event());
    }
    const std::lock_guard lock(mutex_);
    Member& known = members_.at(member);
    known.plan = plan;
    known.rounds = 0;
    known.slots.swap(made);
  }
  /// The manager leaves its plan. What others wait for already stays queued.
  void stop(LinkMemberId member) noexcept {
    std::vector<Slot> gone;
    const std::lock_guard lock(mutex_);
    const auto known = members_.find(member);
    if (known == members_.end()) return;
    known->second.plan = 0;
    known->second.slots.swap(gone);
  }

  /// The manager begins a round of its plan. Rounds count from 1.
  void begin_round(LinkMemberId member) {
    const std::lock_guard lock(mutex_);
    ++members_.at(member).rounds;
  }
  /// The rounds that a manager has begun; none if it does not follow that joint plan.
  [[nodiscard]] std::optional<std::uint64_t> rounds(LinkMemberId member, std::uint64_t plan) const {
    const std::lock_guard lock(mutex_);
    const auto known = members_.find(member);
    if (known == members_.end() || known->second.plan != plan) return std::nullopt;
    return known->second.rounds;
  }

  /// Records the end of everything on the queue so far in a slot of the round that the manager has begun.
  void publish(LinkMemberId member, std::uint32_t slot, QueueKind queue, B& backend) {
    const std::lock_guard lock(mutex_);
    Member& known = members_.at(member);
    Slot& to = known.slots[slot];
    const std::size_t at = known.rounds % depth;
    to.round_of[at] = 0;
    backend.record(queue, *to.events[at]);
    to.round_of[at] = known.rounds;
    backend.flush(queue);  // another manager's host may wait for what comes after this, and this one's not
  }
  /// Makes a queue wait for what another manager has published. False if it has not.
  [[nodiscard]] bool wait_for(LinkMemberId other, std::uint64_t plan, std::uint64_t round, std::uint32_t slot,
                              QueueKind queue, B& backend) {
    const std::lock_guard lock(mutex_);
    const auto known = members_.find(other);
    if (known == members_.end() || known->second.plan != plan || slot >= known->second.slots.size()) return false;
    const Slot& from = known->second.slots[slot];
    const std::size_t at = round % depth;
    if (from.round_of[at] != round) return false;
    const typename B::Event* const event = &*from.events[at];
    backend.wait(queue, {&event, 1});
    return true;
  }

 private:
  struct Slot {
    std::array<std::optional<typename B::Event>, depth> events;
    std::array<std::uint64_t, depth> round_of{};  // 0: nothing
  };
  struct Member {
    const B* backend = nullptr;
    std::uint64_t plan = 0;  // the joint plan that it follows; 0: none
    std::uint64_t rounds = 0;
    std::vector<Slot> slots;
  };

  mutable std::mutex mutex_;
  std::map<LinkMemberId, Member> members_;
};

}  // namespace swapmm::runtime
