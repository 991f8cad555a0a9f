// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/order/backend_scopes.hpp>
#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// Describes a queued command until the host has seen its end, so that an error can name it.
struct CommandLabel {
  enum class What : std::uint8_t { mark, operation, swap_in, swap_out };
  static constexpr std::uint32_t no_tensor = 0xFFFFFFFFU;

  What what = What::mark;
  std::uint32_t tensor = no_tensor;  ///< record id
  std::uint64_t issue = 0;           ///< position among everything ever issued, over all queues
  std::uint32_t timing = 0;          ///< label of the duration; 0 if it is not measured
  std::array<char, 40> name{};       ///< name of an operation, truncated

  void set_name(std::string_view text) {
    const std::size_t length = std::min(text.size(), name.size() - 1);
    std::memcpy(name.data(), text.data(), length);
    name[length] = '\0';
  }
};

/// A command that failed after it was queued.
struct QueueFailure {
  QueueKind queue;
  CommandLabel label;
  std::exception_ptr status_error =
      nullptr;                         ///< if set, the command may have failed, and this is why its status is unknown
  std::exception_ptr cause = nullptr;  ///< if set, why it failed
};

/// The recorded points of the queues: numbers that map to rings of events, which are made once. Tracks the points
/// that each queue already comes after, and so returns the fewest waits that satisfy a need.
///
/// The host runs ahead of the device by at most the size of a ring; at that bound it waits for the device.
template <Backend B>
class Timeline {
 public:
  using Event = typename B::Event;

  struct Slot {
    explicit Slot(B& backend) : event(backend.make_event()), start(backend.make_event()) {}
    Event event;
    Event start;  // recorded only while timing
    Clock implied;
    CommandLabel label;
  };

  /// The events to wait for, and the points that the queue comes after once it has waited.
  struct Waits {
    std::array<const Event*, queue_count> events{};
    std::size_t count = 0;
    Clock gained;
    [[nodiscard]] std::span<const Event* const> span() const { return {events.data(), count}; }
  };

  /// `with_file`: the queues of FileBackend exist; `neighbour_paths`: so many pairs of those of NeighbourBackend.
  Timeline(B& backend, std::size_t events_per_queue, bool with_file = false, std::size_t neighbour_paths = 0)
      : backend_(backend) {
    for (const QueueKind queue : all_queues) {
      const bool exists = index(queue) < base_queue_count ||
                          (is_of_neighbours(queue) ? neighbour_path(queue) < neighbour_paths : with_file);
      if (exists) fill(lanes_[index(queue)].ring, events_per_queue);
    }
  }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Whether the manager uses the queue.
  [[nodiscard]] bool has(QueueKind queue) const { return !lanes_[index(queue)].ring.empty(); }
  /// Makes room for this many recorded points in flight. Makes events; waits for the device.
  void reserve(QueueKind queue, std::size_t events) {
    Lane& lane = lanes_[index(queue)];
    if (lane.ring.size() >= events) return;
    confirm(queue, lane.issued);  // positions change with the size: nothing may be in flight
    std::vector<Slot> larger;
    fill(larger, events);
    lane.ring = std::move(larger);
  }

  [[nodiscard]] QueuePoint issued(QueueKind queue) const { return lanes_[index(queue)].issued; }
  [[nodiscard]] QueuePoint confirmed(QueueKind queue) const { return lanes_[index(queue)].confirmed; }
  /// The last point of each queue.
  [[nodiscard]] Clock points() const {
    Clock all;
    for (const QueueKind queue : all_queues) {
      if (issued(queue) != 0) all.set(queue, issued(queue));
    }
    return all;
  }
  /// A clock after all queued work. If the last work has no point after it yet, this is the next point.
  [[nodiscard]] Clock everything() const {
    Clock all = points();
    for (const QueueKind queue : all_queues) {
      if (lanes_[index(queue)].unrecorded != 0) all.set(queue, issued(queue) + 1);
    }
    return all;
  }
  [[nodiscard]] std::uint64_t host_waits() const { return host_waits_; }
  [[nodiscard]] std::chrono::nanoseconds host_wait_time() const { return host_wait_time_; }
  [[nodiscard]] std::uint64_t waits_queued() const { return waits_queued_; }
  [[nodiscard]] std::uint64_t next_issue() { return ++issue_; }
  [[nodiscard]] std::uint64_t last_issue() const { return issue_; }

