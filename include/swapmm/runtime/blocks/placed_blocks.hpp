// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>

namespace swapmm::runtime {

/// The bytes of a memory that the host does not address (a file, a neighbour's) as blocks for values. Never more than
/// the map of places has.
///
/// A copy into a block waits for the last copy from it. Blocks that were given back are therefore used again oldest
/// first, and others before them: otherwise copies in one direction would wait for those in the other one. At most
/// half of all bytes waits like this, so that pieces stay large.
template <Backend B>
class PlacedBlocks {
 public:
  using Block = HostBlock<B>;

  PlacedBlocks(PlaceMap places, Home home) : places_(std::move(places)), home_(home) {}

  /// A block of at least `size` bytes; work queued before may still use it (see busy()). Null if there is no room in
  /// one piece, or `usable(end)` is false: whether the bytes up to the offset `end` can be made usable. Those up to
  /// `ready` are.
  template <class Usable>
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size, Bytes ready, Usable&& usable) {
    size = round_up(size, places_.alignment());
    kept_.take_if([](const Block& kept) { return kept.pending == nullptr; },
                  [&](std::unique_ptr<Block> kept) noexcept { free(std::move(kept)); });
    Shelf& shelf = shelf_for(size);  // release() never allocates
    std::unique_ptr<Block> block = shelf.blocks.size() >= enough ? reuse(shelf) : nullptr;
    if (block == nullptr) block = take(size, ready);
    if (block == nullptr) block = reuse(shelf);
    if (block == nullptr) block = extend(size, usable);
    if (block == nullptr && unused_.value != 0) {
      for (Shelf& other : shelves_) {
        while (std::unique_ptr<Block> unused = reuse(other)) give_place_back(std::move(unused));
      }
      block = take(size, ready);
      if (block == nullptr) block = extend(size, usable);
    }
    if (block != nullptr) peak_ = std::max(peak_, in_use());
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

  [[nodiscard]] Bytes in_use() const { return places_.used() - unused_; }
  [[nodiscard]] Bytes peak() const { return peak_; }
  [[nodiscard]] const PlaceMap& places() const { return places_; }

 private:
  /// Of one size, so many that the oldest one is seldom in use.
  static constexpr std::size_t enough = 8;
  struct Shelf {
    Bytes size;
    HostBlockQueue<B> blocks;
  };

  // Among the bytes that are ready.
  std::unique_ptr<Block> take(Bytes size, Bytes ready) {
    std::unique_ptr<Block> block = empty_block();
    const std::optional<FreePlace> place = places_.take_below(size, ready);
    if (place) return at(*place, size, std::move(block));
    spent_.push(std::move(block));
    return nullptr;
  }
  // With as few bytes as possible behind those that are ready.
  template <class Usable>
  std::unique_ptr<Block> extend(Bytes size, Usable&& usable) {
    std::unique_ptr<Block> block = empty_block();
    const std::optional<FreePlace> place = places_.take_lowest(size);
    const auto give_back = [&]() noexcept {
      if (place) places_.give_back(place->offset, size, place->after);
      spent_.push(std::move(block));
    };
    try {
      if (place && usable(place->offset + size)) return at(*place, size, std::move(block));
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
    return nullptr;
  }
  std::unique_ptr<Block> empty_block() {
    std::unique_ptr<Block> block = spent_.pop();
    return block != nullptr ? std::move(block) : std::make_unique<Block>();
  }
  std::unique_ptr<Block> at(const FreePlace& place, Bytes size, std::unique_ptr<Block> block) noexcept {
    block->place = home_;
    block->offset = place.offset;
    block->size = size;
    block->written = place.after[writing_queue(home_)];
    block->read = place.after[reading_queue(home_)];
    return block;
  }
  std::unique_ptr<Block> reuse(Shelf& shelf) noexcept {
    std::unique_ptr<Block> block = shelf.blocks.pop();
    if (block != nullptr) unused_ -= block->size;
    return block;
  }
  // The bytes of a constant were never taken.
  void free(std::unique_ptr<Block> block) noexcept {
    if (block->source != nullptr) return;
    Shelf& shelf = *shelf_of(block->size);
    unused_ += block->size;
    shelf.blocks.push(std::move(block));
    while (unused_ > Bytes{places_.budget().value / 2}) {
      std::unique_ptr<Block> oldest = reuse(shelf);
      if (oldest == nullptr) return;  // others are unused
      give_place_back(std::move(oldest));
    }
  }
  void give_place_back(std::unique_ptr<Block> block) noexcept {
    places_.give_back(block->offset, block->size, block->busy());
    spent_.push(std::move(block));
  }

  auto shelf_of(Bytes size) noexcept { return std::ranges::lower_bound(shelves_, size, {}, &Shelf::size); }
  Shelf& shelf_for(Bytes size) {
    const auto at = shelf_of(size);
    if (at != shelves_.end() && at->size == size) return *at;
    return *shelves_.insert(at, Shelf{size, {}});
  }

  PlaceMap places_;
  Home home_;
  Bytes peak_;
  std::vector<Shelf> shelves_;  // ascending sizes: blocks that were given back, and still have their places
  Bytes unused_;                // of these
  HostBlockList<B> kept_;       // given back, with reads pending
  HostBlockList<B> spent_;      // without a place, kept so that a new block seldom allocates
};

}  // namespace swapmm::runtime
