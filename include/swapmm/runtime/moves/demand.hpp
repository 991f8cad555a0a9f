// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/base/error.hpp>
#include <swapmm/interface/report.hpp>
#include <swapmm/runtime/moves/faults.hpp>
#include <swapmm/runtime/moves/residents.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Moves data when an operation needs it: the path without a plan, which is always correct. Only this class moves
/// tensors to make room in one piece; Residents says which tensor leaves.
template <Backend B>
class Demand {
 public:
  using Rec = Record<B>;

  /// `undefined_reads`: see EntranceOptions. `foresees`: see DemandMode.
  explicit Demand(Store<B>& store, bool undefined_reads = false, bool foresees = false)
      : store_(store), undefined_reads_(undefined_reads), residents_(store, foresees) {}
  Demand(const Demand&) = delete;
  Demand& operator=(const Demand&) = delete;

  /// True if the tensor has no value and may be read nevertheless.
  [[nodiscard]] bool reads_undefined(const Rec& record) const {
    return undefined_reads_ && !record.has_value() && record.value.missing_reason == MissingReason::never_written;
  }
  /// The same for any tensor of the bundle that is not to be overwritten.
  [[nodiscard]] bool reads_undefined(const Request<B>& request) const {
    return undefined_reads_ && std::any_of(request.items.begin(), request.items.end(), [&](const BundleItem<B>& item) {
             return item.access != Access::write && reads_undefined(*item.record);
           });
  }

  /// Throws UndefinedValue, DroppedValue or WorkFailed if the tensor has no value, unless it may be read without one.
  void require_value(const Rec& record, const Who& who) const {
    if (record.has_value()) return;
    switch (record.value.missing_reason) {
      case MissingReason::never_written:
        if (undefined_reads_) return;
        throw undefined_value(who, name_of(record));
      case MissingReason::dropped: throw dropped_value(who, name_of(record));
      case MissingReason::lost: throw lost_value(who, name_of(record));
    }
  }

  /// Refuses bundles that can never be on the device at once, before anything is queued.
  void check_fits(const Request<B>& request) {
    std::optional<Bytes> need = checked_round_up(request.scratch, store_.places.alignment());
    for (const auto& item : request.items) {
      if (need) need = checked_add(*need, store_.padded(item.record->bytes));
    }
    if (!need || *need > store_.budget()) {
      throw bundle_too_large(request.name, sizes_of(request, need), tensors_of(request));
    }
    if (store_.places.arena() == store_.budget()) return;
    std::vector<Bytes> sizes;
    for (const auto& item : request.items) sizes.push_back(item.record->bytes);
    if (request.scratch.value != 0) sizes.push_back(request.scratch);
    if (!store_.places.would_pack(sizes)) {
      throw bundle_does_not_pack(request.name, sizes_of(request, need), tensors_of(request));
    }
  }

  /// Brings the whole bundle to the device. The items have the request's stamp, which protects them from eviction. If
  /// it throws, the operation is given up: call end_scratch().
  void bring(const Request<B>& request, std::uint64_t stamp, Grant<B>& grant, bool in_iteration = false) {
    for (const auto& item : request.items) {
      if (item.access != Access::write) require_value(*item.record, {"operation ", request.name});
    }
    // No operation runs and no plan is followed, so only residents have addresses in use.
    if (store_.addresses.is_crowded()) forget_unused_addresses();
    if (!place_bundle(request, stamp, grant)) {
      clear_device();
      if (!place_bundle(request, stamp, grant)) {
        throw internal_error("a bundle that packs was not placed",
                             {.operation = std::string(request.name), .tensors = tensors_of(request)});
      }
    }
    for (const auto& item : request.items) {
      if (item.access == Access::write || item.record->device.valid) continue;
      if (!item.record->host.valid) continue;  // see undefined_reads
      store_.swap_in(*item.record, store_.before_swap_in(*item.record, item.record->device.busy));
    }
    for (const auto& item : request.items) {
      grant.needs.join(item.access == Access::read ? item.record->device.ready : item.record->device.busy);
      item.record->use.fresh = false;
      residents_.touch(*item.record);
    }
    residents_.note(request, stamp, in_iteration);
  }

