// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Moves data when an operation asks for it: the path without a plan, always correct. What was not used for longest
/// goes first. The only place where tensors are moved to make room in one piece.
template <Backend B>
class Demand {
 public:
  using Rec = Record<B>;

  explicit Demand(Store<B>& store) : store_(store) {}
  Demand(const Demand&) = delete;
  Demand& operator=(const Demand&) = delete;

  /// Throws UndefinedValue or its kin unless the tensor has a value.
  static void require_value(const Rec& record, const Who& who) {
    if (record.has_value()) return;
    switch (record.value.missing_reason) {
      case MissingReason::never_written: throw UndefinedValue(undefined_value(who, record.name));
      case MissingReason::dropped: throw DroppedValue(dropped_value(who, record.name));
      case MissingReason::lost: throw WorkFailed(lost_value(who, record.name));
    }
  }

  /// Refuses what can never be on the device at once, before anything is queued.
  void check_fits(const Request<B>& request) {
    std::optional<Bytes> need = checked_round_up(request.scratch, store_.places.alignment());
    for (const auto& item : request.items) {
      if (need) need = checked_add(*need, store_.padded(item.record->bytes));
    }
    if (!need || *need > store_.budget()) {
      throw BundleTooLarge(
          bundle_too_large(request.name, need.value_or(Bytes{~std::uint64_t{0}}), store_.budget(), sizes_of(request)));
    }
    if (store_.places.arena() == store_.budget()) return;
    std::vector<Bytes> sizes;
    for (const auto& item : request.items) sizes.push_back(item.record->bytes);
    if (request.scratch.value != 0) sizes.push_back(request.scratch);
    if (!store_.places.would_pack(sizes)) {
      throw BundleTooLarge(
          bundle_does_not_pack(request.name, *need, store_.budget(), store_.places.arena(), sizes_of(request)));
    }
  }

  /// Brings the bundle to the device together. The items carry the request's stamp, which protects them.
  void bring(const Request<B>& request, std::uint64_t stamp, Grant<B>& grant) {
    for (const auto& item : request.items) {
      if (item.access != Access::write) require_value(*item.record, {"operation ", request.name});
    }
    try {
      if (!place_bundle(request, stamp, grant)) {
        clear_device();
        if (!place_bundle(request, stamp, grant)) throw std::logic_error("swapmm: a bundle that packs was not placed");
      }
      for (const auto& item : request.items) {
        if (item.access == Access::write || item.record->device.valid) continue;
        Clock needs = item.record->device.busy;
        needs[QueueKind::d2h] = std::max(needs[QueueKind::d2h], item.record->host.block->written);
        store_.swap_in(*item.record, needs);
      }
    } catch (...) {
      end_scratch(request.scratch, Clock{});
      throw;
    }
    for (const auto& item : request.items) {
      grant.needs.join(item.access == Access::read ? item.record->device.ready : item.record->device.busy);
      item.record->use.fresh = false;
      touch(*item.record);
    }
  }

  /// The operation was queued, or given up: its work area is free again after `after`.
  void end_scratch(Bytes size, const Clock& after) noexcept {
    if (!scratch_) return;
    scratch_->after.join(after);
    store_.unbook(size, scratch_->after);
    store_.places.give_back(scratch_->offset, size, scratch_->after);
    scratch_.reset();
  }

  /// Takes the tensor off the device, with a copy to the host first where its value would be lost. Throws with the
  /// tensor still there.
  void evict(Rec& record) {
    if (record.device.valid && !record.host.valid && record.tensor.alive) {
      store_.ensure_block_for_swap_out(record);
      store_.swap_out(record, store_.before_swap_out(record));
    }
    release(record, true);
  }

  /// Frees the device bytes; a value that is nowhere else is gone. `for_next`: whoever comes next needs the room.
  void release(Rec& record, bool for_next = false) noexcept {
    const Bytes offset = record.device.offset;
    unlink(record);
    store_.clear_place(record, for_next);
    store_.places.give_back(offset, record.bytes, record.device.busy);
  }

  /// Brings a tensor to that very place, which must be free, with its value if it has one.
  bool bring_to(Rec& record, Bytes offset, bool with_value) {
    const typename B::Address* const address = store_.addresses.at(offset, record.bytes);
    const auto place = store_.places.take_at(offset, record.bytes);
    if (!place) return false;
    store_.assign_place(record, offset, address, place->after);
    link(record);
    if (!with_value) return true;
    Clock needs = record.device.busy;
    needs[QueueKind::d2h] = std::max(needs[QueueKind::d2h], record.host.block->written);
    store_.swap_in(record, needs);
    return true;
  }

  /// Everything off the device.
  void clear_device() {
    while (oldest_ != none) evict(store_.records[oldest_]);
  }

