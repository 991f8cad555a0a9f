// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/values/place_map.hpp>

namespace swapmm::runtime {

/// A download that was promised and not yet collected. The caller's handle refers to it; linked to its block.
struct PendingRead {
  enum class State : std::uint8_t { waiting, done, abandoned };
  std::byte* target = nullptr;
  Bytes offset;
  Bytes size;
  QueuePoint ready = 0;                      // on d2h
  std::uint64_t issue = 0;                   // of the copy that brings the value; 0: the host gave it
  std::string tensor;                        // name
  std::atomic<State> state{State::waiting};  ///< changed by whoever is inside the manager, read by the handle's owner
  PendingRead* next = nullptr;
};

/// Host memory that was taken from the API in one piece and that many blocks lie in.
template <Backend B>
struct HostSlab {
  typename B::HostMemory memory;
  PlaceMap places;  ///< of its bytes; a free one may still be in use by copies that were queued before
};

/// Host bytes that hold one tensor's value, or none at the moment: a part of a slab, or a memory of their own.
template <Backend B>
struct HostBlock {
  using Memory = typename B::HostMemory;

  HostSlab<B>* slab = nullptr;  // null: own
  std::optional<Memory> own{};  // null: slab
  Bytes offset{};               // in memory()
  Bytes size{};                 // of the block, not of the value
  HostKind kind = HostKind::pageable;
  QueuePoint written = 0;             // last copy into it (d2h)
  QueuePoint read = 0;                // last copy from it (h2d)
  PendingRead* pending = nullptr;     // reads promised from it
  std::unique_ptr<HostBlock> next{};  // in the pool's lists

  [[nodiscard]] Memory& memory() { return slab != nullptr ? slab->memory : *own; }
  [[nodiscard]] const Memory& memory() const { return slab != nullptr ? slab->memory : *own; }
  /// The first byte of the block.
  [[nodiscard]] std::byte* data() { return memory().data() + offset.value; }
  [[nodiscard]] const std::byte* data() const { return memory().data() + offset.value; }

  /// What must have ended before the host, or another copy, may write the bytes.
  [[nodiscard]] Clock busy() const {
    Clock clock;
    clock[QueueKind::d2h] = written;
    clock[QueueKind::h2d] = read;
    return clock;
  }
};

/// Blocks, linked by `next`. A block goes in and out without an allocation.
template <Backend B>
class HostBlockList {
 public:
  using Block = HostBlock<B>;

  HostBlockList() = default;
  HostBlockList(HostBlockList&&) noexcept = default;
  HostBlockList& operator=(HostBlockList&&) noexcept = default;
  ~HostBlockList() {
    while (first_ != nullptr) (void)pop();  // one by one: a long chain would end in a deep recursion
  }

  void push(std::unique_ptr<Block> block) noexcept {
    block->next = std::move(first_);
    first_ = std::move(block);
  }
  /// The one pushed last; null where there is none.
  std::unique_ptr<Block> pop() noexcept {
    std::unique_ptr<Block> block = std::move(first_);
    if (block != nullptr) first_ = std::move(block->next);
    return block;
  }
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (Block* block = first_.get(); block != nullptr; block = block->next.get()) visit(*block);
  }
  /// Takes out all that `wanted` says, and gives each to `sink`.
  template <class Wanted, class Sink>
  void take_if(Wanted&& wanted, Sink&& sink) noexcept {
    for (std::unique_ptr<Block>* at = &first_; *at != nullptr;) {
      if (!wanted(**at)) {
        at = &(*at)->next;
        continue;
      }
      std::unique_ptr<Block> block = std::move(*at);
      *at = std::move(block->next);
      sink(std::move(block));
    }
  }

 private:
  std::unique_ptr<Block> first_;
};

}  // namespace swapmm::runtime
