// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/core/plan_controller.hpp>
#include <swapmm/runtime/core/session_state.hpp>
#include <swapmm/runtime/values/homes.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// The host's accesses to the values of tensors: uploads, downloads, and promised (asynchronous) downloads.
template <Backend B>
class HostAccess {
 public:
  using Rec = Record<B>;

  HostAccess(SessionState<B>& state, PlanController<B>& controller) : state_(state), controller_(controller) {}
  HostAccess(const HostAccess&) = delete;
  HostAccess& operator=(const HostAccess&) = delete;

  /// Copies `data` in before it returns. Waits only if both of the tensor's host slots are in use. A part of a tensor
  /// needs the tensor's value, and waits for it.
  void upload(Rec& record, Bytes offset, std::span<const std::byte> data, const Who& who) {
    require_not_capturing(who);
    if (record.tensor.constant) throw constant_written("an upload", name_of(record));
    const bool whole = data.size() == record.bytes.value;
    if (!whole && !state_.demand.reads_undefined(record)) fetch(record, who);
    // The wait for a round that is too far ahead comes first: after it a slot is free without another wait.
    if (state_.executor.active()) state_.executor.ensure_round();
    if (!whole) make_plain(record);
    record.host.wanted = true;
    auto& slot = free_slot(record, whole);
    if (slot->in_host()) state_.store.note_host_access(*slot, offset, Bytes{data.size()}, true);
    controller_.uploaded(record);
    if (!slot->in_host()) write_away(record, *slot, offset, data);
    // Nothing below throws.
    if (&slot != &record.host.block) {
      std::swap(record.host.block, record.host.spare);
      if (is_filled_slowly(record.host.spare->home())) state_.store.pool.release(std::move(record.host.spare));
    }
    HostBlock<B>& block = *record.host.block;
    if (block.in_host()) std::memcpy(block.data() + offset.value, data.data(), data.size());
    record.host.valid = true;
    record.host.issue = 0;
    record.device.valid = false;
    record.value.written_in = state_.store.iteration;
    if (record.device.resident && !state_.executor.active()) state_.demand.release(record);
  }

  /// Waits for the value and copies it to the caller's memory, which stays as it is if the tensor has no value and may
  /// be read without one.
  void download(Rec& record, Bytes offset, std::span<std::byte> data, const Who& who) {
    require_not_capturing(who);
    if (state_.demand.reads_undefined(record)) return;
    make_plain(record);
    fetch(record, who);
    controller_.host_has_read();
    state_.store.read_block(*record.host.block, offset, data);
  }

  /// Promises the current value to `read`: the value is, or will be, in the tensor's host block.
  void promise(PendingRead& read, Rec& record, Bytes offset, std::span<std::byte> data, const Who& who) {
    require_not_capturing(who);
    state_.promises.prepare(read, record);
    if (state_.demand.reads_undefined(record)) {
      read.state = PendingRead::State::done;
      return;
    }
    start_fetch(record, who);
    state_.promises.add(read, record, offset, data);
  }

  /// Throws if the tensor has no value. If a plan dropped it, the next plan keeps it.
  void require_value(Rec& record, const Who& who) {
    try {
      state_.demand.require_value(record, who);
    } catch (const DroppedValue&) {
      controller_.note_dropped(record);
      throw;
    }
  }

  /// Copies a part of the value to the caller's memory for a host view: from the host's copy if it is valid, else this
  /// part from the device. Waits. It is no event of the program: plans do not expect it, and are not left for it.
  void read_for_view(Rec& record, Bytes offset, std::span<std::byte> data, const Who& who) {
    require_not_capturing(who);
    controller_.host_has_read();
    require_value(record, who);
    make_plain(record);
    record.host.wanted = true;
    if (!record.host.valid) {
      if constexpr (FileBackend<B>) return state_.views.copies(state_.store).read(state_.store, record, offset, data);
      fetch(record, who);
    }
    state_.store.timeline.host_wait(record.host.block->ready());
    state_.store.read_block(*record.host.block, offset, data);
  }

  /// Throws UsageError while an iteration is captured.
  void require_not_capturing(const Who& who) const {
    if (!state_.in_capture) return;
    throw UsageError(who.text() + " inside a captured iteration: a graph cannot take part in uploads and downloads",
                     who.details());
  }

 private:
  // What was encoded is decoded once, and not for each part that the host asks for. Waits.
  void make_plain(Rec& record) {
    const bool is_encoded = record.host.valid && record.host.block->home() == Home::encoded;
    if (is_encoded && !state_.store.fixed_slots) [[unlikely]]
      move_value(record, Home::host, state_.store);
  }

  template <class Acquire>
  void with_host_room(const Rec& record, Acquire&& acquire) {
    if (state_.executor.active()) return state_.demand.with_host_room_of_ended(acquire);
    state_.demand.with_host_room(record, acquire);
  }

  void write_away(Rec& record, HostBlock<B>& slot, Bytes offset, std::span<const std::byte> data) {
    try {
      state_.store.write_away(record, slot, offset, data);
    } catch (...) {  // the upload was noted, and did not happen
      state_.recorder.mark_broken();
      controller_.abandon_plan("an upload failed");
      throw;
    }
  }

  // Makes sure that the value is, or will be, in the tensor's host block.
  void start_fetch(Rec& record, const Who& who) {
    Store<B>& store = state_.store;
    require_value(record, who);
    controller_.downloaded(record);
    record.host.wanted = true;
    if (record.host.valid) return;
    with_host_room(record, [&] {
      store.ensure_block(record, true);
      store.ensure_block_for_swap_out(record);
    });
    store.swap_out(record, store.before_swap_out(record));
    const QueueKind queue = out_queue(record.host.block->home());
    if (state_.executor.active()) state_.executor.side_copy(queue, record.device.busy[queue]);
  }

  void fetch(Rec& record, const Who& who) {
    start_fetch(record, who);
    if (!state_.executor.active()) state_.demand.bring_ahead();
    state_.store.timeline.host_wait(record.host.block->ready());
  }

  // Returns a host block that no copy uses, for the host to fill. Two blocks are used alternately.
  std::unique_ptr<HostBlock<B>>& free_slot(Rec& record, bool whole) {
    Store<B>& store = state_.store;
    with_host_room(record, [&] { store.ensure_block(record, true); });
    // Such memory is not filled without a wait either.
    if (whole && (is_filled_slowly(record.host.block->home()) || !free_now(*record.host.block))) {
      store.ensure_spare(record);
      if (record.host.spare != nullptr) {
        // The older block is free earlier.
        await_free(*record.host.spare, store);
        return record.host.spare;
      }
    }
    await_free(*record.host.block, store);
    return record.host.block;
  }
  bool free_now(const HostBlock<B>& block) {
    return block.pending == nullptr && state_.store.timeline.ended(block.busy());
  }

  SessionState<B>& state_;
  PlanController<B>& controller_;
};

}  // namespace swapmm::runtime
