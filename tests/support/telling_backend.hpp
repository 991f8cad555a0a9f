// SPDX-License-Identifier: Apache-2.0
#pragma once

// A null device that writes down what it is told, and what was in the memory that it gets back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>

#include "support/null_backend.hpp"

namespace swapmm::test {

/// What a device was told, and what a test says of it. Points are counted from 1.
struct Told {
  std::vector<std::string> calls;    ///< in order
  std::set<std::uint64_t> failed;    ///< points whose work fails
  std::size_t refused_copies = 0;    ///< so many copies, from the next one on, throw
  std::size_t refused_records = 0;   ///< likewise
  std::size_t refused_waits = 0;     ///< likewise, of the host
  std::size_t refused_finishes = 0;  ///< likewise
  BackendError::Kind refusal = BackendError::Kind::failed;
  bool no_host_memory = false;  ///< allocate_host() throws
  std::size_t given_back = 0;   ///< host memories
  std::size_t zero = 0;         ///< of these, those in which all bytes were 0
};

class TellingBackend : public NullBackend {
 public:
  class HostMemory {
   public:
    HostMemory(std::shared_ptr<Told> told, Bytes size)
        : told_(std::move(told)), bytes_(static_cast<std::size_t>(size.value), std::byte{0x5A}) {}
    HostMemory(HostMemory&&) noexcept = default;
    HostMemory& operator=(HostMemory&&) = delete;
    ~HostMemory() {
      if (told_ == nullptr) return;
      ++told_->given_back;
      if (std::all_of(bytes_.begin(), bytes_.end(), [](std::byte byte) { return byte == std::byte{0}; })) ++told_->zero;
    }
    [[nodiscard]] std::byte* data() { return bytes_.data(); }
    [[nodiscard]] const std::byte* data() const { return bytes_.data(); }

   private:
    std::shared_ptr<Told> told_;
    std::vector<std::byte> bytes_;
  };

  /// Its work ends only when the host waits for it.
  explicit TellingBackend(Bytes host_slab = Bytes{0}) : NullBackend(true, Bytes{64}, host_slab) {}

  [[nodiscard]] Told& told() const { return *told_; }
  /// What it was told since the last call of this.
  [[nodiscard]] std::vector<std::string> take_calls() const { return std::exchange(told_->calls, {}); }

  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind) {
    if (told_->no_host_memory) throw BackendError(told_->refusal, -1, "no host memory");
    return {told_, size};
  }
  void copy_to_device(const Address&, const HostMemory&, Bytes, Bytes size, std::span<const Event* const> waits,
                      Event& event) {
    copy("to device", size, waits, event);
  }
  void copy_to_host(HostMemory&, Bytes, const Address&, Bytes size, std::span<const Event* const> waits, Event& event) {
    copy("to host", size, waits, event);
  }
  void wait(QueueKind queue, std::span<const Event* const> waits) {
    NullBackend::wait(queue, waits);
    tell("queue waits for " + std::to_string(waits.size()));
  }
  void record(QueueKind queue, Event& event) {
    tell("record");
    refuse(told_->refused_records);
    NullBackend::record(queue, event);
  }
  void flush(QueueKind) { tell("flush"); }
  [[nodiscard]] EventStatus status(const Event& event) {
    const EventStatus status = NullBackend::status(event);
    const bool failed = status == EventStatus::complete && told_->failed.contains(event.at);
    return failed ? EventStatus::failed : status;
  }
  void wait(const Event& event) {
    tell("host waits");
    refuse(told_->refused_waits);
    NullBackend::wait(event);
    if (status(event) == EventStatus::failed) throw BackendError(BackendError::Kind::failed, -1, "work failed");
  }
  void finish() {
    tell("finish");
    refuse(told_->refused_finishes);
    NullBackend::finish();
  }
  void set_timing(bool on) { tell(on ? "timing on" : "timing off"); }
  void note_host_access(const HostMemory&, Bytes offset, Bytes size, bool write) {
    tell(std::string(write ? "host writes " : "host reads ") + std::to_string(size.value) + " bytes at " +
         std::to_string(offset.value));
  }

 private:
  void tell(std::string call) { told_->calls.push_back(std::move(call)); }
  void refuse(std::size_t& count) const {
    if (count == 0) return;
    --count;
    throw BackendError(told_->refusal, -1, "refused");
  }
  void copy(const std::string& where, Bytes size, std::span<const Event* const> waits, Event& event) {
    tell("copy of " + std::to_string(size.value) + " bytes " + where + " after " + std::to_string(waits.size()));
    refuse(told_->refused_copies);
    NullBackend::record(QueueKind::compute, event);
  }

  std::shared_ptr<Told> told_ = std::make_shared<Told>();
};

static_assert(Backend<TellingBackend>);

}  // namespace swapmm::test
