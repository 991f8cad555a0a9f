// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// Records what runs on the device at which time, and how long bytes are taken. It uses events of its own in addition
/// to those that keep the order, so the order does not change. Times are known only once all work has ended. Until
/// then, bytes are taken and freed at clocks, as everywhere in the runtime.
template <Backend B>
class Profiler {
 public:
  explicit Profiler(B& backend) : backend_(backend) {}
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  [[nodiscard]] bool active() const { return active_; }

  /// The time at which bytes are taken. With `after_clock`, they are taken after a clock. Bytes for an operation on
  /// demand use `with_next_operation`, because their clock only tells when they became free.
  enum class When : std::uint8_t { after_clock, with_next_operation };

  // ---- what runs: work is timed from begin() to end(), which record events in its queue before and after it

  /// Starts a profile. Nothing may be in flight. `used` bytes are taken. Throws what the backend throws.
  void start(Bytes used) {
    reset();
    levels_.push_back({{}, When::after_clock, none, none, static_cast<std::int64_t>(used.value), 0});
    origin_ = backend_.make_event();
    backend_.record(QueueKind::compute, *origin_);
    active_ = true;
  }

  /// Called after the work's waits and before the work itself. If it throws what the backend throws, nothing has begun.
  void begin(QueueKind queue, std::string_view name, Bytes bytes, std::uint32_t tensor = none) {
    if (spans_.size() == spans_.capacity()) spans_.reserve(2 * spans_.size() + 64);
    Span span{queue, std::string(name), bytes, backend_.make_event(), backend_.make_event(), 0, false};
    backend_.record(queue, span.start);
    spans_.push_back(std::move(span));
    if (queue == QueueKind::compute) ++operations_;
    if (copies_in(queue)) arrives(tensor);
  }

  /// Called when the work that began last is queued. `at` is the point at or after its end.
  void end(QueueKind queue, QueuePoint at) noexcept {
    if (spans_.empty()) return;
    Span& span = spans_.back();
    if (span.queue != queue || span.ended) return;
    try {
      backend_.record(queue, span.end);
      span.point = at;
      span.ended = true;
    } catch (...) {
      spoilt_ = std::current_exception();
    }
  }

  void iteration_ended() noexcept {
    try {
      boundaries_.push_back(operations_);
    } catch (...) {
      spoilt_ = std::current_exception();
    }
  }

  // ---- which bytes are taken

  void taken(Bytes bytes, const Clock& after, When when, std::uint32_t tensor = none) noexcept {
    if (active_) add({after, when, tensor, none, static_cast<std::int64_t>(bytes.value), operations_});
  }
  /// `for_next`: the bytes are freed only because the next bytes to be taken need the room.
  void freed(Bytes bytes, const Clock& until, bool for_next = false) noexcept {
    if (!active_) return;
    add({until, When::after_clock, none, none, -static_cast<std::int64_t>(bytes.value), operations_, for_next});
  }

  // ---- the result

  /// Ends the profile and returns it. All work must have ended. Throws failures that occurred while recording.
  [[nodiscard]] Profile stop() {
    active_ = false;
    if (spoilt_ != nullptr) std::rethrow_exception(std::exchange(spoilt_, nullptr));
    Profile profile;
    measure(profile);
    place_levels(profile);
    std::stable_sort(profile.spans.begin(), profile.spans.end(),
                     [](const ProfileSpan& a, const ProfileSpan& b) { return a.start < b.start; });
    reset();
    return profile;
  }

