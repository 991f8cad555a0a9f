// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/neighbour.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>
#include <swapmm/runtime/blocks/placed_blocks.hpp>

namespace swapmm::runtime {

/// The memory of neighbours as blocks for values: arenas, of which each is one allocation. The first one with room
/// serves. Each of the first neighbours has a path of its own, and the others share the last one; faster paths are used
/// first, if their speeds are known. Their bytes are NeighbourCopies' to allocate.
template <Backend B>
class NeighbourBlocks {
 public:
  using Block = HostBlock<B>;

  explicit NeighbourBlocks(std::span<const std::shared_ptr<Neighbour>> neighbours) {
    for (const std::shared_ptr<Neighbour>& neighbour : neighbours) {
      all_.push_back(neighbour.get());
      (void)add(*neighbour, neighbour->capacity());
      staging_ += neighbour->staging();
    }
  }
  NeighbourBlocks(const NeighbourBlocks&) = delete;
  NeighbourBlocks& operator=(const NeighbourBlocks&) = delete;

  /// A block of at least `size` bytes; work queued before may still use it (see busy()). Null if no neighbour has room
  /// in one piece.
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size) {
    for (const std::size_t path : order_) {
      if (std::unique_ptr<Block> block = acquire_on(path, size)) return block;
    }
    return nullptr;
  }
  /// The same, of the neighbours on that path.
  [[nodiscard]] std::unique_ptr<Block> acquire_on(std::size_t path, Bytes size) {
    for (std::size_t number = 0; number < arenas_.size(); ++number) {
      Arena& arena = arenas_[number];
      if (arena.state != State::open || path_of(*arena.neighbour) != path) continue;
      std::unique_ptr<Block> block = arena.blocks->acquire(size, bytes_in(arena), [](Bytes) { return false; });
      if (block == nullptr) continue;
      block->arena = static_cast<std::uint32_t>(number);
      peak_ = std::max(peak_, in_use());
      return block;
    }
    return nullptr;
  }
  /// Called while nothing is in use: acquire() tries the paths in this order; at first it is that of the options.
  void begin_with(const NeighbourOrder& order) noexcept {
    order_ = order;
    peak_ = in_use();
  }

  /// Takes a block back. Work that uses it may still be queued. Its bytes stay while promised reads need them.
  void release(std::unique_ptr<Block> block) noexcept {
    const std::uint32_t arena = block->arena;
    arenas_[arena].blocks->release(std::move(block));
  }

  /// Calls visit(number, neighbour, path, bytes) for each arena; those that were removed have 0 bytes.
  template <class Visit>
  void for_each_arena(Visit&& visit) const {
    for (std::size_t number = 0; number < arenas_.size(); ++number) {
      const Arena& arena = arenas_[number];
      visit(number, *arena.neighbour, path_of(*arena.neighbour), bytes_in(arena));
    }
  }

