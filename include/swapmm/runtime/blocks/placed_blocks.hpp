// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>

namespace swapmm::runtime {

/// The bytes of a memory that the host does not address (a file, a neighbour's) as blocks for values. Never more than
/// the map of places has.
template <Backend B>
class PlacedBlocks {
 public:
  using Block = HostBlock<B>;

  PlacedBlocks(PlaceMap places, Home home) : places_(std::move(places)), home_(home) {}

  /// A block of at least `size` bytes; work queued before may still use it (see busy()). Null if there is no room in
  /// one piece, or `usable(end)` is false: whether the bytes up to the offset `end` can be used.
  template <class Usable>
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size, Usable&& usable) {
    size = round_up(size, places_.alignment());
    kept_.take_if([](const Block& kept) { return kept.pending == nullptr; },
                  [&](std::unique_ptr<Block> kept) noexcept { free(std::move(kept)); });
    std::unique_ptr<Block> block = spent_.pop();
    if (block == nullptr) block = std::make_unique<Block>();
    const std::optional<FreePlace> place = places_.take(size);
    if (!place || !usable(place->offset + size)) {
      if (place) places_.give_back(place->offset, size, place->after);
      spent_.push(std::move(block));
      return nullptr;
    }
    block->place = home_;
    block->offset = place->offset;
    block->size = size;
    block->written = place->after[writing_queue(home_)];
    block->read = place->after[reading_queue(home_)];
    peak_ = std::max(peak_, places_.used());
    return block;
  }

  /// Takes a block back. Work that uses it may still be queued. Its bytes stay while promised reads need them.
  void release(std::unique_ptr<Block> block) noexcept {
    if (block->pending != nullptr) return kept_.push(std::move(block));
    free(std::move(block));
  }

  /// Calls visit(block) for each block that was given back with reads pending.
  template <class Visit>
  void for_each_kept(Visit&& visit) {
    kept_.for_each(visit);
  }

  [[nodiscard]] Bytes in_use() const { return places_.used(); }
  [[nodiscard]] Bytes peak() const { return peak_; }
  [[nodiscard]] const PlaceMap& places() const { return places_; }

 private:
  // The bytes of a constant were never taken.
  void free(std::unique_ptr<Block> block) noexcept {
    if (block->source != nullptr) return;
    places_.give_back(block->offset, block->size, block->busy());
    spent_.push(std::move(block));
  }

  PlaceMap places_;
  Home home_;
  Bytes peak_;
  HostBlockList<B> kept_;   // given back, with reads pending
  HostBlockList<B> spent_;  // kept for reuse, so that a new block seldom allocates
};

}  // namespace swapmm::runtime
