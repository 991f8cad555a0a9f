// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Decides what becomes of values that a followed plan drops. A plan takes for dead what observed iterations never
/// read; some entrances must know it for certain.
template <Backend B>
class Drops {
 public:
  using Rec = Record<B>;

  /// `certainly_dead`: see EntranceOptions.
  Drops(Store<B>& store, std::function<bool(const void*)> certainly_dead)
      : store_(store), certainly_dead_(std::move(certainly_dead)) {}

  /// Called before the plan gives up the device copy of a tensor. If the value is only there and not certainly dead,
  /// copies it to the host, and device.busy includes the copy. Returns whether it did.
  bool settle(Rec& record) {
    if (!may_be_needed(record)) return false;
    if (certainly_dead_(record.owner)) {
      // Nobody reads it, so it need not be an error if somebody does: see EntranceOptions::undefined_reads.
      record.device.valid = false;
      record.value.missing_reason = MissingReason::never_written;
      return false;
    }
    store_.ensure_block_for_swap_out(record);
    store_.swap_out(record, store_.before_swap_out(record));
    const QueueKind queue = out_queue(record.host.block->home());
    last_copy_.set(queue, record.device.busy[queue]);
    ++saved_;
    saved_bytes_ += record.bytes;
    return true;
  }

  /// Returns whether settle() would copy nothing.
  [[nodiscard]] bool are_certain(const Rec& record) const {
    return !may_be_needed(record) || certainly_dead_(record.owner);
  }

  /// Whether only what is certainly dead may be dropped.
  [[nodiscard]] bool must_be_certain() const { return static_cast<bool>(certainly_dead_); }

  /// The copies of settle(), for which the next user of any bytes waits.
  [[nodiscard]] const Clock& copies() const { return last_copy_; }
  [[nodiscard]] std::uint64_t saved() const { return saved_; }
  [[nodiscard]] Bytes saved_bytes() const { return saved_bytes_; }

 private:
  [[nodiscard]] bool may_be_needed(const Rec& record) const {
    return certainly_dead_ && record.device.valid && !record.host.valid && record.tensor.alive;
  }

  Store<B>& store_;
  std::function<bool(const void*)> certainly_dead_;
  Clock last_copy_;
  std::uint64_t saved_ = 0;
  Bytes saved_bytes_;
};

}  // namespace swapmm::runtime
