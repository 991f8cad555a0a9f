// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <swapmm/runtime/observe/log.hpp>
#include <swapmm/runtime/observe/log_tensor.hpp>
#include <swapmm/runtime/timing/timed_copies.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Writes the log of iterations that run on demand, with the times that the device reports. A log stays open until the
/// next iteration begins: host reads between two iterations belong to the previous one.
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
    store_.timed_copies.forget();
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

  /// Called when the iteration is final. Waits for its times. Afterwards the log is complete except for data that the
  /// tensors' owners have. If it throws, the log is still open.
  void close() {
    if (store_.timing) {
      store_.timeline.host_wait(store_.timeline.everything());
      store_.time_for_recorder(false);
      store_.timeline.collect(
          [&](std::uint32_t timing, std::chrono::nanoseconds duration) { measured(timing, duration); });
      store_.end_link_samples();
    }
    open_ = false;
  }
  [[nodiscard]] IterationLog take() {
    IterationLog taken = std::move(log_);
    log_.clear();
    return taken;
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
    event(LogEvent::What::operation, static_cast<std::uint32_t>(log_.operations.size() - 1));
  }
  /// The timing label of the operation logged last.
  [[nodiscard]] std::uint32_t operation_timing() const { return static_cast<std::uint32_t>(log_.operations.size()); }

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

  void measured(std::uint32_t timing, std::chrono::nanoseconds duration) {
    if (TimedCopies::is_label(timing)) {
      const TimedCopies::Copy* const copy = store_.timed_copies.find(timing);
      if (copy == nullptr) return;  // of a log that was given up
      store_.copy_took(copy->queue, copy->size, copy->alike, duration);
    } else if (timing <= log_.operations.size()) {
      log_.operations[timing - 1].duration = duration;
    }
  }

  Store<B>& store_;
  const bool by_producer_;
  IterationLog log_;
  std::string name_;
  bool open_ = false;
  std::uint64_t epoch_ = 0;
  std::uint64_t iteration_ = 0;  // of the log
};

}  // namespace swapmm::runtime