  /// Called before the host waits for the device: brings what the next operations will read, as far as they are known,
  /// into room that is free, or that is free without a copy, of tensors that are used later.
  void bring_ahead() {
    if (residents_.history() == nullptr) return;
    constexpr std::size_t most = 32;
    for (std::size_t ahead = 1; ahead <= most; ++ahead) {
      const std::span<const Use> uses = residents_.history()->upcoming(ahead);
      if (uses.empty()) return;
      for (const Use& use : uses) {
        Rec& record = store_.records[use.record];
        if (use.access == Access::write || record.tensor.serial != use.serial || !record.tensor.alive) continue;
        if (record.device.resident || !record.host.valid) continue;
        if (!bring_before(record, residents_.last_noted() + ahead)) return;
      }
    }
  }

  /// Operations that follow a plan come between those on demand.
  void interrupt() noexcept { residents_.interrupt(); }

  void summarize(Report& report) const {
    const UseHistory* const history = residents_.history();
    if (history == nullptr) return;
    report.predictions = history->foretold();
    report.predictions_right = history->came();
    report.brought_ahead = brought_ahead_;
  }

  /// Called when the operation was queued or given up. Its work area is free after `after`.
  void end_scratch(Bytes size, const Clock& after) noexcept {
    if (!scratch_) return;
    scratch_->after.join(after);
    store_.unbook(size, scratch_->after);
    store_.places.give_back(scratch_->offset, size, scratch_->after);
    scratch_.reset();
  }

  /// Removes the tensor from the device. Copies its value to the host first if it would be lost. If it throws, the
  /// tensor is still on the device. `host_room`: makes room on the host as with_host_room() does.
  void evict(Rec& record, bool host_room = false) {
    if (record.device.valid && !record.host.valid && record.tensor.alive) {
      if (host_room) {
        with_host_room(record, [&] { store_.ensure_block_for_swap_out(record); });
      } else {
        store_.ensure_block_for_swap_out(record);
      }
      store_.swap_out(record, store_.before_swap_out(record));
    }
    release(record, true);
  }

  /// Frees the device bytes; a value that is only there is lost. `for_next`: the room is needed for the next tensor.
  void release(Rec& record, bool for_next = false) noexcept {
    const Bytes offset = record.device.offset;
    residents_.remove(record);
    store_.clear_place(record, for_next);
    store_.places.give_back(offset, record.bytes, record.device.busy);
  }

  /// Brings a tensor, with its value if it has one, to exactly this place, which must be free.
  bool bring_to(Rec& record, Bytes offset, bool with_value) {
    const typename B::Address* const address = store_.addresses.at(offset, record.bytes);
    const auto place = store_.places.take_at(offset, record.bytes);
    if (!place) return false;
    place_at(record, *place, address, When::after_clock);
    if (!with_value) return true;
    store_.swap_in(record, store_.before_swap_in(record, record.device.busy));
    return true;
  }

  /// Removes all tensors from the device.
  void clear_device() {
    while (Rec* const record = residents_.oldest()) evict(*record, true);
  }

  /// Calls acquire(), which takes host memory for the tensor. If the host has none left, takes it from other tensors:
  /// first memory that holds no value, then copies of values that are also on the device, the least recently used
  /// first. Waits for the device then. Throws OutOfMemory if that is not enough; no value is lost. Must not be called
  /// while a plan is followed or started, because plans rely on host copies.
  template <class Acquire>
  void with_host_room(const Rec& record, Acquire&& acquire) {
    if (acquires(acquire)) return;
    if (store_.fixed_slots) return acquire();
    bool freed = false;
    for (Rec& other : store_.records) {
      if (&other != &record) freed |= store_.free_unused_host(other);
    }
    if (freed && acquires(acquire)) return;
    const bool acquired =
        give_up_copies(&record, [&](Bytes room) { return room >= record.bytes && acquires(acquire); });
    if (!acquired) acquire();
  }

  /// The same while a plan is followed: only tensors that have ended give theirs up.
  template <class Acquire>
  void with_host_room_of_ended(Acquire&& acquire) {
    if (acquires(acquire)) return;
    free_host_of_ended();
    acquire();
  }

