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
/// read; for programs that branch, and for some entrances, it must be certain. Values that the host can see through a
/// host view are never dropped: a touch is no event that a plan could know.
template <Backend B>
class Drops {
 public:
  using Rec = Record<B>;

  /// `certainly_dead`: see EntranceOptions. `makes_again`: what an operation that runs again is to give back is made by
  /// it whatever the program does, so that it need not be saved: see EntranceOptions::callables_until_end.
  Drops(Store<B>& store, std::function<bool(const void*)> certainly_dead, bool makes_again)
      : store_(store), certainly_dead_(std::move(certainly_dead)), makes_again_(makes_again) {}

  /// From now on only what is certainly dead is dropped. Without EntranceOptions::certainly_dead that is what was
  /// transient in an earlier iteration, beside tensors that are destroyed or overwritten.
  void require_proof() noexcept { by_proof_ = true; }

  /// Called before the plan gives up the device copy of a tensor. If the value is only there and not certainly dead,
  /// copies it to the host, and device.busy includes the copy. Returns whether it did. `made_again`: the plan gives the
  /// value back by an operation that runs again.
  bool settle(Rec& record, bool made_again = false) {
    if (!may_be_needed(record) || comes_again(record, made_again)) return false;
    if (is_dead(record)) {
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
  [[nodiscard]] bool are_certain(const Rec& record, bool made_again) const {
    return !may_be_needed(record) || comes_again(record, made_again) || is_dead(record);
  }

  /// Whether only what is certainly dead may be dropped.
  [[nodiscard]] bool must_be_certain() const { return by_proof_ || certainly_dead_; }
  /// Whether values that were dropped to be made again must be made when an iteration ends before that.
  [[nodiscard]] bool must_make_again() const { return makes_again_ && must_be_certain(); }

  /// The copies of settle(), for which the next user of any bytes waits.
  [[nodiscard]] const Clock& copies() const { return last_copy_; }
  [[nodiscard]] std::uint64_t saved() const { return saved_; }
  [[nodiscard]] Bytes saved_bytes() const { return saved_bytes_; }

 private:
  [[nodiscard]] bool may_be_needed(const Rec& record) const {
    const bool is_needed = must_be_certain() || record.views != 0;
    return is_needed && record.device.valid && !record.host.valid && record.tensor.alive;
  }
  [[nodiscard]] bool comes_again(const Rec& record, bool made_again) const {
    return made_again && makes_again_ && record.views == 0;
  }
  [[nodiscard]] bool is_dead(const Rec& record) const {
    if (record.views != 0) return false;
    if (certainly_dead_) return certainly_dead_(record.owner);
    return record.tensor.lifetime == Lifetime::transient && record.value.written_in < store_.iteration;
  }

  Store<B>& store_;
  std::function<bool(const void*)> certainly_dead_;
  bool makes_again_;
  bool by_proof_ = false;
  Clock last_copy_;
  std::uint64_t saved_ = 0;
  Bytes saved_bytes_;
};

}  // namespace swapmm::runtime