  /// What `queue` must wait for so that its next command comes after `needs`. Points that were not recorded yet
  /// are recorded now. Nothing is queued on `queue` itself; call gained() once the command was accepted.
  [[nodiscard]] Waits waits(QueueKind queue, const Clock& needs) {
    if (needs.has_others()) [[unlikely]]
      return waits_among_all(queue, needs);
    return waits_among<base_queue_count>(queue, needs);
  }

  /// Called after the command with these waits was queued.
  void gained(QueueKind queue, const Waits& waits) {
    lanes_[index(queue)].known.join(waits.gained);
    waits_queued_ += waits.count;
  }

  /// Called when a command of `queue` waits for the last command of `other`, which has no point and came after
  /// `gained`: what that one comes after, this one comes after, too.
  void follow(QueueKind queue, QueueKind other, const Clock& gained) {
    lanes_[index(queue)].known.join(lanes_[index(other)].known);
    lanes_[index(queue)].known.join(gained);
  }

  /// The slot whose event the next recorded command of the queue takes. May wait for the device (run-ahead).
  [[nodiscard]] Slot& next(QueueKind queue) {
    Lane& lane = lanes_[index(queue)];
    const QueuePoint point = lane.issued + 1;
    if (point > lane.ring.size()) confirm(queue, point - lane.ring.size());
    return lane.ring[point & (lane.ring.size() - 1)];
  }

  /// Called after the event of next() was recorded.
  QueuePoint commit(QueueKind queue, const CommandLabel& label) {
    Lane& lane = lanes_[index(queue)];
    Slot& taken = lane.ring[(lane.issued + 1) & (lane.ring.size() - 1)];
    ++lane.issued;
    taken.implied = lane.known;
    taken.implied.set(queue, lane.issued);
    lane.known.set(queue, lane.issued);
    lane.unflushed = true;
    taken.label = label;
    // The point also reports the status of earlier work without a point, so a failure may come from that work.
    if (lane.unrecorded != 0) taken.label.issue = std::min(label.issue, lane.unrecorded);
    lane.unrecorded = 0;
    return lane.issued;
  }

  /// The event for work on the compute queue that has no point, and whose event alone tells whether it failed.
  [[nodiscard]] Event& next_without_point() {
    if (without_point_ == lone_.size()) {
      std::vector<Lone> larger;
      larger.reserve(std::max<std::size_t>(16, 2 * lone_.size()));
      for (std::size_t i = 0; i < lone_.size(); ++i) larger.push_back(std::move(lone(i)));
      while (larger.size() < larger.capacity()) larger.push_back({backend_.make_event(), {}, 0});
      lone_.swap(larger);
      first_lone_ = 0;
    }
    return lone(without_point_).event;
  }
  /// Called after that event was recorded. It is looked at together with the next point of the queue.
  void commit_without_point(const CommandLabel& label) {
    lone(without_point_).label = label;
    lone(without_point_).before = issued(QueueKind::compute) + 1;
    ++without_point_;
    unrecorded(QueueKind::compute, label.issue);
  }

  /// Records a point after everything queued so far on the queue.
  void mark(QueueKind queue) {
    Slot& taken = next(queue);
    backend_.record(queue, taken.event);
    CommandLabel label;
    label.issue = issue_;
    commit(queue, label);
  }

  /// Records a point on the queue after `needs`.
  void mark_after(QueueKind queue, const Clock& needs) {
    const Waits before = waits(queue, needs);
    if (before.count != 0) backend_.wait(queue, before.span());
    gained(queue, before);
    mark(queue);
  }
  /// Records a point on each queue of the device.
  void mark_all() {
    for (const QueueKind queue : device_queues) {
      if (has(queue)) mark(queue);
    }
  }

  /// Waits on the host until all of `needs` has ended. Throws QueueFailure if any of that work, or work that it comes
  /// after, failed.
  void host_wait(const Clock& needs) {
    needs.for_each([&](QueueKind queue) {
      if (needs[queue] <= confirmed(queue)) return;
      if (needs[queue] > issued(queue)) mark(queue);
      confirm(queue, needs[queue]);
    });
  }

  /// Returns true, and confirms the points, if all of `needs` has ended. Never waits.
  [[nodiscard]] bool ended(const Clock& needs) {
    bool all = true;
    needs.for_each([&](QueueKind queue) {
      if (!all || needs[queue] <= confirmed(queue)) return;
      all = needs[queue] <= issued(queue) && backend_.status(slot(queue, needs[queue]).event) != EventStatus::running;
    });
    if (all) host_wait(needs);
    return all;
  }

