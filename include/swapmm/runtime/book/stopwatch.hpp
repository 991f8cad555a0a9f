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

/// Measures the device time of whole rounds, with one event in the compute queue at the beginning of a round and one at
/// its end. The host does not wait: times are collected later. Allocates only on first use.
template <Backend B>
class Stopwatch {
 public:
  explicit Stopwatch(B& backend) : backend_(backend) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// True between begin() and end().
  [[nodiscard]] bool running() const { return running_; }
  /// True if a round can begin: none is running, and a slot is free.
  [[nodiscard]] bool ready() const { return !running_ && head_ - tail_ < slots; }

  /// Begins a round. Timing must be on. begin() and end() throw what the backend throws; then the round is not
  /// measured.
  void begin() {
    for (auto& round : rounds_) {
      if (!round) round.emplace(backend_.make_event(), backend_.make_event());
    }
    backend_.record(QueueKind::compute, at(head_).begin);
    running_ = true;
  }
  /// `plan` is the plan that was followed, or null for on demand. `observed`: the operations of the round were timed,
  /// too.
  void end(const FollowablePtr& plan, bool observed) {
    running_ = false;
    Round& round = at(head_);
    backend_.record(QueueKind::compute, round.end);
    round.plan = plan;
    round.sequence = 0;
    round.observed = observed;
    ++head_;
  }
  /// Discards the running round.
  void drop() noexcept { running_ = false; }
  void drop_all() noexcept {
    running_ = false;
    while (tail_ != head_) at(tail_++).plan = nullptr;
  }

  /// Sets the sequence of the last round on demand, which is known only after the round has ended.
  void name_last(std::uint64_t sequence) noexcept {
    if (head_ != tail_ && at(head_ - 1).plan == nullptr && at(head_ - 1).sequence == 0)
      at(head_ - 1).sequence = sequence;
  }

  /// Calls sink(plan, sequence, observed, time) for each round that has ended; `time` is empty if the device does not
  /// know it. Never waits.
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
