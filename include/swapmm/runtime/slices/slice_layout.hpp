// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/values/bundle.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/record.hpp>

namespace swapmm::runtime {

template <Backend B>
class Core;

/// A part of a piece, as a slice of a divided tensor has it.
template <Backend B>
struct SlicePart {
  TensorKey<B> piece;
  Bytes offset;  ///< in the piece
  Bytes bytes;
};

/// A slice of a divided tensor: bytes that lie in one piece, or in several that follow each other.
template <Backend B>
struct SliceRef {
  const void* divided = nullptr;  ///< tells divided tensors apart
  Core<B>* core = nullptr;        ///< of the tensor's manager
  Bytes begin;                    ///< in the divided tensor
  Bytes bytes;
  bool in_pieces = false;           ///< the operation takes the pieces as they lie
  std::vector<SlicePart<B>> parts;  ///< in the order of their bytes

  [[nodiscard]] Bytes end() const { return begin + bytes; }
};

/// A slice in an operation's bundle.
template <Backend B>
struct BundledSlice {
  SliceRef<B> slice;
  Access access = Access::read;
  std::optional<Bytes> joined_at;  ///< where in the work area a copy of it lies in one piece; none: nowhere
};

/// The slices of an operation, and how its work area is shared: what the operation has declared, then the slices that
/// are joined, each at an aligned offset.
template <Backend B>
struct SliceLayout {
  std::vector<BundledSlice<B>> slices;
  Bytes own_scratch;  ///< what the operation has declared
  Bytes scratch;      ///< with the joined slices

  /// True if any slice is joined.
  [[nodiscard]] bool joins() const { return scratch != own_scratch; }
};

/// Decides which slices are joined: those that do not lie in one piece, and those that begin there where no view can.
template <Backend B>
[[nodiscard]] SliceLayout<B> lay_out(std::vector<BundledSlice<B>> slices, Bytes own_scratch,
                                     const Capabilities& device) {
  SliceLayout<B> layout{std::move(slices), own_scratch, own_scratch};
  for (BundledSlice<B>& entry : layout.slices) {
    const auto& parts = entry.slice.parts;
    const bool lies_ready = parts.size() == 1 && parts.front().offset.value % device.view_alignment.value == 0;
    if (entry.slice.in_pieces || lies_ready) continue;
    const std::optional<Bytes> at = checked_round_up(layout.scratch, device.alignment);
    const std::optional<Bytes> end = at ? checked_add(*at, entry.slice.bytes) : std::nullopt;
    entry.joined_at = at.value_or(Bytes{});
    layout.scratch = end.value_or(Bytes{~std::uint64_t{0}});  // which is too large for any budget
  }
  return layout;
}

/// The error if slices of one operation have elements in common that it writes.
template <Backend B>
void require_apart(std::string_view operation, const std::vector<BundledSlice<B>>& slices) {
  for (std::size_t i = 0; i < slices.size(); ++i) {
    for (std::size_t j = i + 1; j < slices.size(); ++j) {
      const SliceRef<B>& a = slices[i].slice;
      const SliceRef<B>& b = slices[j].slice;
      const bool apart = a.divided != b.divided || a.end() <= b.begin || b.end() <= a.begin;
      if (apart || (slices[i].access == Access::read && slices[j].access == Access::read)) continue;
      throw operation_misused(operation, " has two slices of a divided tensor with elements in common, and writes them",
                              {name_of(a.parts.front().piece)});
    }
  }
}

/// Adds the pieces of the slices to a bundle, each once. A piece that is written whole, by one slice or by several, is
/// written; one that is written in part, or read as well, is updated.
template <Backend B>
void add_pieces(const std::vector<BundledSlice<B>>& slices, std::vector<BundleItem<B>>& items) {
  const std::size_t first = items.size();
  std::vector<Bytes> written;  // of the pieces, from `first` on
  for (const BundledSlice<B>& entry : slices) {
    // The pieces of one slice are distinct.
    const std::size_t known = items.size();
    for (const SlicePart<B>& part : entry.slice.parts) {
      const auto end = items.begin() + static_cast<std::ptrdiff_t>(known);
      auto item = std::find_if(items.begin() + static_cast<std::ptrdiff_t>(first), end, [&](const auto& other) {
        return other.record == part.piece.record && other.serial == part.piece.serial;
      });
      if (item == end) {
        items.push_back({part.piece.record, entry.access, part.piece.serial});
        item = items.end() - 1;
        written.emplace_back();
      } else if (item->access != entry.access) {
        item->access = Access::update;
      }
      if (entry.access == Access::write) written[static_cast<std::size_t>(item - items.begin()) - first] += part.bytes;
    }
  }
  for (std::size_t i = first; i < items.size(); ++i) {
    const bool whole = written[i - first] == items[i].record->bytes;
    if (items[i].access == Access::write && !whole) items[i].access = Access::update;
  }
}

}  // namespace swapmm::runtime
