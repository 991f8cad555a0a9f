// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/core/session.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/record.hpp>

namespace swapmm::runtime {

/// Creates and reclaims the tensors of a manager. A handle may be destroyed while another caller is inside the manager,
/// and after the manager was closed, so this outlives the session.
template <Backend B>
class TensorRegistry {
 public:
  using Rec = Record<B>;

  static Rec& create(Session<B>& session, std::string_view name, Bytes bytes, Lifetime lifetime,
                     std::size_t element_bytes = 4) {
    RecordTable<B>& records = session.state.store.records;
    session.state.demand.reserve(records.size() + 1);
    return records.add(name, bytes, lifetime, session.state.store.iteration, element_bytes);
  }

  /// Returns the record of a tensor. Throws UsageError if the tensor no longer exists; `what` names the call.
  static Rec& existing(const TensorKey<B>& tensor, std::string_view what) {
    if (!tensor.exists()) throw view_of_no_tensor({what, {}}, name_of(tensor));
    return *tensor.record;
  }

  /// Called when a tensor's handle is destroyed by a caller that is not inside. The next caller to enter reclaims the
  /// tensor. May be called by any thread.
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

  /// Called when a tensor's handle is destroyed. Frees its bytes now, or once the followed plan no longer needs its
  /// place.
  static void reclaim(Session<B>& session, Rec& record) noexcept {
    SessionState<B>& state = session.state;
    state.recorder.end(record);
    state.store.records.end(record);
    session.controller.forget_upload(record);
    // The plan still has its place; see RoleBinding::bind.
    if (record.plan.role != none) return;
    state.free_storage(record);
  }

  /// Called before the session is destroyed. Handles refer to their records as long as they exist, so the records stay
  /// until the last handle is destroyed, but hold nothing of the device.
  void keep_records(Session<B>& session) noexcept {
    session.state.store.records.swap(records_left_);
    for (Rec& record : records_left_) record.host = {};
  }

 private:
  std::atomic<Rec*> deferred_destroys_{nullptr};
  RecordTable<B> records_left_;  // once closed
};

}  // namespace swapmm::runtime
