// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/runtime/observe/late_times.hpp>
#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/observe/log_tensor.hpp>
#include <swapmm/runtime/timing/timed_copies.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Writes the log of iterations that run on demand, with the times that the device reports. A log stays open until the
/// next iteration begins: host reads between two iterations belong to the previous one. Times may come after the log.
template <Backend B>
class Recorder {
 public:
  using Rec = Record<B>;

  /// `by_producer`: see EntranceOptions::identify_by_producer.
  explicit Recorder(Store<B>& store, bool by_producer = false) : store_(store), by_producer_(by_producer) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] bool by_producer() const { return by_producer_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Changes with each log. Records store it to know whether they are in the current log.
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] IterationLog& log() { return log_; }
  [[nodiscard]] bool has_operations() const { return !log_.operations.empty(); }

  void open(std::string_view name, bool with_times) {
    name_.assign(name);
    store_.time_for_recorder(with_times);
    log_.clear();
    log_.timed = with_times;
    iteration_ = store_.iteration;
    ++epoch_;
    open_ = true;
    first_operation_ = next_operation_;
    closed_ = {};
    if (late_.empty()) store_.timed_copies.forget();
  }

  /// Called if an operation failed: the iteration is not a normal one.
  void mark_broken() noexcept { log_.broken = true; }
  [[nodiscard]] bool broken() const { return log_.broken; }

  /// Called if the iteration continues with a plan: nothing is learned from it.
  void abandon() {
    open_ = false;
    store_.time_for_recorder(false);
  }
  void abandon_quietly() noexcept {
    open_ = false;
    store_.timing = false;
  }

  /// Called when the iteration is final. Afterwards the log is complete except for data that the tensors' owners have.
  /// `waits`: for its times, and for those that are late. Without that its times are late: see times_are_of(). If it
  /// throws, the log is still open.
  void close(bool waits = true) {
    if (store_.timing) {
      if (waits) store_.timeline.host_wait(store_.timeline.everything());
      store_.time_for_recorder(false);
      collect_times();
      if (waits) {
        store_.end_link_samples();
      } else {
        times_come_later();
      }
    }
    last_was_late_ = log_.times_are_late;
    open_ = false;
  }
  [[nodiscard]] IterationLog take() {
    IterationLog taken = std::move(log_);
    log_.clear();
    return taken;
  }

  // ---- times that are late

  /// Whether the times of the log that was closed last were late: then the device was not idle when the next one began.
  [[nodiscard]] bool last_was_late() const { return last_was_late_; }

  /// Called once the book has taken the log: its late times, if there are any, are of that sequence. 0: nobody needs
  /// them.
  void times_are_of(std::uint64_t sequence) {
    if (closed_.durations.empty()) return;
    closed_.sequence = sequence;
    if (sequence != 0) late_.add(std::move(closed_));
    closed_ = {};
  }
  /// Passes late times to sink(sequence, durations), log by log, oldest first, as far as they are known. Waits only if
  /// there are many logs, and then for the oldest. Throws failures of their work.
  template <class Sink>
  void collect_late(Sink&& sink) {
    constexpr std::size_t most = 8;
    if (late_.count() >= most) store_.timeline.host_wait(late_.oldest().end);
    while (!late_.empty() && store_.timeline.ended(late_.oldest().end)) {
      collect_times();
      store_.end_link_samples();
      const LateTimes::Log log = late_.take_oldest();
      store_.timed_copies.forget(log.copies);
      sink(log.sequence, log.durations);
    }
  }

  void operation(const Request<B>& request) {
    LogOperation operation;
    operation.name = request.name;
    operation.replayable = request.replayable;
    operation.first_access = static_cast<std::uint32_t>(log_.accesses.size());
    for (const auto& item : request.items) log_.accesses.push_back({tensor(*item.record), item.access});
    if (request.scratch.value != 0) {
      log_.accesses.push_back({static_cast<std::uint32_t>(log_.tensors.size()), Access::write});
      log_.tensors.push_back({.bytes = request.scratch, .name = std::string(request.name) + ".scratch"});
    }
    operation.access_count = static_cast<std::uint32_t>(log_.accesses.size()) - operation.first_access;
    log_.operations.push_back(std::move(operation));
    next_operation_ = first_operation_ + log_.operations.size();  // others may have written to the log
    event(LogEvent::What::operation, static_cast<std::uint32_t>(log_.operations.size() - 1));
  }
  /// The timing label of the operation logged last.
  [[nodiscard]] std::uint32_t operation_timing() const { return label_of(next_operation_ - 1); }

  void upload(Rec& record) { event(LogEvent::What::upload, tensor(record)); }
  void download(Rec& record) { event(LogEvent::What::download, tensor(record)); }

  /// See Core::note_wait().
  void wait(std::uint32_t open) {
    if (!open_) return;
    const auto calls = static_cast<std::uint32_t>(log_.operations.size());
    if (!log_.waits.empty() && log_.waits.back().calls == calls && log_.waits.back().open <= open) return;
    log_.waits.push_back({calls, open});
  }
  /// Called when the tensor's handle is destroyed.
  void end(const Rec& record) noexcept try {
    if (open_ && !by_producer_ && record.log.epoch == epoch_) {
      log_.tensors[record.log.index].ended = LogWait::moment(log_.operations.size()) + 1;
    }
    const bool is_young = record.tensor.born != 0 && record.tensor.born <= iteration_ &&
                          iteration_ - record.tensor.born <= Producer::most_age;
    if (!open_ || !by_producer_ || !is_young || record.use.fresh) return;
    const std::uint64_t calls = log_.operations.size();
    const bool has_waited = !log_.waits.empty() && log_.waits.back().calls == calls;
    log_.ends.push_back({{static_cast<std::uint32_t>(iteration_ - record.tensor.born), record.tensor.appeared},
                         calls * LogWait::moments_per_call + (has_waited ? 2U : 0U)});
  } catch (...) {  // NOLINT(bugprone-empty-catch): without it, the value counts as never proven dead
  }

 private:
  void event(LogEvent::What what, std::uint32_t index) { log_.events.push_back({what, index}); }

  std::uint32_t tensor(Rec& record) {
    if (record.log.epoch == epoch_) return record.log.index;
    const auto index = static_cast<std::uint32_t>(log_.tensors.size());
    log_.tensors.push_back(log_tensor(record, store_.iteration, index, by_producer_));
    record.log = {epoch_, index};
    return index;
  }

  // Labels of operations are not 0, and below those of copies. They come again after two billion operations.
  [[nodiscard]] static std::uint32_t label_of(std::uint64_t operation) {
    return static_cast<std::uint32_t>(1 + operation % labels);
  }
  // Of the last operation that had the label.
  [[nodiscard]] std::uint64_t operation_of(std::uint32_t label) const {
    const std::uint64_t last = next_operation_ + labels - 1;
    return last - (last - (label - 1)) % labels - labels;
  }

  void collect_times() {
    store_.timeline.collect(
        [&](std::uint32_t timing, std::chrono::nanoseconds duration) { measured(timing, duration); });
  }
  // What is known already comes with the rest.
  void times_come_later() {
    log_.times_are_late = true;
    closed_ = {0, first_operation_, store_.timed_copies.count() - late_.copies(), store_.timeline.everything(), {}};
    for (LogOperation& operation : log_.operations) {
      closed_.durations.push_back(std::exchange(operation.duration, std::chrono::nanoseconds{0}));
    }
  }

  void measured(std::uint32_t timing, std::chrono::nanoseconds duration) {
    if (TimedCopies::is_label(timing)) {
      const TimedCopies::Copy* const copy = store_.timed_copies.find(timing);
      if (copy == nullptr) return;  // of a log that was given up
      store_.copy_took(copy->queue, copy->size, copy->alike, duration);
      return;
    }
    const std::uint64_t operation = operation_of(timing);
    if (operation >= first_operation_ && operation - first_operation_ < log_.operations.size()) {
      log_.operations[operation - first_operation_].duration = duration;
    } else {
      late_.took(operation, duration);
    }
  }

  Store<B>& store_;
  const bool by_producer_;
  IterationLog log_;
  std::string name_;
  bool open_ = false;
  std::uint64_t epoch_ = 0;
  std::uint64_t iteration_ = 0;  // of the log
  static constexpr std::uint64_t labels = TimedCopies::first_label - 1;
  std::uint64_t first_operation_ = 0;  // number of the log's first operation, among all that were logged
  std::uint64_t next_operation_ = 0;
  bool last_was_late_ = false;
  LateTimes::Log closed_;  // times of the log that was closed last, until it is known whose they are
  LateTimes late_;
};

}  // namespace swapmm::runtime
