// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/values/homes.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Copies parts of values between their places on the device and memory of the program, through two pieces of host
/// memory that the device can reach. Uses the staged queues, whose commands have no points on the timeline: the host
/// waits for a copy from the device, and the compute queue waits for copies to it.
template <FileBackend B>
class PartCopies {
 public:
  /// Takes host memory for two pieces. Waits for what used it before. Throws OutOfMemory.
  PartCopies(Store<B>& store, Bytes piece) : piece_(piece), before_(store.backend.make_event()) {
    for (Slot& slot : slots_) slot.copied.emplace(store.backend.make_event());
    memory_ = acquire_free(store, Bytes{2 * piece.value});
  }
  PartCopies(const PartCopies&) = delete;
  PartCopies& operator=(const PartCopies&) = delete;

  /// Gives the memory back. No copy may be in flight.
  void give_back(Store<B>& store) noexcept { store.pool.release(std::move(memory_)); }

  /// Waits for the value on the device, and copies a part of it to `to`.
  void read(Store<B>& store, Record<B>& record, Bytes offset, std::span<std::byte> to) {
    store.timeline.host_wait(record.device.ready);
    for_each_piece(to, [&](std::size_t at, std::span<std::byte> part) {
      const Bytes size{part.size()};
      std::size_t which = 0;
      Slot& slot = free_slot(store, which);
      const Bytes place = place_of(which);
      store.issue([&] {
        store.backend.copy_part_to_host(memory_->memory(), place, *record.device.address, offset + Bytes{at}, size, {},
                                        *slot.copied);
        store.backend.flush(QueueKind::staged_d2h);
        store.backend.wait(*slot.copied);
      });
      store.note_host_access(*memory_, place - memory_->offset, size, false);
      std::memcpy(part.data(), address_of(which), part.size());
      store.traffic.d2h += size;
    });
  }

  /// Queues copies to places on the device after all work so far on the compute queue: write() as often as needed, then
  /// end_writing(), after which later work on the compute queue comes after the copies. Waits while both pieces are in
  /// use. If anything throws, call give_up_writing().
  void begin_writing(Store<B>& store) {
    store.backend.record(QueueKind::compute, before_);
    store.backend.flush(QueueKind::compute);
  }
  void write(Store<B>& store, const typename B::Address& to, Bytes offset, std::span<const std::byte> from) {
    for_each_piece(from, [&](std::size_t at, std::span<const std::byte> part) {
      const Bytes size{part.size()};
      std::size_t which = 0;
      Slot& slot = free_slot(store, which);
      const Bytes place = place_of(which);
      store.note_host_access(*memory_, place - memory_->offset, size, true);
      std::memcpy(address_of(which), part.data(), part.size());
      const std::array<const typename B::Event*, 1> waits{&before_};
      store.backend.copy_part_to_device(to, offset + Bytes{at}, memory_->memory(), place, size, waits, *slot.copied);
      store.backend.flush(QueueKind::staged_h2d);
      slot.in_use = true;
      slot.reported = false;
      store.traffic.h2d += size;
    });
  }
  void end_writing(Store<B>& store) {
    std::array<const typename B::Event*, 2> ends{};
    std::size_t count = 0;
    for (const Slot& slot : slots_) {
      if (slot.in_use) ends[count++] = &*slot.copied;
    }
    store.backend.wait(QueueKind::compute, {ends.data(), count});
    for (Slot& slot : slots_) slot.reported = true;
  }
  /// All queued copies have ended; they may have failed.
  void give_up_writing(Store<B>& store) {
    store.drain();
    for (Slot& slot : slots_) slot.in_use = false;
  }

 private:
  struct Slot {
    std::optional<typename B::Event> copied;  // the last copy to or from it
    bool in_use = false;                      // the copy may not have ended
    bool reported = true;                     // other work waits for it, and fails if it does
  };

  template <class Byte, class Visit>
  void for_each_piece(std::span<Byte> all, Visit&& visit) {
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t size = std::min(all.size() - at, static_cast<std::size_t>(piece_.value));
      visit(at, all.subspan(at, size));
      at += size;
    }
  }

  // Throws if the slot's last copy failed and nothing else would report it.
  Slot& free_slot(Store<B>& store, std::size_t& which) {
    which = next_;
    next_ = 1 - next_;
    Slot& slot = slots_[which];
    if (!slot.in_use) return slot;
    try {
      store.backend.wait(*slot.copied);
    } catch (const BackendError& error) {
      if (!slot.reported || error.kind == BackendError::Kind::device_lost) throw;
    }
    slot.in_use = false;
    return slot;
  }
  [[nodiscard]] Bytes place_of(std::size_t which) const { return memory_->offset + Bytes{which * piece_.value}; }
  [[nodiscard]] std::byte* address_of(std::size_t which) const { return memory_->data() + which * piece_.value; }

  Bytes piece_;
  std::unique_ptr<HostBlock<B>> memory_;
  typename B::Event before_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
};

}  // namespace swapmm::runtime
