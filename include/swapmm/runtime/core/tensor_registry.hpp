// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/core/session.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/record.hpp>

namespace swapmm::runtime {

/// The tensors of a manager from their making to their end. A handle may be destroyed while another caller is inside
/// the manager, and after the manager was closed: so this outlives the session.
template <Backend B>
class TensorRegistry {
 public:
  using Rec = Record<B>;

  static Rec& create(Session<B>& session, std::string_view name, Bytes bytes, Lifetime lifetime) {
    RecordTable<B>& records = session.state.store.records;
    session.state.demand.reserve(records.size() + 1);
    return records.add(name, bytes, lifetime, session.state.store.iteration);
  }

  /// The record of a tensor that exists. Throws UsageError for one that does not; `what`: who needs it.
  static Rec& existing(const TensorKey<B>& tensor, std::string_view what) {
    if (!tensor.exists()) throw view_of_no_tensor({what, {}}, name_of(tensor));
    return *tensor.record;
  }

  /// The tensor's handle is gone, and the caller is not inside: whoever enters next reclaims it. From any thread.
  void defer_destroy(Rec& record) noexcept {
    Rec* first = deferred_destroys_.load(std::memory_order_relaxed);
    do {
      record.next_deferred_destroy.store(first, std::memory_order_relaxed);
    } while (!deferred_destroys_.compare_exchange_weak(first, &record, std::memory_order_release,
                                                       std::memory_order_relaxed));
  }

  void reclaim_deferred(Session<B>& session) noexcept {
    if (deferred_destroys_.load(std::memory_order_relaxed) == nullptr) return;
    Rec* record = deferred_destroys_.exchange(nullptr, std::memory_order_acquire);
    while (record != nullptr) {
      Rec* const next = record->next_deferred_destroy.load(std::memory_order_relaxed);
      reclaim(session, *record);
      record = next;
    }
  }

  /// The tensor's handle is gone. Its bytes go back now, or once the plan that is followed needs its place no more.
  static void reclaim(Session<B>& session, Rec& record) noexcept {
    SessionState<B>& state = session.state;
    state.store.records.end(record);
    state.recorder.destroyed(record);
    session.controller.forget_upload(record);
    // The plan still has its place; see RoleBinding::bind.
    if (record.plan.role != none && state.executor.active()) return;
    state.free_storage(record);
  }

  /// The session is about to go. Handles refer to their records for as long as they live: without anything of a device,
  /// these stay until the last handle goes.
  void keep_records(Session<B>& session) noexcept {
    session.state.store.records.swap(records_left_);
    for (Rec& record : records_left_) {
      record.device = {};
      record.host = {};
    }
  }

 private:
  std::atomic<Rec*> deferred_destroys_{nullptr};
  RecordTable<B> records_left_;  // once closed
};

}  // namespace swapmm::runtime