  /// Returns host memory to the API so that another manager may have it: what is unused, and copies of values that are
  /// also on the device, until that makes `wanted` bytes. Waits for the device. `by_plan`: a plan is followed, which
  /// relies on host copies, so only what is unused.
  void give_back_host(Bytes wanted, bool by_plan) {
    free_host_of_ended();
    if (!store_.fixed_slots) {
      for (Rec& record : store_.records) (void)store_.free_unused_host(record);
      if (!by_plan) (void)give_up_copies(nullptr, [&](Bytes room) { return room >= wanted; });
    }
    store_.pool.give_back_all_unused();
  }

  /// Reserves room for this many tensors, so that rebuild_residents() does not allocate.
  void reserve(std::size_t records) {
    if (order_.capacity() < records) order_.reserve(2 * records);
    store_.places.reserve(records);
  }

  /// Rebuilds the list of residents after a plan was followed. Free bytes may be used once all queued work has ended.
  /// If tensors hold bytes of others, gives up their device copies and returns the InternalError; otherwise null.
  [[nodiscard]] std::exception_ptr rebuild_residents() noexcept {
    order_.clear();
    for (Rec& record : store_.records) {
      if (record.device.resident) order_.push_back(&record);
    }
    std::sort(order_.begin(), order_.end(), [](const Rec* a, const Rec* b) { return a->use.stamp < b->use.stamp; });
    store_.places.reset(store_.timeline.everything());
    residents_.clear();
    std::exception_ptr disorder;
    for (Rec* const record : order_) {
      if (store_.places.take_at(record->device.offset, record->bytes)) {
        residents_.add(*record);
        continue;
      }
      for (Rec* const other : order_) {
        if (other == record || !share_bytes(*other, *record)) continue;
        disorder = give_up_shared_bytes(*other, *record, disorder);
      }
      store_.clear_place(*record);
    }
    return disorder;
  }

  template <class Visit>
  void for_each_resident(Visit&& visit) {
    for (Rec* record = residents_.oldest(); record != nullptr;) {
      Rec& visited = *record;
      record = residents_.newer(visited);
      visit(visited);
    }
  }

  /// Called while there are many addresses, no operation runs and no plan is followed. Those that have an order can
  /// only go all together, so nothing stays on the device. That happens once in thousands of new places, and only if
  /// most of the addresses are not used.
  void forget_unused_addresses() {
    std::size_t residents = 0;
    for_each_resident([&](const Rec&) { ++residents; });
    if constexpr (AddressBook<B>::has_order) {
      if (store_.addresses.size() <= 2 * residents) return store_.addresses.allow_for(residents);
      try {
        clear_device();
      } catch (const OutOfMemory&) {  // the host has no room for it
        return store_.addresses.allow_for(store_.addresses.size());
      }
      store_.backend.finish();
      store_.addresses.forget_all();
      store_.addresses.allow_for(residents);
    } else {
      store_.addresses.keep_only(residents, [&](auto&& visit) {
        for_each_resident([&](const Rec& record) { visit(record.device.offset, record.bytes); });
      });
    }
  }

 private:
  // Gives up copies of values that are also on the device, the least recently used first, until enough(bytes so far).
  // The plan keeps a tensor that has ended for its place on the device. Its value is of no use.
  void free_host_of_ended() {
    for (Rec& record : store_.records) {
      if (record.tensor.alive) continue;
      record.host.valid = false;
      (void)store_.free_unused_host(record);
    }
  }

  template <class Enough>
  bool give_up_copies(const Rec* spared, Enough&& enough) {
    Bytes room;
    for (Rec* next = residents_.oldest(); next != nullptr; next = residents_.newer(*next)) {
      Rec& other = *next;
      if (&other == spared || !other.device.valid || !other.host.valid || other.tensor.constant) continue;
      // If the copy to the device failed, the copy on the host is the only value. If it has ended, the value is no
      // younger than the copy on the host, and failures of other work leave it alone.
      store_.timeline.host_wait(other.device.ready);
      other.device.issue = std::min(other.device.issue, other.host.issue);
      room += other.host.block->size;
      other.host.valid = false;
      (void)store_.free_unused_host(other);
      if (enough(room)) return true;
    }
    return false;
  }

  template <class Acquire>
  static bool acquires(Acquire& acquire) {
    try {
      acquire();
      return true;
    } catch (const OutOfMemory&) {
      return false;
    }
  }

