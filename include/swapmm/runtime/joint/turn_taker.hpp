// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/joint/plan_turns.hpp>
#include <swapmm/runtime/joint/turn_board.hpp>

namespace swapmm::runtime {

/// Lets the copies of a followed plan take turns with those of other managers. A turn only says who goes first, so
/// what cannot be waited for is not: a manager that does not follow its part of the joint plan, or has not queued the
/// copy yet, holds up nobody.
template <Backend B>
class TurnTaker {
 public:
  explicit TurnTaker(B& backend) : backend_(backend) {}
  TurnTaker(const TurnTaker&) = delete;
  TurnTaker& operator=(const TurnTaker&) = delete;
  ~TurnTaker() {
    if (board_ != nullptr) board_->remove(member_);
  }

  /// Takes part. `pauses`: while it is true, no turns are taken.
  void join(std::shared_ptr<TurnBoard<B>> board, LinkMemberId member, const bool& pauses) {
    board_ = std::move(board);
    member_ = member;
    pauses_ = &pauses;
  }

  /// Begins a plan, whose turns are null if it has none. They must outlive stop(). Makes events.
  void start(const PlanTurns* turns) {
    stop();
    if (board_ == nullptr || turns == nullptr) return;
    board_->start(member_, turns->number, turns->slots, backend_);
    others_.assign(turns->members.size(), {});
    round_ = 0;
    turns_ = turns;
  }
  void stop() noexcept {
    if (std::exchange(turns_, nullptr) != nullptr) board_->stop(member_);
  }
  /// True if steps may have turns.
  [[nodiscard]] bool active() const { return turns_ != nullptr && !*pauses_; }

  /// Begins a round, and finds which rounds of the others it belongs to.
  void begin_round() {
    board_->begin_round(member_);
    ++round_;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      if (turns_->members[i] != member_) others_[i].pair(round_, board_->rounds(turns_->members[i], turns_->number));
    }
  }

  /// Before a step's copy is queued.
  void before(std::uint32_t step, QueueKind queue) {
    const PlanTurns::OfStep& own = turns_->of_step[step];
    for (std::uint32_t i = own.first_wait; i < own.first_wait + own.waits; ++i) {
      const PlanTurns::Wait& wait = turns_->waits[i];
      const Other& other = others_[wait.member];
      const std::int64_t round = static_cast<std::int64_t>(round_) + other.ahead.value_or(0);
      const bool can_wait = other.ahead && round > 0;
      const bool waits = can_wait && without_errors([&] {
                           return board_->wait_for(turns_->members[wait.member], turns_->number,
                                                   static_cast<std::uint64_t>(round), wait.slot, queue, backend_);
                         });
      ++(waits ? taken_ : missed_);
    }
  }
  /// After it was queued.
  void after(std::uint32_t step, QueueKind queue) {
    const std::uint32_t slot = turns_->of_step[step].publishes;
    if (slot == PlanTurns::none) return;
    (void)without_errors([&] {
      board_->publish(member_, slot, queue, backend_);
      return true;
    });
  }

  /// Waits for copies of other managers that were queued so far, and those that were not, because the other manager was
  /// not there yet.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::uint64_t missed() const { return missed_; }

 private:
  /// Which round of another manager belongs to one's own.
  struct Other {
    std::optional<std::int64_t> ahead;  // its round less one's own
    std::int64_t least_late = std::numeric_limits<std::int64_t>::max();
    int seen = 0;

    // `begun`: the last one that it has begun. It stays the same while the round that is waited for is a recent one.
    // If it is never the latest for a while, the pair has drifted apart, and later rounds belong together.
    void pair(std::uint64_t own, std::optional<std::uint64_t> begun) {
      if (!begun || *begun == 0) {
        ahead.reset();
        return;
      }
      const std::int64_t latest = static_cast<std::int64_t>(*begun) - static_cast<std::int64_t>(own);
      const std::int64_t late = latest - ahead.value_or(latest);
      constexpr int rounds_of_drift = 16;
      least_late = std::min(least_late, late);
      ++seen;
      const bool is_lost = late < 0 || late >= static_cast<std::int64_t>(TurnBoard<B>::depth);
      if (ahead && !is_lost && seen < rounds_of_drift) return;
      ahead = !ahead || is_lost ? latest : *ahead + least_late;
      least_late = std::numeric_limits<std::int64_t>::max();
      seen = 0;
    }
  };

  /// A turn that fails is none.
  template <class Call>
  bool without_errors(Call&& call) {
    try {
      return call();
    } catch (const BackendError& error) {
      if (error.kind == BackendError::Kind::device_lost) throw;
      return false;
    }
  }

  B& backend_;
  std::shared_ptr<TurnBoard<B>> board_;
  LinkMemberId member_ = 0;
  const bool* pauses_ = nullptr;
  const PlanTurns* turns_ = nullptr;
  std::vector<Other> others_;
  std::uint64_t round_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t missed_ = 0;
};

}  // namespace swapmm::runtime
