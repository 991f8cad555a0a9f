// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/core/running_operation.hpp>
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

  /// Queues the copies that the operation's work needs.
  void gather() {
    for (const BundledSlice<B>& entry : layout_.slices) {
      // What is only written has no value that counts. But if accesses are checked, what the operation leaves
      // unwritten is to be seen.
      if (!entry.joined_at || (entry.access == Access::write && !running_.is_checked())) continue;
      Bytes at = *entry.joined_at;
      for (const SlicePart<B>& part : entry.slice.parts) {
        copy(*running_.scratch(), at, *part.piece.record->device.address, part.offset, part.bytes);
        at += part.bytes;
      }
    }
  }
  /// For an operation of the second form: what its work waits for, so that gather() has ended.
  [[nodiscard]] typename B::WaitList wait_list() {
    B& backend = running_.backend();
    typename B::Event& event = running_.spare_event(0);
    backend.record(QueueKind::compute, event);
    backend.flush(QueueKind::compute);  // the work may be on another queue
    const typename B::Event* const waits = &event;
    return backend.wait_list({&waits, 1});
  }
  /// Makes scatter() wait for the end of the work. An empty event: it is on the compute queue.
  void wait_for(typename B::NativeEvent end) {
    if constexpr (std::is_constructible_v<bool, const typename B::NativeEvent&>) {
      if (!end) return;
    }
    B& backend = running_.backend();
    typename B::Event& event = running_.spare_event(1);
    backend.adopt(event, std::move(end));
    const typename B::Event* const waits = &event;
    backend.wait(QueueKind::compute, {&waits, 1});
  }
  /// Queues the copies back to the pieces.
  void scatter() {
    for (const BundledSlice<B>& entry : layout_.slices) {
      if (!entry.joined_at || entry.access == Access::read) continue;
      Bytes at = *entry.joined_at;
      for (const SlicePart<B>& part : entry.slice.parts) {
        copy(*part.piece.record->device.address, part.offset, *running_.scratch(), at, part.bytes);
        at += part.bytes;
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
  // The same slice rather than a larger one, and one that lies in one piece rather than in several.
  [[nodiscard]] const BundledSlice<B>* find(const SliceRef<B>& slice) const {
    const BundledSlice<B>* best = nullptr;
    int best_rank = 0;
    for (const BundledSlice<B>& entry : layout_.slices) {
      const SliceRef<B>& known = entry.slice;
      if (known.divided != slice.divided || slice.begin < known.begin || known.end() < slice.end()) continue;
      const int rank = 1 + (known.in_pieces ? 0 : 1) + (known.bytes == slice.bytes ? 2 : 0);
      if (rank <= best_rank) continue;
      best = &entry;
      best_rank = rank;
    }
    return best;
  }
  void copy(const typename B::Address& to, Bytes to_offset, const typename B::Address& from, Bytes from_offset,
            Bytes bytes) {
    if constexpr (DeviceCopyBackend<B>) {
      running_.backend().copy_on_device(to, to_offset, from, from_offset, bytes);
    } else {
      throw operation_misused(name(),
                              " has a slice that does not lie in one piece, and the backend copies nothing on "
                              "the device: declare it in_pieces()");
    }
  }

  RunningOperation<B>& running_;
  const SliceLayout<B>& layout_;
};

}  // namespace swapmm::runtime
