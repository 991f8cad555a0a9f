// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/promises.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Turns failures of a backend into the facade's exceptions, and keeps those that outlast one call: a lost device, and
/// errors that were found too late for their own call.
template <Backend B>
class Failures {
 public:
  using Rec = Record<B>;

  explicit Failures(Store<B>& store) : store_(store) { postponed_.reserve(most_postponed); }
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  /// Throws the failure that keeps a caller from using the manager, if there is one.
  void check() {
    check_lost();
    if (unreported_) throw report();
    if (postponed_.empty()) return;
    const std::exception_ptr oldest = postponed_.front().error;
    postponed_.erase(postponed_.begin());
    std::rethrow_exception(oldest);
  }
  void check_lost() const {
    if (lost_) throw loss_;
  }
  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] static bool is_device_lost(const std::exception_ptr& error) noexcept {
    try {
      std::rethrow_exception(error);
    } catch (const BackendError& known) {
      return known.kind == BackendError::Kind::device_lost;
    } catch (...) {
      return false;
    }
  }

  [[noreturn]] void backend_failed(const Who& who, const BackendError& error) {
    const std::string text = who.text() + ": " + error.what();
    switch (error.kind) {
      case BackendError::Kind::device_lost: device_is_lost(text, error.code, who.details());
      case BackendError::Kind::out_of_device_memory:
      case BackendError::Kind::out_of_host_memory: throw memory_refused(text, error, who.details());
      case BackendError::Kind::failed: break;
    }
    throw BackendError(error, text, who.details());
  }

  [[noreturn]] void device_is_lost(const std::string& text, long code, ErrorDetails details = {}) {
    note_loss(text, code, std::move(details));
    throw loss_;
  }

  /// Called if queued work failed. Waits for all other work. Values that any command has produced since then may depend
  /// on the failed work, and become undefined. Returns the exception to throw.
  [[nodiscard]] WorkFailed work_failed(const QueueFailure& failure, Promises<B>& promises) {
    std::uint64_t first = failure.label.issue;
    try {
      first = std::min(first, store_.timeline.abandon());
    } catch (const BackendError& error) {
      device_is_lost("waiting after a failure: " + std::string(error.what()), error.code);
    }
    promises.abandon_since(first);
    // If there is no memory for the text, the next call reports it.
    unreported_ = Unreported{failure.label, failure.status_error, failure.cause,
                             unreported_ ? std::min(unreported_->first, first) : first};
    return report();
  }

  /// Stores an error that the next call throws before it does anything else. If several errors are stored, each call
  /// throws one. If there are too many, errors that declare no value lost are discarded first.
  void postpone(std::exception_ptr error, bool declares_losses) noexcept {
    if (postponed_.size() == most_postponed) {
      const auto other = std::find_if(postponed_.begin(), postponed_.end(),
                                      [](const Postponed& each) { return !each.declares_losses; });
      if (!declares_losses || other == postponed_.end()) return;
      postponed_.erase(other);
    }
    postponed_.push_back({std::move(error), declares_losses});  // room was reserved
  }

  /// Waits until nothing is in flight. If the wait fails, the device counts as lost.
  void drain_quietly() noexcept {
    try {
      store_.drain();
    } catch (const BackendError& error) {
      note_loss(error.what(), error.code);
    } catch (const std::exception& error) {
      note_loss(error.what(), 0);
    } catch (...) {
      note_loss(no_answer, 0);
    }
  }

 private:
  static constexpr std::size_t most_postponed = 8;
  struct Postponed {
    std::exception_ptr error;
    bool declares_losses;
  };
  // Work that failed: values produced since that issue number are undefined, which is not reported yet.
  struct Unreported {
    CommandLabel label;
    std::exception_ptr reason;  // why its status is unknown; null if it failed
    std::exception_ptr cause;   // why it failed; null if that is not known
    std::uint64_t first;
  };

  // The text is made first, because its allocation may fail.
  WorkFailed report() {
    const std::uint64_t first = unreported_->first;
    const auto stays = [&](const auto& copy) { return copy.valid && copy.issue < first; };
    const auto goes = [&](const Rec& record) {
      return record.has_value() && !stays(record.device) && !stays(record.host);
    };
    ErrorDetails details = details_of(unreported_->label);
    for (const Rec& record : store_.records) {
      if (record.tensor.alive && goes(record)) details.lost.push_back(name_of(record));
    }
    WorkFailed error =
        runtime::work_failed(work_of(unreported_->label), std::move(details), unreported_->reason, unreported_->cause);
    for (Rec& record : store_.records) {
      if (goes(record)) record.value.missing_reason = MissingReason::lost;
      record.device.valid = stays(record.device);
      record.host.valid = stays(record.host);
    }
    unreported_.reset();
    return error;
  }

  // The first text is kept, and every later call throws it.
  void note_loss(std::string_view text, long code, ErrorDetails details = {}) noexcept {
    if (std::exchange(lost_, true)) return;
    try {
      for (const Rec& record : store_.records) {
        if (record.tensor.alive && record.device.valid && !record.host.valid) details.lost.push_back(name_of(record));
      }
      loss_ = runtime::device_lost(text, std::move(details), code);
    } catch (...) {  // no memory for the text
      loss_.code = code;
    }
  }

  static WorkFailed::Work work_of(const CommandLabel& label) {
    switch (label.what) {
      case CommandLabel::What::operation: return WorkFailed::Work::operation;
      case CommandLabel::What::swap_in: return WorkFailed::Work::swap_in;
      case CommandLabel::What::swap_out: return WorkFailed::Work::swap_out;
      case CommandLabel::What::mark: break;
    }
    return WorkFailed::Work::unknown;
  }

  ErrorDetails details_of(const CommandLabel& label) {
    ErrorDetails details;
    details.operation = label.name.data();  // empty if it is not an operation
    if (label.tensor != CommandLabel::no_tensor) details.tensors.push_back(name_of(store_.records[label.tensor]));
    return details;
  }

  Store<B>& store_;
  std::vector<Postponed> postponed_;
  std::optional<Unreported> unreported_;
  bool lost_ = false;
  static constexpr const char* no_answer = "the device does not answer";
  DeviceLost loss_{no_answer};  // thrown once the device is lost; made in advance, because memory may be short then
};

}  // namespace swapmm::runtime
