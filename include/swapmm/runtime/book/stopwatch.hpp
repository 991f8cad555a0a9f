// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/book/compiled_plan.hpp>

namespace swapmm::runtime {

/// Device times of whole rounds, by an event in the compute queue where a round begins and one where it ends. The host
/// waits for nothing: times are had later. Allocates when it is first used, and never again.
template <Backend B>
class Stopwatch {
 public:
  explicit Stopwatch(B& backend) : backend_(backend) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// A round has begun, and not ended.
  [[nodiscard]] bool running() const { return running_; }
  /// There is room for another round.
  [[nodiscard]] bool ready() const { return !running_ && head_ - tail_ < slots; }

  /// Timing is on. These throw what the backend throws; then nothing has begun, or ended.
  void begin() {
    for (auto& round : rounds_) {
      if (!round) round.emplace(backend_.make_event(), backend_.make_event());
    }
    backend_.record(QueueKind::compute, at(head_).begin);
    running_ = true;
  }
  /// `plan` is what was followed; none: on demand, `observed` with the times of its operations or not.
  void end(const FollowablePtr& plan, bool observed) {
    running_ = false;
    Round& round = at(head_);
    backend_.record(QueueKind::compute, round.end);
    round.plan = plan;
    round.sequence = 0;
    round.observed = observed;
    ++head_;
  }
  /// The round is none.
  void drop() noexcept { running_ = false; }
  void drop_all() noexcept {
    running_ = false;
    while (tail_ != head_) at(tail_++).plan = nullptr;
  }

  /// What the last round on demand was, is known now.
  void name_last(std::uint64_t sequence) noexcept {
    if (head_ != tail_ && at(head_ - 1).plan == nullptr && at(head_ - 1).sequence == 0)
      at(head_ - 1).sequence = sequence;
  }

  /// sink(plan, sequence, observed, time) for each round whose time can be had; none where the device does not know.
  /// Never waits.
  template <class Sink>
  void collect(Sink&& sink) {
    for (; tail_ != head_; ++tail_) {
      Round& round = at(tail_);
      const EventStatus status = backend_.status(round.end);
      if (status == EventStatus::running) return;
      if (status == EventStatus::complete && (round.plan != nullptr || round.sequence != 0)) {
        sink(round.plan, round.sequence, round.observed, backend_.elapsed(round.begin, round.end));
      }
      round.plan = nullptr;
    }
  }

 private:
  static constexpr std::size_t slots = 8;
  struct Round {
    Round(typename B::Event first, typename B::Event second) : begin(std::move(first)), end(std::move(second)) {}
    typename B::Event begin;
    typename B::Event end;
    FollowablePtr plan;
    std::uint64_t sequence = 0;
    bool observed = false;
  };
  Round& at(std::size_t position) { return *rounds_[position % slots]; }

  B& backend_;
  std::array<std::optional<Round>, slots> rounds_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  bool running_ = false;
};

}  // namespace swapmm::runtime