  /// The path that copies of the neighbour are on.
  [[nodiscard]] std::size_t path_of(const Neighbour& neighbour) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(all_, &neighbour) - all_.begin());
    return std::min(at, neighbour_path_count - 1);
  }
  /// The bytes of the arenas on each path.
  [[nodiscard]] NeighbourBytes capacities() const {
    NeighbourBytes bytes;
    for (const Arena& arena : arenas_) bytes[path_of(*arena.neighbour)] += bytes_in(arena);
    return bytes;
  }
  [[nodiscard]] Bytes all_bytes() const { return sum(bytes_in); }
  [[nodiscard]] Bytes in_use() const {
    return sum([](const Arena& arena) { return arena.blocks ? arena.blocks->in_use() : Bytes{}; });
  }
  [[nodiscard]] Bytes peak() const { return peak_; }
  /// Host memory that copies pass through.
  [[nodiscard]] Bytes staging() const { return staging_; }
  /// Sizes in each of them are multiples of this.
  [[nodiscard]] Bytes alignment() const { return alignment_; }

  // ---- another amount of memory: see NeighbourChange

  /// The bytes of its arenas; none if it is not one of them.
  [[nodiscard]] std::optional<Bytes> bytes_of(const Neighbour& neighbour) const {
    std::optional<Bytes> bytes;
    for (const Arena& arena : arenas_) {
      if (arena.neighbour == &neighbour) bytes = bytes.value_or(Bytes{}) + bytes_in(arena);
    }
    return bytes;
  }
  /// Adds arenas of so many bytes; less than an alignment is left out. Returns their numbers.
  std::vector<std::size_t> add(const Neighbour& neighbour, Bytes bytes) {
    const Bytes alignment = neighbour.alignment();
    alignment_ = std::max(alignment_, alignment);
    const Bytes largest = std::max(round_down(neighbour.largest_allocation(), alignment), alignment);
    std::vector<std::size_t> added;
    Bytes left = round_down(bytes, alignment);
    if (left.value == 0 && !bytes_of(neighbour)) arenas_.push_back({&neighbour, std::nullopt, State::removed});
    while (left.value != 0) {
      const Bytes now = std::min(left, largest);
      added.push_back(free_number(neighbour));
      Arena& arena = arenas_[added.back()];
      arena.blocks.emplace(PlaceMap(now, now, alignment), neighbour_home(path_of(neighbour)));
      arena.state = State::open;
      left -= now;
    }
    return added;
  }
  /// No block of the neighbour is given out any more, or again.
  void close(const Neighbour& neighbour) noexcept { change(neighbour, State::open, State::closed); }
  void reopen(const Neighbour& neighbour) noexcept { change(neighbour, State::closed, State::open); }
  [[nodiscard]] bool is_closed(const Block& block) const { return arenas_[block.arena].state == State::closed; }
  /// Calls visit(block) for each block of closed arenas that was given back with reads pending.
  template <class Visit>
  void for_each_kept(Visit&& visit) {
    for (Arena& arena : arenas_) {
      if (arena.state == State::closed) arena.blocks->for_each_kept(visit);
    }
  }
  /// Closed arenas have no bytes any more. Nothing may use their blocks.
  void remove_closed() noexcept {
    for (Arena& arena : arenas_) {
      if (arena.state == State::closed) remove(arena);
    }
  }
  /// The same for these arenas, which have no blocks yet.
  void remove(const std::vector<std::size_t>& numbers) noexcept {
    for (const std::size_t number : numbers) remove(arenas_[number]);
  }

 private:
  enum class State : std::uint8_t { open, closed, removed };
  struct Arena {
    const Neighbour* neighbour;
    std::optional<PlacedBlocks<B>> blocks;  // none: removed
    State state;
  };

  static Bytes bytes_in(const Arena& arena) { return arena.blocks ? arena.blocks->places().budget() : Bytes{}; }

  static void remove(Arena& arena) noexcept {
    arena.blocks.reset();
    arena.state = State::removed;
  }

  // The number of a removed arena of the neighbour, or a new one.
  std::size_t free_number(const Neighbour& neighbour) {
    for (std::size_t number = 0; number < arenas_.size(); ++number) {
      if (arenas_[number].neighbour == &neighbour && arenas_[number].state == State::removed) return number;
    }
    arenas_.push_back({&neighbour, std::nullopt, State::removed});
    return arenas_.size() - 1;
  }

  void change(const Neighbour& neighbour, State from, State to) noexcept {
    for (Arena& arena : arenas_) {
      if (arena.neighbour == &neighbour && arena.state == from) arena.state = to;
    }
  }

  template <class Of>
  [[nodiscard]] Bytes sum(Of&& of) const {
    Bytes all;
    for (const Arena& arena : arenas_) all += of(arena);
    return all;
  }

  std::vector<const Neighbour*> all_;  // in the order of the options
  std::deque<Arena> arenas_;
  NeighbourOrder order_ = neighbours_as_listed;
  Bytes alignment_{1};
  Bytes staging_;
  Bytes peak_;
};

}  // namespace swapmm::runtime
