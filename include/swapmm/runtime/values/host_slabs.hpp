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
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>
#include <swapmm/runtime/values/scrubber.hpp>

namespace swapmm::runtime {

/// Allocates host memory from the API. Returns nothing if the API refuses.
template <Backend B>
std::optional<typename B::HostMemory> take_host_memory(B& backend, Bytes size, HostKind kind) {
  try {
    return backend.allocate_host(size, kind);
  } catch (const BackendError& error) {
    if (error.kind != BackendError::Kind::out_of_host_memory) throw;
    return std::nullopt;
  }
}

/// Page-locked memory in few large pieces (slabs), and their free bytes. Each piece costs a call of the API that may
/// take longer than a copy of its bytes. Sizes double, so that small programs take little memory and large ones make
/// few calls.
///
/// Free bytes have the points after the copies that still use them, as blocks do. They become blocks of other sizes
/// without a wait, and the next writer comes after those copies.
template <Backend B>
class HostSlabs {
 public:
  using Block = HostBlock<B>;

  /// Alignment of every block in a slab. It is the alignment of CUDA's own allocations, so that a copy is as fast from
  /// any block as from a separate allocation. It is also a multiple of any cache line, so that host and device never
  /// write to the same cache line.
  static constexpr Bytes alignment{256};

  /// `largest`: Capabilities::host_slab; if 0, there are no slabs. `scrub`: slabs are overwritten with zeros before
  /// they are returned.
  HostSlabs(B& backend, Bytes largest, bool scrub = false)
      : backend_(backend), largest_(round_up(largest, alignment)), limit_(largest_), scrub_(scrub) {}

  [[nodiscard]] bool wanted() const { return largest_.value != 0; }
  [[nodiscard]] std::size_t count() const { return slabs_.size(); }
  /// Total size of the slabs that are not in use.
  [[nodiscard]] Bytes unused() const {
    Bytes bytes;
    for (const auto& slab : slabs_) bytes += is_unused(*slab) ? slab->places.budget() : Bytes{};
    return bytes;
  }

  /// A block of exactly this size, which is a multiple of the alignment; null if no slab has the room in one piece.
  /// Work queued before may still use the block (see busy()).
  [[nodiscard]] std::unique_ptr<Block> carve(Bytes size) {
    std::unique_ptr<Block> block = spent_.pop();
    if (block == nullptr) block = std::make_unique<Block>();
    for (const auto& slab : slabs_) {  // the oldest first, so that newer slabs may become unused
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

  /// Frees a block of a slab. Its bytes are merged with free neighbours and may be used for any size. No read may be
  /// pending from it.
  void merge(std::unique_ptr<Block> block) noexcept {
    block->slab->places.give_back(block->offset, block->size, block->busy());
    spent_.push(std::move(block));
  }

  /// Allocates another slab of at least `least` bytes, a multiple of the alignment, and at most `room` bytes. Returns
  /// its size; 0 if the API refuses.
  [[nodiscard]] Bytes grow(Bytes least, Bytes room) {
    const Bytes size = std::min(wish(least), round_down(room, alignment));
    if (take(size)) return size;
    if (size == least) return Bytes{};
    limit_ = round_down(Bytes{size.value / 2}, alignment);  // so that a slab of this size is not requested repeatedly
    return take(least) ? least : Bytes{};
  }

  /// Returns unused slabs to the API. The result is their total size. No copy may use them any more.
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
  /// Overwrites all slabs with zeros. No copy may use them any more.
  void scrub() noexcept {
    for (const auto& slab : slabs_) scrub_host(backend_, slab->memory, slab->places.budget());
  }

 private:
  using Slab = HostSlab<B>;
  static constexpr Bytes page{4096};  // the API rounds sizes up to this in any case

  static bool is_unused(const Slab& slab) { return slab.places.used().value == 0; }

  [[nodiscard]] Bytes wish(Bytes least) const {
    const Bytes doubling = slabs_.empty() ? Bytes{largest_.value / 32} : taken_;
    return std::min(round_up(std::max(doubling, least), page), std::max(limit_, least));
  }

  bool take(Bytes size) {
    auto memory = take_host_memory(backend_, size, HostKind::pinned);
    if (!memory) return false;
    slabs_.push_back(std::unique_ptr<Slab>(new Slab{std::move(*memory), PlaceMap(size, size, alignment)}));
    taken_ += size;
    return true;
  }

  B& backend_;
  Bytes largest_;
  Bytes limit_;  // for the next slab; below `largest_` once the API has refused
  Bytes taken_;
  bool scrub_;
  std::vector<std::unique_ptr<Slab>> slabs_;  // slabs do not move
  HostBlockList<B> spent_;                    // merged, kept for reuse, so that alternating sizes do not allocate
};

}  // namespace swapmm::runtime