  /// Waits for all work, failed or not, and confirms it: afterwards nothing is in flight. Returns the issue number of
  /// the first command that failed, or the highest number if none failed. Throws only if waiting itself fails.
  std::uint64_t abandon() {
    std::uint64_t first = ~std::uint64_t{0};
    for (const QueueKind queue : device_queues) {
      if (!has(queue)) continue;
      // Without this point, a failure of work without a point would not be noticed here, and the next point would
      // report it. Some of that work may come from a call that threw.
      const std::uint64_t unrecorded = lanes_[index(queue)].unrecorded;
      try {
        mark(queue);
      } catch (...) {
        if (unrecorded != 0) first = std::min(first, unrecorded);
      }
    }
    backend_.finish();
    for (const QueueKind queue : all_queues) {
      Lane& lane = lanes_[index(queue)];
      for (QueuePoint point = lane.confirmed + 1; point <= lane.issued; ++point) {
        const Slot& passed = slot(queue, point);
        if (may_have_failed(passed.event)) first = std::min(first, passed.label.issue);
      }
      lane.confirmed = lane.issued;
      lane.unrecorded = 0;  // all work has ended
    }
    for (; without_point_ != 0; drop_lone()) {
      if (may_have_failed(lone(0).event)) first = std::min(first, lone(0).label.issue);
    }
    return first;
  }

  void flush(QueueKind queue) {
    Lane& lane = lanes_[index(queue)];
    if (!lane.unflushed || !is_of_device(queue)) return;
    backend_.flush(queue);
    lane.unflushed = false;
  }

  /// Called after work with this issue number was queued on the queue without a recorded point.
  void unrecorded(QueueKind queue, std::uint64_t issue) {
    Lane& lane = lanes_[index(queue)];
    lane.unflushed = true;
    if (lane.unrecorded == 0) lane.unrecorded = issue;
  }

  /// Passes the durations of labelled commands to sink(timing, duration) as they are confirmed.
  template <class Sink>
  void collect(Sink&& sink) {
    for (const auto& [timing, duration] : measured_) sink(timing, duration);
    measured_.clear();
  }

 private:
  struct Lane {
    std::vector<Slot> ring;
    QueuePoint issued = 0;
    QueuePoint confirmed = 0;
    Clock known;  // what the next command of this queue comes after
    bool unflushed = false;
    std::uint64_t unrecorded = 0;  // issue number of the first work after the last point; 0: none
  };

  [[gnu::cold, gnu::noinline]] Waits waits_among_all(QueueKind queue, const Clock& needs) {
    return waits_among<queue_count>(queue, needs);
  }

  // `needs` has points in the first `Count` queues only.
  template <std::size_t Count>
  Waits waits_among(QueueKind queue, const Clock& needs) {
    Waits result;
    Lane& lane = lanes_[index(queue)];
    std::array<Slot*, Count> candidates{};
    for (std::size_t i = 0; i < Count; ++i) {
      const QueueKind other = all_queues[i];
      if (other == queue) continue;
      const QueuePoint needed = needs[other];
      if (needed <= lane.known[other] || needed <= confirmed(other)) continue;
      if (needed > issued(other)) mark(other);
      candidates[i] = &slot(other, needed);
    }
    for (std::size_t i = 0; i < Count; ++i) {
      Slot* const candidate = candidates[i];
      if (candidate == nullptr) continue;
      const QueueKind other = all_queues[i];
      bool implied = false;  // by the other candidate: an event that itself came after this one
      for (Slot* const witness : candidates) {
        if (witness != nullptr && witness != candidate && witness->implied[other] >= needs[other]) implied = true;
      }
      if (implied) continue;
      if (backend_.capabilities().failures_stick || backend_.status(candidate->event) != EventStatus::failed) {
        flush(other);
        result.events[result.count++] = &candidate->event;
        result.gained.join(candidate->implied);
      } else {
        confirm(other, needs[other]);  // throws QueueFailure
      }
    }
    return result;
  }

  // Work without a point: its event, and the point that comes after it.
  struct Lone {
    Event event;
    CommandLabel label;
    QueuePoint before;
  };
  Lone& lone(std::size_t i) { return lone_[(first_lone_ + i) % lone_.size()]; }
  void drop_lone() {
    first_lone_ = (first_lone_ + 1) % lone_.size();
    --without_point_;
  }

  void fill(std::vector<Slot>& ring, std::size_t events) {
    events = std::bit_ceil(events);  // positions by masking
    ring.reserve(events);
    while (ring.size() < events) ring.emplace_back(backend_);
  }

