// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/codec/zero_format.hpp>
#include <swapmm/runtime/blocks/encoding_types.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>
#include <swapmm/runtime/order/clock.hpp>

namespace swapmm::runtime {

/// A promised download that was not collected yet. The caller's handle refers to it, and it is linked to its block.
struct PendingRead {
  enum class State : std::uint8_t { waiting, done, abandoned };
  std::byte* target = nullptr;
  Bytes offset;
  Bytes size;
  Clock ready;                               // the value is in the block
  std::uint64_t issue = 0;                   // of the copy that brings the value; 0 if the host wrote it
  std::string tensor;                        // name
  bool decides = true;                       ///< what the program does next may depend on the value
  std::atomic<State> state{State::waiting};  ///< written by callers inside the manager, read by the handle's owner
  PendingRead* next = nullptr;
};

/// Host memory that was allocated from the API in one piece and contains many blocks.
template <Backend B>
struct HostSlab {
  typename B::HostMemory memory;
  PlaceMap places;  ///< its free bytes; queued copies may still use them
};

/// Host memory for one value in an encoded form.
template <Backend B>
struct EncodedValue {
  typename EncodingTypes<B>::Memory memory;
  ZeroElements elements;  ///< of the value
};

/// Bytes off the device for one tensor's value, which may be unused at the moment: host memory, as a part of a slab or
/// as a separate allocation, or bytes of a neighbour or of the file.
template <Backend B>
struct HostBlock {
  using Memory = typename B::HostMemory;

  HostSlab<B>* slab = nullptr;               // null if `own` is used
  std::optional<Memory> own{};               // null if `slab` is used
  Home place = Home::host;                   // otherwise neither `slab` nor `own` is used
  std::optional<EncodedValue<B>> encoded{};  // of Home::encoded
  FileMemory* source = nullptr;  // of a constant: the file that has the bytes. They are never written or given away
  std::uint32_t arena = 0;       // of neighbours: which one has the bytes
  Bytes offset{};                // in memory(), in the arena, or in the file
  Bytes size{};                  // of the block, not of the value
  HostKind kind = HostKind::pageable;
  QueuePoint written = 0;             // last copy into it, in writing_queue(place)
  QueuePoint read = 0;                // last copy from it, in reading_queue(place)
  PendingRead* pending = nullptr;     // reads promised from it
  std::unique_ptr<HostBlock> next{};  // in the pool's lists

  /// The memory of a block in the host.
  [[nodiscard]] Memory& memory() { return slab != nullptr ? slab->memory : *own; }
  [[nodiscard]] const Memory& memory() const { return slab != nullptr ? slab->memory : *own; }
  /// The first byte of a block in the host.
  [[nodiscard]] std::byte* data() { return memory().data() + offset.value; }
  [[nodiscard]] const std::byte* data() const { return memory().data() + offset.value; }

  /// Its bytes of host memory.
  [[nodiscard]] Bytes host_bytes() const { return in_host() || place == Home::encoded ? size : Bytes{}; }

  [[nodiscard]] Home home() const { return place; }
  [[nodiscard]] bool in_host() const { return place == Home::host; }

  /// The work that must end before the bytes may be read.
  [[nodiscard]] Clock ready() const { return Clock::point(writing_queue(place), written); }
  /// The work that must end before the host, or another copy, may write the bytes.
  [[nodiscard]] Clock busy() const {
    Clock clock = ready();
    clock.set(reading_queue(place), read);
    return clock;
  }
};

/// A list of blocks, linked by `next`. Adding or removing a block does not allocate.
template <Backend B>
class HostBlockList {
 public:
  using Block = HostBlock<B>;

  HostBlockList() = default;
  HostBlockList(HostBlockList&&) noexcept = default;
  HostBlockList& operator=(HostBlockList&&) noexcept = default;
  ~HostBlockList() {
    while (first_ != nullptr) (void)pop();  // one by one, because destroying a long chain would recurse deeply
  }

  void push(std::unique_ptr<Block> block) noexcept {
    block->next = std::move(first_);
    first_ = std::move(block);
  }
  /// Removes the block that was pushed last; null if the list is empty.
  std::unique_ptr<Block> pop() noexcept {
    std::unique_ptr<Block> block = std::move(first_);
    if (block != nullptr) first_ = std::move(block->next);
    return block;
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    for (Block* block = first_.get(); block != nullptr; block = block->next.get()) visit(*block);
  }
  /// Removes all blocks for which `wanted` is true, and passes each to `sink`.
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

/// The same, of which the oldest one comes first.
template <Backend B>
class HostBlockQueue {
 public:
  using Block = HostBlock<B>;

  void push(std::unique_ptr<Block> block) noexcept {
    newer_.push(std::move(block));
    ++size_;
  }
  /// Removes the block that was pushed first; null if there is none.
  std::unique_ptr<Block> pop() noexcept {
    std::unique_ptr<Block> block = older_.pop();
    if (block == nullptr) {
      while (std::unique_ptr<Block> newest = newer_.pop()) older_.push(std::move(newest));
      block = older_.pop();
    }
    if (block != nullptr) --size_;
    return block;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  HostBlockList<B> newer_;  // the newest one first
  HostBlockList<B> older_;  // the oldest one first; all are older than those
  std::size_t size_ = 0;
};

}  // namespace swapmm::runtime
