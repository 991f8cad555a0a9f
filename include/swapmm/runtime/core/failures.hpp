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

/// Turns what a backend reports into the facade's exceptions, and remembers what outlasts one call: a lost device,
/// and an error that was found too late for the call it belongs to.
template <Backend B>
class Failures {
 public:
  using Rec = Record<B>;

  explicit Failures(Store<B>& store) : store_(store) { postponed_.reserve(most_postponed); }
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  /// Throws what stands between a caller and the manager.
  void check() {
    check_lost();
    if (unreported_) throw report();
    if (postponed_.empty()) return;
    const std::exception_ptr oldest = postponed_.front().error;
    postponed_.erase(postponed_.begin());
    std::rethrow_exception(oldest);
  }
  void check_lost() const {
    if (lost_) throw DeviceLost(lost_text_);
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
      case BackendError::Kind::device_lost: device_lost(text);
      case BackendError::Kind::out_of_device_memory:
      case BackendError::Kind::out_of_host_memory: throw OutOfMemory(text);
      case BackendError::Kind::failed: break;
    }
    throw BackendError(error.kind, error.code, text);
  }

  [[noreturn]] void device_lost(const std::string& text) {
    note_loss(text);
    throw DeviceLost(lost_text_);
  }

  /// Something that was queued failed. Waits for the rest; then values that were given since by any command may have
  /// come from it, and are undefined. Returns the exception to throw.
  [[nodiscard]] WorkFailed work_failed(const QueueFailure& failure, Promises<B>& promises) {
    std::uint64_t first = failure.label.issue;
    try {
      first = std::min(first, store_.timeline.abandon());
    } catch (const BackendError& error) {
      device_lost("waiting after a failure: " + std::string(error.what()));
    }
    promises.abandon_since(first);
    // Where there is no memory for the text, the next call tells.
    unreported_ =
        Unreported{failure.label, failure.status_error, unreported_ ? std::min(unreported_->first, first) : first};
    return report();
  }

  /// The next call throws this, and does nothing else; of several, each call one. Where there are too many, those go
  /// first that declare no value lost.
  void postpone(std::exception_ptr error, bool declares_losses) noexcept {
    if (lost_) return;
    if (postponed_.size() == most_postponed) {
      const auto other = std::find_if(postponed_.begin(), postponed_.end(),
                                      [](const Postponed& each) { return !each.declares_losses; });
      if (!declares_losses || other == postponed_.end()) return;
      postponed_.erase(other);
    }
    postponed_.push_back({std::move(error), declares_losses});  // room was reserved
  }

  /// Waits until nothing is in flight; a device that does not even do that is lost.
  void drain_quietly() noexcept {
    try {
      store_.drain();
    } catch (const std::exception& error) {
      note_loss(error.what());
    } catch (...) {
      note_loss("the device does not answer");
    }
  }

 private:
  static constexpr std::size_t most_postponed = 8;
  struct Postponed {
    std::exception_ptr error;
    bool declares_losses;
  };
  // Work that failed: what was given since that issue number is undefined, and nobody knows yet.
  struct Unreported {
    CommandLabel label;
    std::exception_ptr reason;  // why its status is unknown; null: it failed
    std::uint64_t first;
  };

  // The text first: it may find no memory.
  WorkFailed report() {
    const std::uint64_t first = unreported_->first;
    const auto stays = [&](const auto& copy) { return copy.valid && copy.issue < first; };
    const auto goes = [&](const Rec& record) {
      return record.has_value() && !stays(record.device) && !stays(record.host);
    };
    std::vector<std::string> names;
    for (const Rec& record : store_.records) {
      if (record.tensor.alive && goes(record)) names.push_back(record.name);
    }
    WorkFailed error(
        describe(unreported_->label) +
        (unreported_->reason ? " may have failed: " + what_of(unreported_->reason) : " failed after it was queued") +
        (names.empty() ? "; no value is lost" : "; undefined from now on: " + name_list(names)));
    for (Rec& record : store_.records) {
      if (goes(record)) record.value.missing_reason = MissingReason::lost;
      record.device.valid = stays(record.device);
      record.host.valid = stays(record.host);
    }
    unreported_.reset();
    return error;
  }

  // The first text stays: every later call throws that one.
  void note_loss(std::string_view text) noexcept {
    if (std::exchange(lost_, true)) return;
    try {
      std::vector<std::string> names;
      for (Rec& record : store_.records) {
        if (record.tensor.alive && record.device.valid && !record.host.valid) names.push_back(record.name);
      }
      lost_text_ = std::string(text) +
                   (names.empty() ? "; no value is lost" : "; values lost with the device: " + name_list(names));
    } catch (...) {  // no memory for the text
    }
  }

  static std::string what_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      return known.what();
    } catch (...) {
      return "an error that says nothing";
    }
  }

  std::string describe(const CommandLabel& label) {
    const auto tensor = [&] {
      const Rec& record = store_.records[label.tensor];
      return "tensor " + in_quotes(record.name) + " (" + std::to_string(record.bytes.value) + " bytes)";
    };
    switch (label.what) {
      case CommandLabel::What::operation: return "operation " + in_quotes(label.name.data());
      case CommandLabel::What::swap_in: return "swap-in of " + tensor();
      case CommandLabel::What::swap_out: return "swap-out of " + tensor();
      case CommandLabel::What::mark: break;
    }
    return "an event behind an operation";
  }

  Store<B>& store_;
  std::vector<Postponed> postponed_;
  std::optional<Unreported> unreported_;
  bool lost_ = false;
  std::string lost_text_ = "the device does not answer";
};

}  // namespace swapmm::runtime
