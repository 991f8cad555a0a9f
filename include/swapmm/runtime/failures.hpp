// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/runtime/messages.hpp>
#include <swapmm/runtime/promises.hpp>
#include <swapmm/runtime/store.hpp>

namespace swapmm::runtime {

/// Turns what a backend reports into the facade's exceptions, and remembers what outlasts one call: a lost device,
/// and an error that was found too late for the call it belongs to.
template <Backend B>
class Failures {
 public:
  using Rec = Record<B>;

  explicit Failures(Store<B>& store) : store_(store) {}
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  /// Throws what stands between a caller and the manager.
  void check() {
    check_lost();
    if (postponed_ != nullptr) std::rethrow_exception(std::exchange(postponed_, nullptr));
  }
  void check_lost() const {
    if (lost_) throw DeviceLost(lost_text_);
  }
  [[nodiscard]] bool lost() const { return lost_; }

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
    std::vector<std::string> names;
    for (Rec& record : store_.records) {
      const bool had_value = record.has_value();
      if (record.device.valid && record.device.issue >= first) record.device.valid = false;
      if (record.host.valid && record.host.issue >= first) record.host.valid = false;
      if (!had_value || record.has_value()) continue;
      record.absence = Absence::lost;
      if (record.alive) names.push_back(record.name);
    }
    return WorkFailed(describe(failure.label) + " failed after it was queued" +
                      (names.empty() ? "; no value is lost" : "; undefined from now on: " + name_list(names)));
  }

  /// The next call throws this, and does nothing else. The first of several is kept.
  void postpone(std::exception_ptr error) noexcept {
    if (postponed_ == nullptr && !lost_) postponed_ = std::move(error);
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
  // The first text stays: every later call throws that one.
  void note_loss(std::string_view text) noexcept {
    if (std::exchange(lost_, true)) return;
    try {
      std::vector<std::string> names;
      for (Rec& record : store_.records) {
        if (record.alive && record.device.valid && !record.host.valid) names.push_back(record.name);
      }
      lost_text_ = std::string(text) +
                   (names.empty() ? "; no value is lost" : "; values lost with the device: " + name_list(names));
    } catch (...) {  // no memory for the text
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
  std::exception_ptr postponed_;
  bool lost_ = false;
  std::string lost_text_ = "the device does not answer";
};

}  // namespace swapmm::runtime