  void reset() noexcept {
    active_ = false;
    spoilt_ = nullptr;
    spans_.clear();
    levels_.clear();
    boundaries_.clear();
    operations_ = 0;
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFFU;

  struct Span {
    QueueKind queue;
    std::string name;
    Bytes bytes;
    typename B::Event start;
    typename B::Event end;
    QueuePoint point;
    bool ended;  // queued, not given up
  };
  struct Level {
    Clock at;
    When when = When::after_clock;
    std::uint32_t tensor = none;
    std::uint32_t copy = none;  // the span that copies the value in: the bytes are taken from its start
    std::int64_t change = 0;
    std::size_t operation = 0;  // number of operation spans before it
    bool for_next = false;
  };

  void add(Level level) noexcept {
    try {
      levels_.push_back(level);
    } catch (...) {
      spoilt_ = std::current_exception();
    }
  }

  // Called when a copy brings the value of a tensor for which bytes were taken.
  void arrives(std::uint32_t tensor) {
    for (std::size_t i = levels_.size(); i-- > 0;) {
      if (levels_[i].tensor != tensor || levels_[i].change <= 0) continue;
      if (levels_[i].copy == none) levels_[i].copy = static_cast<std::uint32_t>(spans_.size() - 1);
      return;
    }
  }

  static Lane lane_of(QueueKind queue) {
    // What is done with files is a part of the copy to or from the device.
    if (queue == QueueKind::compute || queue == QueueKind::file_read || queue == QueueKind::file_write) {
      return Lane::compute;
    }
    return copies_in(queue) ? Lane::h2d : Lane::d2h;
  }

  // Finds the times of the spans. Work that was given up, or whose times the driver does not know, has none.
  void measure(Profile& profile) {
    times_.assign(spans_.size(), std::nullopt);
    operation_times_.clear();
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const Span& span = spans_[i];
      if (span.ended) {
        const auto start = backend_.elapsed(*origin_, span.start);
        const auto end = backend_.elapsed(*origin_, span.end);
        if (start && end) {
          times_[i] = ProfileSpan{lane_of(span.queue), span.name, span.bytes, *start, std::max(*start, *end)};
          profile.spans.push_back(*times_[i]);
        }
      }
      if (span.queue == QueueKind::compute) operation_times_.push_back(times_[i]);
    }
    std::chrono::nanoseconds latest{0};
    std::size_t operation = 0;
    for (const std::size_t boundary : boundaries_) {
      for (; operation < boundary; ++operation) {
        if (operation_times_[operation]) latest = std::max(latest, operation_times_[operation]->end);
      }
      profile.iteration_ends.push_back(latest);
    }
  }

  // The end times of one queue's work, by point. at() returns the time at which all work up to a point had ended.
  struct Ends {
    std::vector<std::pair<QueuePoint, std::chrono::nanoseconds>> by_point;
    [[nodiscard]] std::chrono::nanoseconds at(QueuePoint point) const {
      const auto after = std::upper_bound(by_point.begin(), by_point.end(), point,
                                          [](QueuePoint wanted, const auto& entry) { return wanted < entry.first; });
      return after == by_point.begin() ? std::chrono::nanoseconds{0} : std::prev(after)->second;
    }
  };

  void place_levels(Profile& profile) {
    std::array<Ends, queue_count> ends;
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      if (!times_[i]) continue;
      auto& of_queue = ends[index(spans_[i].queue)].by_point;
      const std::chrono::nanoseconds before = of_queue.empty() ? std::chrono::nanoseconds{0} : of_queue.back().second;
      of_queue.emplace_back(spans_[i].point, std::max(before, times_[i]->end));
    }
    const auto time_of = [&](const Clock& clock) {
      std::chrono::nanoseconds time{0};
      for (const QueueKind queue : all_queues) time = std::max(time, ends[index(queue)].at(clock[queue]));
      return time;
    };
    struct Change {
      std::chrono::nanoseconds time;
      std::int64_t bytes;
    };
    std::vector<Change> changes(levels_.size());
    // The earliest time at which a later level takes bytes.
    std::chrono::nanoseconds next_taken = std::chrono::nanoseconds::max();
    for (std::size_t i = levels_.size(); i-- > 0;) {
      const Level& level = levels_[i];
      std::chrono::nanoseconds time = time_of(level.at);
      if (level.copy != none && times_[level.copy]) {
        time = std::max(time, times_[level.copy]->start);
      } else if (level.when == When::with_next_operation && level.operation < operation_times_.size() &&
                 operation_times_[level.operation]) {
        time = std::max(time, operation_times_[level.operation]->start);
      }
      if (level.for_next && next_taken != std::chrono::nanoseconds::max()) time = std::max(time, next_taken);
      if (level.change > 0) next_taken = std::min(next_taken, time);
      changes[i] = {time, level.change};
    }
    // Changes at the same time make one level, so their order does not matter.
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
    std::int64_t used = 0;
    for (const Change& change : changes) {
      used += change.bytes;
      const Bytes now{static_cast<std::uint64_t>(std::max<std::int64_t>(used, 0))};
      if (!profile.levels.empty() && profile.levels.back().time == change.time) {
        profile.levels.back().used = now;
      } else {
        profile.levels.push_back({change.time, now});
      }
    }
  }

  B& backend_;
  bool active_ = false;
  std::optional<typename B::Event> origin_;
  std::vector<Span> spans_;
  std::vector<Level> levels_;
  std::vector<std::size_t> boundaries_;  // number of operations before the end of each iteration
  std::size_t operations_ = 0;
  std::exception_ptr spoilt_;
  std::vector<std::optional<ProfileSpan>> times_;            // of spans_
  std::vector<std::optional<ProfileSpan>> operation_times_;  // of the operations in spans_
};

}  // namespace swapmm::runtime
