// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
#include <swapmm/runtime/moves/access_check.hpp>
#include <swapmm/runtime/slices/slice_layout.hpp>
#include <swapmm/runtime/values/messages.hpp>

namespace swapmm::runtime {

/// The copies of slices in an operation's work area: they are filled before the operation's own work, and what it has
/// written goes back to the pieces behind it.
template <Backend B>
class JoinedSlices {
 public:
  /// Refers to both.
  JoinedSlices(RunningOperation<B>& running, const SliceLayout<B>& layout) : running_(running), layout_(layout) {}

  /// Queues the copies that the operation's work needs. If that fails, no value has changed.
  void gather() {
    running_.own_work_is_next(true);
    for (const BundledSlice<B>& entry : layout_.slices) {
      if (entry.joined_at && entry.access != Access::write) copy_all(entry, true);
    }
    if (running_.is_checked()) look_before();
    running_.own_work_is_next(false);
  }
  /// For an operation of the second form: what its work waits for, so that gather() has ended.
  [[nodiscard]] typename B::WaitList wait_list() {
    running_.own_work_is_next(true);
    typename B::WaitList waits = running_.waits_for_own_work();
    running_.own_work_is_next(false);
    return waits;
  }
  /// Queues the copies back to the pieces.
  void scatter() {
    if (running_.is_checked()) look_after();
    for (const BundledSlice<B>& entry : layout_.slices) {
      if (entry.joined_at && entry.access != Access::read) copy_all(entry, false);
    }
  }

  /// Throws UsageError if the bytes of a piece will be overwritten by a joined slice's: what an operation writes there
  /// itself would be lost.
  void require_not_joined(const TensorKey<B>& piece, Bytes offset, Bytes bytes) const {
    for (const BundledSlice<B>& entry : layout_.slices) {
      if (!entry.joined_at || entry.access == Access::read) continue;
      for (const SlicePart<B>& part : entry.slice.parts) {
        const bool apart =
            part.piece.record != piece.record || part.offset + part.bytes <= offset || offset + bytes <= part.offset;
        if (apart) continue;
        throw operation_misused(name(),
                                " uses a part of a slice of a divided tensor that is joined: use op[slice], or "
                                "declare the slice in_pieces()",
                                {name_of(piece)});
      }
    }
  }

  /// The address of a slice, which is one of the bundle's, or a part of one. Throws UsageError if it is not, or if it
  /// does not lie in one piece there.
  const typename B::Address& address(const SliceRef<B>& slice) {
    const BundledSlice<B>* const found = find(slice);
    if (found == nullptr) {
      throw operation_misused(name(), " uses a slice of a divided tensor that is not in its bundle", names_of(slice));
    }
    const Bytes within = slice.begin - found->slice.begin;
    if (found->joined_at) {
      const bool all = within.value == 0 && slice.bytes == found->slice.bytes;
      const Bytes alignment = running_.backend().capabilities().view_alignment;
      if (!all && within.value % alignment.value != 0) {
        throw misaligned_view(name(), name_of(slice.parts.front().piece), within, alignment);
      }
      return running_.scratch_part(*found->joined_at + within, slice.bytes);
    }
    if (slice.parts.size() != 1) {
      throw operation_misused(
          name(), " takes a slice of a divided tensor in pieces, and asks for it in one: use parts()", names_of(slice));
    }
    const SlicePart<B>& part = slice.parts.front();
    return running_.address(*part.piece.record, part.offset, part.bytes);
  }

 private:
  [[nodiscard]] std::string_view name() const { return running_.request().name; }
  [[nodiscard]] static std::vector<TensorName> names_of(const SliceRef<B>& slice) {
    if (slice.parts.empty()) return {};
    return {name_of(slice.parts.front().piece)};
  }
  // Whether the device can address the slice there.
  [[nodiscard]] bool can_begin(const BundledSlice<B>& entry, const SliceRef<B>& slice) const {
    const Bytes alignment = running_.backend().capabilities().view_alignment;
    if (entry.joined_at) return (slice.begin - entry.slice.begin).value % alignment.value == 0;
    return slice.parts.size() == 1 && slice.parts.front().offset.value % alignment.value == 0;
  }
  // One in which the device can address the slice; the same slice rather than a larger one; and one that lies in one
  // piece rather than in several.
  [[nodiscard]] const BundledSlice<B>* find(const SliceRef<B>& slice) const {
    const BundledSlice<B>* best = nullptr;
    int best_rank = 0;
    for (const BundledSlice<B>& entry : layout_.slices) {
      const SliceRef<B>& known = entry.slice;
      if (known.divided != slice.divided || slice.begin < known.begin || known.end() < slice.end()) continue;
      const int rank =
          1 + (known.in_pieces ? 0 : 1) + (known.bytes == slice.bytes ? 2 : 0) + (can_begin(entry, slice) ? 4 : 0);
      if (rank <= best_rank) continue;
      best = &entry;
      best_rank = rank;
    }
    return best;
  }
  void copy_all(const BundledSlice<B>& entry, bool to_area) {
    if constexpr (DeviceCopyBackend<B>) {
      Bytes at = *entry.joined_at;
      for (const SlicePart<B>& part : entry.slice.parts) {
        const typename B::Address& piece = *part.piece.record->device.address;
        running_.queue_own([&] {
          B& backend = running_.backend();
          if (to_area) {
            backend.copy_on_device(*running_.scratch(), at, piece, part.offset, part.bytes);
          } else {
            backend.copy_on_device(piece, part.offset, *running_.scratch(), at, part.bytes);
          }
        });
        at += part.bytes;
      }
    }
  }

  // The check of accesses. It waits for all that was queued, and compares by way of the host.
  void look_before() {
    hashes_.clear();
    running_.queue_own([&] { running_.backend().finish(); });
    for (const BundledSlice<B>& entry : layout_.slices) {
      if (!entry.joined_at) continue;
      const typename B::Address& area = running_.scratch_part(*entry.joined_at, entry.slice.bytes);
      running_.queue_own([&] {
        if (entry.access == Access::write) running_.access_check().poison(area, entry.slice.bytes);
        if (entry.access == Access::read) hashes_.push_back(running_.access_check().hash(area, entry.slice.bytes));
      });
    }
  }
  void look_after() {
    running_.queue_own([&] { running_.backend().finish(); });
    std::size_t next = 0;
    for (const BundledSlice<B>& entry : layout_.slices) {
      if (!entry.joined_at) continue;
      const typename B::Address& area = running_.scratch_part(*entry.joined_at, entry.slice.bytes);
      const Record<B>& record = *entry.slice.parts.front().piece.record;
      std::uint64_t seen = 0;
      running_.queue_own([&] {
        AccessCheck<B>& check = running_.access_check();
        if (entry.access == Access::write) seen = check.poisoned_bytes(area, entry.slice.bytes);
        if (entry.access == Access::read) seen = check.hash(area, entry.slice.bytes);
      });
      if (entry.access == Access::read && seen != hashes_[next++]) {
        throw AccessCheck<B>::changed_read(running_.request(), record);
      }
      if (entry.access == Access::write && seen != 0) {
        throw AccessCheck<B>::left_unwritten(running_.request(), record, entry.slice.bytes, seen);
      }
    }
  }

  RunningOperation<B>& running_;
  const SliceLayout<B>& layout_;
  std::vector<std::uint64_t> hashes_;  // of joined slices that are read
};

}  // namespace swapmm::runtime
