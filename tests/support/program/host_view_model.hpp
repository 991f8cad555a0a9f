// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program knows of a host view: which slices it has, and how it may come to them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <swapmm/base/bytes.hpp>

#include "support/program/model.hpp"
#include "support/test_program.hpp"

namespace swapmm::test {

/// The smallest blocks that there are.
inline constexpr Bytes view_block{64U << 10U};
/// An array of the program has so many bytes before those of the view, and behind them: it begins at no page.
inline constexpr std::size_t view_array_margin = 3;

/// The host view of a slot. Its tensor is that of the slot while `live`, and gone otherwise, as it is if there is no
/// view.
struct ModelHostView {
  /// How the program comes to slices.
  enum class Way : std::uint8_t {
    none,      ///< not at all: whether they are there is not known
    direct,    ///< by touching them
    prepared,  ///< by touching them, after a call that makes them usable
    refused,   ///< that call must be refused
  };

  bool live = false;
  bool gives_value = false;  ///< the tensor had none
  ViewMemory memory = ViewMemory::own;
  SlicedBytes layout;
  SliceRange range;                       ///< that the view has
  SliceVersions versions{};               ///< unless live: what it holds
  std::array<bool, most_slices> there{};  ///< slices of which each block is known to be there
  bool none_there = false;                ///< no block is there
  bool was_modified = false;              ///< at some time since it was opened

  [[nodiscard]] std::size_t size() const { return layout.size(range); }
  [[nodiscard]] std::size_t offset(const SliceRange& part) const {
    return layout.begin(part.first) - layout.begin(range.first);
  }
  /// Those of the view among an action's slices of its tensor; empty if there are none.
  [[nodiscard]] SliceRange part(const Action& action) const {
    const SliceRange wanted = layout.range(action.first, action.slices);
    const SliceRange common{std::max(wanted.first, range.first), std::min(wanted.end, range.end)};
    return common.first < common.end ? common : SliceRange{range.first, range.first};
  }
  [[nodiscard]] bool overlaps(const SliceRange& other) const {
    return range.first < other.end && other.first < range.end;
  }

  /// `may_fail`: a touch could be refused, so it is prepared.
  [[nodiscard]] Way way(const SliceRange& part, ViewTouch wanted, bool may_fail) const {
    if (part.first == part.end) return Way::none;
    if (live) return wanted == ViewTouch::direct && !may_fail ? Way::direct : Way::prepared;
    if (std::all_of(there.begin() + part.first, there.begin() + part.end, [](bool is_there) { return is_there; })) {
      return Way::direct;
    }
    return none_there ? Way::refused : Way::none;
  }
  /// Blocks may have to be copied in before an operation, or fetched behind it.
  [[nodiscard]] bool may_be_copied() const { return live && (was_modified || memory != ViewMemory::own); }
  /// What it holds; `tensor` is that of its slot.
  [[nodiscard]] const SliceVersions& held(const ModelTensor& tensor) const { return live ? tensor.versions : versions; }

  /// It was opened. The tensor has a value from now on, which no plan may drop.
  void open_on(ModelTensor& tensor) {
    live = true;
    tensor.viewed = true;
    if (gives_value) {
      tensor.value = ModelTensor::Value::there;
      tensor.versions = versions;
    }
    there.fill(gives_value || memory == ViewMemory::eager);
    none_there = memory == ViewMemory::own && !gives_value;
    was_modified = gives_value;
  }
  void touched(const SliceRange& part) {
    for (std::size_t slice = part.first; slice < part.end; ++slice) there[slice] = true;
    none_there = false;
  }
  void write(const SliceRange& part, ModelTensor& tensor) {
    was_modified = true;
    if (live) return tensor.write(part);
    for (std::size_t slice = part.first; slice < part.end; ++slice) ++versions[slice];
  }
  /// The tensor's value was replaced; `whole` is false if that may be true of a part alone, or of nothing. An eager
  /// view has the new one at once, and so have edges of an array, which share pages with other bytes.
  void replaced(bool whole) {
    if (!live || memory == ViewMemory::eager) return;
    there.fill(false);
    none_there = none_there || (whole && memory == ViewMemory::own);
  }
  /// The tensor ended, or its manager.
  void outlives(const SliceVersions& last) {
    if (live) versions = last;
    live = false;
  }
};

[[nodiscard]] inline ViewMemory memory_of(const Action& open) {
  return static_cast<ViewMemory>(open.other % view_memory_count);
}
[[nodiscard]] inline ViewTouch touch_of(const Action& action) {
  return static_cast<ViewTouch>(action.other % view_touch_count);
}

/// At all that the view of that slot has.
[[nodiscard]] inline Action look_at_all(std::uint8_t slot) {
  Action look;
  look.kind = ActionKind::look;
  look.slot = slot;
  return look;
}

/// The view that this action opens on the tensor, before it is opened. An array holds the next version of a tensor
/// without a value; a view's own memory holds zeros.
[[nodiscard]] inline ModelHostView view_to_open(const Action& action, const ModelTensor& tensor) {
  ModelHostView view;
  view.memory = memory_of(action);
  view.layout = tensor.layout;
  view.range = tensor.layout.range(action.first, action.slices);
  view.gives_value = tensor.value == ModelTensor::Value::none && tensor.layout.whole(view.range);
  view.versions = tensor.versions;
  if (view.memory == ViewMemory::array && view.gives_value) {
    for (std::uint32_t& version : view.versions) ++version;
  }
  return view;
}

}  // namespace swapmm::test