  // The work has ended. A query that fails is tried once more. An unknown status counts as failure.
  bool may_have_failed(const Event& event) {
    for (int tries = 0; tries < 2; ++tries) {
      try {
        return backend_.status(event) == EventStatus::failed;
      } catch (const BackendError& error) {
        if (error.kind == BackendError::Kind::device_lost) throw;
      }
    }
    return true;
  }

  Slot& slot(QueueKind queue, QueuePoint point) {
    Lane& lane = lanes_[index(queue)];
    return lane.ring[point & (lane.ring.size() - 1)];
  }

  // Waits for point `until`, then checks each command up to it, and the commands that those come after. A failure
  // upstream must not pass as success downstream, whatever the API does with dependent commands.
  void confirm(QueueKind queue, QueuePoint until) {
    if (until <= confirmed(queue)) return;
    look(queue, until);
    // A point's clock lists all of its predecessors, direct or not, so one check of each other queue is enough.
    const Clock& seen = slot(queue, until).implied;
    seen.for_each([&](QueueKind other) {
      if (other != queue) look(other, seen[other]);
    });
    seen.for_each([&](QueueKind each) {
      Lane& lane = lanes_[index(each)];
      for (; lane.confirmed < seen[each]; ++lane.confirmed) measure(slot(each, lane.confirmed + 1));
    });
  }

  // Waits for point `until` if it has not ended; throws if a command up to it failed.
  void look(QueueKind queue, QueuePoint until) {
    Lane& lane = lanes_[index(queue)];
    if (until <= lane.confirmed) return;
    Slot& last = slot(queue, until);
    EventStatus status = backend_.status(last.event);
    if (status == EventStatus::running) {
      ++host_waits_;
      flush(queue);
      [[maybe_unused]] const auto around = annotate(backend_, AnnotationKind::host_wait, last.label.name.data());
      const auto begin = std::chrono::steady_clock::now();
      try {
        backend_.wait(last.event);
        status = EventStatus::complete;
      } catch (const BackendError& error) {
        if (error.kind == BackendError::Kind::device_lost) throw;
        // The event tells whether the command failed, or only the call that waited for it.
        status = backend_.status(last.event);
        if (status == EventStatus::running) throw;
      }
      host_wait_time_ += std::chrono::steady_clock::now() - begin;
    }
    if (backend_.capabilities().failures_stick && is_of_device(queue)) {
      if (status == EventStatus::failed) throw QueueFailure{queue, last.label};
    } else {
      for (QueuePoint point = lane.confirmed + 1; point <= until; ++point) {
        Slot& passed = slot(queue, point);
        const EventStatus seen = point == until ? status : backend_.status(passed.event);
        if (seen == EventStatus::failed) throw QueueFailure{queue, passed.label, nullptr, cause_of(queue, passed)};
      }
    }
    if (queue == QueueKind::compute && without_point_ != 0) [[unlikely]]
      look_without_point(until);
  }

  // The work before point `until` has ended.
  void look_without_point(QueuePoint until) {
    while (without_point_ != 0 && lone(0).before <= until) {
      const bool failed = backend_.status(lone(0).event) == EventStatus::failed;
      const CommandLabel label = lone(0).label;
      drop_lone();
      if (failed) throw QueueFailure{QueueKind::compute, label};
    }
  }

  // Only files tell why a command failed.
  std::exception_ptr cause_of(QueueKind queue, const Slot& failed) {
    if (is_of_device(queue)) return nullptr;
    try {
      backend_.wait(failed.event);
    } catch (const BackendError&) {
      return std::current_exception();
    }
    return nullptr;
  }

  void measure(Slot& passed) {
    if (passed.label.timing == 0) return;
    if (const auto duration = backend_.elapsed(passed.start, passed.event)) {
      measured_.emplace_back(passed.label.timing, *duration);
    }
  }

  [[nodiscard]] static bool is_of_device(QueueKind queue) { return index(queue) < device_queue_count; }

  B& backend_;
  std::array<Lane, queue_count> lanes_;
  std::vector<Lone> lone_;         // a ring
  std::size_t first_lone_ = 0;     // its oldest entry
  std::size_t without_point_ = 0;  // entries
  std::vector<std::pair<std::uint32_t, std::chrono::nanoseconds>> measured_;
  std::uint64_t issue_ = 0;
  std::uint64_t host_waits_ = 0;
  std::chrono::nanoseconds host_wait_time_{0};
  std::uint64_t waits_queued_ = 0;
};

}  // namespace swapmm::runtime