  using When = typename Store<B>::When;

  // `b` is on the device.
  [[nodiscard]] bool share_bytes(const Rec& a, const Rec& b) const {
    return a.device.resident && a.device.offset < b.device.offset + store_.padded(b.bytes) &&
           b.device.offset < a.device.offset + store_.padded(a.bytes);
  }

  static std::vector<TensorName> tensors_of(const Request<B>& request) {
    std::vector<TensorName> tensors;
    for (const auto& item : request.items) tensors.push_back(name_of(*item.record));
    return tensors;
  }
  [[nodiscard]] BundleTooLarge::Sizes sizes_of(const Request<B>& request, std::optional<Bytes> need) const {
    return {.need = need.value_or(Bytes{~std::uint64_t{0}}),
            .budget = store_.budget(),
            .largest_allocation = store_.places.arena(),
            .scratch = request.scratch};
  }

  // Returns false if the free bytes are in pieces that are too small. Then only evictions have happened, and the caller
  // clears the device and tries again: on an empty device, placing the largest first always fits.
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
      try {
        store_.book(request.scratch, place->after, When::with_next_operation);
      } catch (...) {
        store_.places.give_back(place->offset, request.scratch, place->after);
        throw;
      }
      scratch_ = place;
      grant.scratch = store_.addresses.at(place->offset, request.scratch);
      grant.scratch_offset = place->offset;
      grant.needs.join(place->after);
      scratch_left = false;
      return true;
    };
    const auto place_all = [&] {
      for (Rec* const record : order_) {
        const bool scratch_first = scratch_left && request.scratch >= record->bytes;
        if ((scratch_first && !place_scratch()) || !place_one(*record, stamp)) return false;
      }
      return !scratch_left || place_scratch();
    };
    if (place_all()) return true;
    end_scratch(request.scratch, Clock{});
    grant = {};
    return false;
  }

  bool place_one(Rec& record, std::uint64_t stamp) {
    const auto place = make_room(record.bytes, stamp);
    if (!place) return false;
    place_at(record, *place, address_of(record, *place), When::with_next_operation);
    return true;
  }

  // Of a place that was taken for the tensor, and is given back if there is none.
  const typename B::Address* address_of(const Rec& record, const FreePlace& place) {
    try {
      return store_.addresses.at(place.offset, record.bytes);
    } catch (...) {
      store_.places.give_back(place.offset, record.bytes, place.after);
      throw;
    }
  }

  // Brings a tensor that will be used at `when`, unless something would have to leave for it that is used before, or
  // whose value the host does not have. Returns whether the tensor is there.
  bool bring_before(Rec& record, std::uint64_t when) {
    for (;;) {
      if (const auto place = store_.places.take(record.bytes)) {
        place_at(record, *place, address_of(record, *place), When::after_clock);
        store_.swap_in(record, store_.before_swap_in(record, record.device.busy));
        record.use.expected = when;
        ++brought_ahead_;
        return true;
      }
      const std::uint64_t now = residents_.last_noted();
      Rec* const victim = residents_.next_to_leave(now);
      if (victim == nullptr || !victim->host.valid || residents_.next_use(*victim, now) <= when) return false;
      release(*victim, true);
    }
  }

  // Gives the tensor a place that was taken for it.
  void place_at(Rec& record, const FreePlace& place, const typename B::Address* address, When when) {
    try {
      store_.assign_place(record, place.offset, address, place.after, when);
    } catch (...) {
      store_.places.give_back(place.offset, record.bytes, place.after);
      throw;
    }
    residents_.add(record);
  }

  std::optional<FreePlace> make_room(Bytes size, std::uint64_t stamp) {
    for (;;) {
      if (auto place = store_.places.take(size)) return place;
      residents_.room_is_needed();
      Rec* const victim = residents_.next_to_leave(stamp);
      if (victim == nullptr) return std::nullopt;
      evict(*victim, true);
    }
  }

  Store<B>& store_;
  const bool undefined_reads_;
  Residents<B> residents_;
  std::uint64_t brought_ahead_ = 0;
  std::optional<FreePlace> scratch_;
  std::vector<Rec*> order_;
};

}  // namespace swapmm::runtime