  /// Room for that many tensors, so that rebuild_residents() allocates nothing.
  void reserve(std::size_t records) {
    if (order_.capacity() < records) order_.reserve(2 * records);
    store_.places.reserve(records);
  }

  /// Books the residents anew after a plan was followed: free bytes may be used once everything queued has ended.
  void rebuild_residents() {
    order_.clear();
    for (Rec& record : store_.records) {
      if (record.device.resident) order_.push_back(&record);
    }
    std::sort(order_.begin(), order_.end(), [](const Rec* a, const Rec* b) { return a->use.stamp < b->use.stamp; });
    store_.places.reset(store_.timeline.everything());
    oldest_ = newest_ = none;
    for (Rec* const record : order_) {
      if (!store_.places.take_at(record->device.offset, record->bytes)) {
        throw std::logic_error("swapmm: two tensors hold the same device bytes");
      }
      link(*record);
    }
  }

  template <class Visit>
  void for_each_resident(Visit&& visit) {
    for (std::uint32_t id = oldest_; id != none;) {
      Rec& record = store_.records[id];
      id = record.recency.newer;
      visit(record);
    }
  }

 private:
  using When = typename Store<B>::When;

  static std::vector<NamedSize> sizes_of(const Request<B>& request) {
    std::vector<NamedSize> sizes;
    for (const auto& item : request.items) sizes.push_back({item.record->name, item.record->bytes});
    if (request.scratch.value != 0) sizes.push_back({"scratch", request.scratch});
    return sizes;
  }

  // False where the free bytes are in pieces that are too small; then nothing but evictions has happened, and the
  // caller clears the device and tries again: on an empty one the largest first always fits.
  bool place_bundle(const Request<B>& request, std::uint64_t stamp, Grant<B>& grant) {
    order_.clear();
    for (const auto& item : request.items) {
      if (!item.record->device.resident) order_.push_back(item.record);
    }
    std::sort(order_.begin(), order_.end(), [](const Rec* a, const Rec* b) { return a->bytes > b->bytes; });
    bool scratch_left = request.scratch.value != 0;
    const auto place_scratch = [&] {
      const auto place = make_room(request.scratch, stamp);
      if (!place) return false;
      store_.book(request.scratch, place->after, When::with_next_operation);
      scratch_ = place;
      grant.scratch = store_.addresses.at(place->offset, request.scratch);
      grant.needs.join(place->after);
      scratch_left = false;
      return true;
    };
    bool placed = true;
    for (Rec* const record : order_) {
      if (scratch_left && request.scratch >= record->bytes) placed = placed && place_scratch();
      placed = placed && place_one(*record, stamp);
      if (!placed) break;
    }
    if (placed && scratch_left) placed = place_scratch();
    if (!placed) {
      end_scratch(request.scratch, Clock{});
      grant = {};
    }
    return placed;
  }

  bool place_one(Rec& record, std::uint64_t stamp) {
    const auto place = make_room(record.bytes, stamp);
    if (!place) return false;
    const typename B::Address* address = nullptr;
    try {
      address = store_.addresses.at(place->offset, record.bytes);
    } catch (...) {
      store_.places.give_back(place->offset, record.bytes, place->after);
      throw;
    }
    store_.assign_place(record, place->offset, address, place->after, When::with_next_operation);
    link(record);
    return true;
  }

  std::optional<FreePlace> make_room(Bytes size, std::uint64_t stamp) {
    for (;;) {
      if (const auto place = store_.places.take(size)) return place;
      Rec* victim = nullptr;
      for (std::uint32_t id = oldest_; id != none && victim == nullptr; id = store_.records[id].recency.newer) {
        if (store_.records[id].use.stamp != stamp) victim = &store_.records[id];
      }
      if (victim == nullptr) return std::nullopt;
      evict(*victim);
    }
  }

  void touch(Rec& record) {
    if (record.id == newest_) return;
    unlink(record);
    link(record);
  }

  void link(Rec& record) noexcept {
    record.recency.older = newest_;
    record.recency.newer = none;
    if (newest_ != none) store_.records[newest_].recency.newer = record.id;
    newest_ = record.id;
    if (oldest_ == none) oldest_ = record.id;
  }

  void unlink(Rec& record) noexcept {
    if (record.recency.older != none) store_.records[record.recency.older].recency.newer = record.recency.newer;
    if (record.recency.newer != none) store_.records[record.recency.newer].recency.older = record.recency.older;
    if (oldest_ == record.id) oldest_ = record.recency.newer;
    if (newest_ == record.id) newest_ = record.recency.older;
    record.recency.older = record.recency.newer = none;
  }

  Store<B>& store_;
  std::uint32_t oldest_ = none;
  std::uint32_t newest_ = none;
  std::optional<FreePlace> scratch_;
  std::vector<Rec*> order_;
};

}  // namespace swapmm::runtime
