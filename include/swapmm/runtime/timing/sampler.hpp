// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/timing/encoding_history.hpp>

namespace swapmm::runtime {

/// Times the operations and copies of one round of a followed plan. It uses events of its own in addition to those that
/// keep the order, so the plan's points do not move, and the host waits for nothing. All events are made in advance.
template <Backend B>
class Sampler {
 public:
  explicit Sampler(B& backend) : backend_(backend) {}
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// True while a round is being timed.
  [[nodiscard]] bool active() const { return state_ == State::active; }
  /// True while the times of a round are not known yet.
  [[nodiscard]] bool waiting() const { return state_ == State::waiting; }

  /// Makes room for a round with this many operations and copies; pending times are kept. Makes events.
  void reserve(std::size_t works) {
    works_.reserve(works);
    while (works_.size() < works) works_.push_back({backend_.make_event(), backend_.make_event()});
  }

  void start() noexcept {
    state_ = State::active;
    count_ = 0;
    complete_ = true;
    spoilt_ = nullptr;
    last_.fill(std::nullopt);
  }

  /// Called on the queue after the work's waits and before the work. `alike`: see TimedCopies. Throws what the backend
  /// throws.
  void begin(QueueKind queue, Bytes bytes, std::uint32_t alike = not_encoded) {
    if (count_ == works_.size()) {
      complete_ = false;
      return;
    }
    Work& work = works_[count_];
    work.queue = queue;
    work.bytes = bytes;
    work.alike = alike;
    work.ended = false;
    backend_.record(queue, work.start);
    ++count_;
  }
  /// Called when the work that began last is queued.
  void end(QueueKind queue) noexcept {
    if (count_ == 0 || works_[count_ - 1].queue != queue || works_[count_ - 1].ended) return;
    Work& work = works_[count_ - 1];
    try {
      backend_.record(queue, work.end);
      work.ended = true;
      last_[index(queue)] = count_ - 1;
    } catch (...) {
      complete_ = false;
      spoilt_ = std::current_exception();
    }
  }

  /// Called when the whole round is queued. Throws failures that occurred while it was timed; then there are no times.
  void finish() {
    state_ = complete_ && count_ != 0 ? State::waiting : State::idle;
    if (spoilt_ != nullptr) std::rethrow_exception(std::exchange(spoilt_, nullptr));
  }
  /// Discards the round and its times.
  void give_up() noexcept {
    state_ = State::idle;
    spoilt_ = nullptr;
  }

  /// True if the times are known. Never waits. A round that failed has no times.
  [[nodiscard]] bool ready() {
    if (!waiting()) return false;
    for (const std::optional<std::size_t> last : last_) {
      if (!last) continue;
      const EventStatus status = backend_.status(works_[*last].end);
      if (status == EventStatus::running) return false;
      if (status == EventStatus::complete) continue;
      give_up();
      return false;
    }
    return true;
  }

  /// Calls sink(queue, bytes, alike, time) for each work, in the order in which it was queued; `time` is 0 if the
  /// device does not know it.
  template <class Sink>
  void collect(Sink&& sink) {
    state_ = State::idle;
    for (std::size_t i = 0; i < count_; ++i) {
      const Work& work = works_[i];
      const auto time = work.ended ? backend_.elapsed(work.start, work.end) : std::nullopt;
      sink(work.queue, work.bytes, work.alike, time.value_or(std::chrono::nanoseconds{0}));
    }
  }

 private:
  enum class State { idle, active, waiting };
  struct Work {
    typename B::Event start;
    typename B::Event end;
    QueueKind queue = QueueKind::compute;
    Bytes bytes{};
    std::uint32_t alike = not_encoded;
    bool ended = false;
  };

  B& backend_;
  State state_ = State::idle;
  std::vector<Work> works_;
  std::size_t count_ = 0;  // number of works in this round
  bool complete_ = true;
  std::exception_ptr spoilt_;
  std::array<std::optional<std::size_t>, queue_count> last_{};  // index of the last work of each queue; works_ may grow
};

}  // namespace swapmm::runtime
