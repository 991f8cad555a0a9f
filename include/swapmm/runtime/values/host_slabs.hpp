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
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/values/host_block.hpp>
#include <swapmm/runtime/values/place_map.hpp>
#include <swapmm/runtime/values/scrubber.hpp>

namespace swapmm::runtime {

/// Host memory from the API, or nothing where it has none.
template <Backend B>
std::optional<typename B::HostMemory> take_host_memory(B& backend, Bytes size, HostKind kind) {
  try {
    return backend.allocate_host(size, kind);
  } catch (const BackendError& error) {
    if (error.kind != BackendError::Kind::out_of_host_memory) throw;
    return std::nullopt;
  }
}

/// Page-locked memory in few large pieces, and what is free in them: each piece costs a call of the API that may take
/// longer than a copy of its bytes. Pieces double, so that small programs take little and large ones make few calls.
///
/// Free bytes carry the points behind the copies that still use them, as blocks do: they go to blocks of other sizes
/// without a wait, and whoever writes them next comes after those copies.
template <Backend B>
class HostSlabs {
 public:
  using Block = HostBlock<B>;

  /// Of every block in a slab: what CUDA's own allocations have, so that a copy is as fast from any block as from a
  /// memory of its own; and a multiple of any cache line, so that host and device never write to the same one.
  static constexpr Bytes alignment{256};

  /// `largest`: Capabilities::host_slab; 0: there are no slabs. `scrub`: those that go back are zero.
  HostSlabs(B& backend, Bytes largest, bool scrub = false)
      : backend_(backend), largest_(round_up(largest, alignment)), limit_(largest_), scrub_(scrub) {}

  [[nodiscard]] bool wanted() const { return largest_.value != 0; }
  [[nodiscard]] std::size_t count() const { return slabs_.size(); }
  /// Bytes of the slabs in which nothing is taken.
  [[nodiscard]] Bytes unused() const {
    Bytes bytes;
    for (const auto& slab : slabs_) bytes += is_unused(*slab) ? slab->places.budget() : Bytes{};
    return bytes;
  }

  /// A block of exactly that size, a multiple of the alignment; null where no slab has the room in one piece. Work
  /// queued before may still use it (see busy()).
  [[nodiscard]] std::unique_ptr<Block> carve(Bytes size) {
    if (slabs_.empty()) return nullptr;
    std::unique_ptr<Block> block = spent_.pop();
    if (block == nullptr) block = std::make_unique<Block>();
    for (const auto& slab : slabs_) {  // the oldest first, so that a late one may become unused
      const std::optional<FreePlace> place = slab->places.take(size);
      if (!place) continue;
      block->slab = slab.get();
      block->offset = place->offset;
      block->size = size;
      block->kind = HostKind::pinned;
      block->written = place->after[QueueKind::d2h];
      block->read = place->after[QueueKind::h2d];
      return block;
    }
    spent_.push(std::move(block));
    return nullptr;
  }

  /// The bytes of a block of a slab are free for any size, and one with free neighbours. No read is pending from it.
  void merge(std::unique_ptr<Block> block) noexcept {
    block->slab->places.give_back(block->offset, block->size, block->busy());
    spent_.push(std::move(block));
  }

  /// Takes another slab of at least `least` bytes, a multiple of the alignment, and at most `room`. Returns its bytes;
  /// none where the API refuses.
  [[nodiscard]] Bytes grow(Bytes least, Bytes room) {
    const Bytes size = std::min(wish(least), round_down(room, alignment));
    if (take(size)) return size;
    if (size == least) return Bytes{};
    limit_ = round_down(Bytes{size.value / 2}, alignment);  // so large a slab is not asked for again and again
    return take(least) ? least : Bytes{};
  }

  /// Gives unused slabs back to the API, and returns their bytes. No copy may use them any more.
  Bytes give_back_unused() noexcept {
    const Bytes before = taken_;
    std::erase_if(slabs_, [&](const auto& slab) {
      if (!is_unused(*slab)) return false;
      if (scrub_) scrub_host(backend_, slab->memory, slab->places.budget());
      taken_ -= slab->places.budget();
      return true;
    });
    return before - taken_;
  }
  /// Writes zeros over all of them. No copy uses them any more.
  void scrub() noexcept {
    for (const auto& slab : slabs_) scrub_host(backend_, slab->memory, slab->places.budget());
  }

 private:
  using Slab = HostSlab<B>;
  static constexpr Bytes page{4096};  // what the API rounds up to in any case

  static bool is_unused(const Slab& slab) { return slab.places.used().value == 0; }

  [[nodiscard]] Bytes wish(Bytes least) const {
    const Bytes doubling = slabs_.empty() ? Bytes{largest_.value / 32} : taken_;
    return std::min(round_up(std::max(doubling, least), page), std::max(limit_, least));
  }

  bool take(Bytes size) {
    slabs_.reserve(slabs_.size() + 1);
    auto memory = take_host_memory(backend_, size, HostKind::pinned);
    if (!memory) return false;
    slabs_.push_back(std::unique_ptr<Slab>(new Slab{std::move(*memory), PlaceMap(size, size, alignment)}));
    taken_ += size;
    return true;
  }

  B& backend_;
  Bytes largest_;
  Bytes limit_;  // of the next slab; below `largest_` once the API has refused
  Bytes taken_;
  bool scrub_;
  std::vector<std::unique_ptr<Slab>> slabs_;  // none moves
  HostBlockList<B> spent_;                    // merged, to be used again: taking turns of sizes allocates nothing
};

}  // namespace swapmm::runtime
