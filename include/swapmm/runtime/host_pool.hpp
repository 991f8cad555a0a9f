// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/error.hpp>
#include <swapmm/runtime/clock.hpp>

namespace swapmm::runtime {

/// A download that was promised and not yet collected. The caller's handle refers to it; linked to its block.
struct PendingRead {
  enum class State : std::uint8_t { waiting, done, abandoned };
  std::byte* target = nullptr;
  Bytes offset;
  Bytes size;
  Sequence ready = 0;       // on d2h
  std::uint64_t issue = 0;  // of the copy that brings the value; 0: the host gave it
  std::string tensor;       // name
  State state = State::waiting;
  PendingRead* next = nullptr;
};

/// Host bytes that hold one tensor's value, or none at the moment.
template <Backend B>
struct HostBlock {
  typename B::HostMemory memory;
  Bytes size;
  HostKind kind;
  Sequence written = 0;               // last copy into it (d2h)
  Sequence read = 0;                  // last copy from it (h2d)
  PendingRead* pending = nullptr;     // reads promised from it
  std::unique_ptr<HostBlock> next{};  // in the pool's free list

  /// What must have ended before the host, or another copy, may write the bytes.
  [[nodiscard]] Clock busy() const {
    Clock clock;
    clock[QueueKind::d2h] = written;
    clock[QueueKind::h2d] = read;
    return clock;
  }
};

/// Host memory for values that are not on the device: pinned while its budget lasts, then pageable. Blocks are
/// kept for reuse by tensors of the same size; kept blocks go first when a budget is short.
template <Backend B>
class HostPool {
 public:
  using Block = HostBlock<B>;

  HostPool(B& backend, Bytes pinned_budget, Bytes host_budget)
      : backend_(backend), pinned_budget_(pinned_budget), host_budget_(host_budget) {}
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool() {
    for (Shelf& shelf : shelves_) {
      while (shelf.first != nullptr) shelf.first = std::move(shelf.first->next);
    }
  }

  /// A block of at least `size` bytes; work queued before may still use it (see busy()). Throws OutOfMemory.
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size) {
    size = round_up(size, granule);
    if (Shelf* const shelf = find(size); shelf != nullptr && shelf->first != nullptr) {
      std::unique_ptr<Block> block = std::move(shelf->first);
      shelf->first = std::move(block->next);
      kept_ -= size;
      return block;
    }
    (void)shelf_for(size);  // release() never allocates
    if (size > host_budget_ || in_use_ > host_budget_ - size) {
      trim_used();
      if (size > host_budget_ || in_use_ > host_budget_ - size) {
        throw OutOfMemory("host budget exceeded: " + std::to_string(size.value) + " bytes needed, " +
                          std::to_string(in_use_.value) + " of " + std::to_string(host_budget_.value) +
                          " in use; raise Options::host_budget");
      }
    }
    const bool pinned_has_room = size <= pinned_budget_ && pinned_ <= pinned_budget_ - size;
    std::unique_ptr<Block> block = pinned_has_room ? make(size, HostKind::pinned) : nullptr;
    if (block == nullptr) block = make(size, HostKind::pageable);
    if (block == nullptr) {
      trim_used();
      block = make(size, HostKind::pageable);
    }
    if (block == nullptr) {
      throw OutOfMemory("the host has no " + std::to_string(size.value) + " bytes for a swapped tensor; " +
                        std::to_string(in_use_.value) + " are in use");
    }
    in_use_ += size;
    peak_ = std::max(peak_, in_use_);
    if (block->kind == HostKind::pinned) pinned_ += size;
    return block;
  }

  /// Takes a block back for reuse. Work that uses it may still be queued.
  void release(std::unique_ptr<Block> block) noexcept {
    Shelf* const shelf = find(block->size);
    kept_ += block->size;
    block->next = std::move(shelf->first);
    shelf->first = std::move(block);
  }

  /// Frees all kept blocks but those that promised reads still need.
  void trim() noexcept {
    for (Shelf& shelf : shelves_) {
      for (std::unique_ptr<Block>* at = &shelf.first; *at != nullptr;) {
        if ((*at)->pending != nullptr) {
          at = &(*at)->next;
          continue;
        }
        const std::unique_ptr<Block> block = std::move(*at);
        *at = std::move(block->next);
        in_use_ -= block->size;
        kept_ -= block->size;
        if (block->kind == HostKind::pinned) pinned_ -= block->size;
      }
    }
  }

  [[nodiscard]] Bytes in_use() const { return in_use_; }
  [[nodiscard]] Bytes peak() const { return peak_; }
  [[nodiscard]] Bytes pinned() const { return pinned_; }

 private:
  static constexpr Bytes granule{64};
  struct Shelf {
    Bytes size;
    std::unique_ptr<Block> first;
  };

  Shelf* find(Bytes size) {
    const auto at = std::lower_bound(shelves_.begin(), shelves_.end(), size,
                                     [](const Shelf& shelf, Bytes wanted) { return shelf.size < wanted; });
    return at != shelves_.end() && at->size == size ? &*at : nullptr;
  }
  Shelf& shelf_for(Bytes size) {
    const auto at = std::lower_bound(shelves_.begin(), shelves_.end(), size,
                                     [](const Shelf& shelf, Bytes wanted) { return shelf.size < wanted; });
    if (at != shelves_.end() && at->size == size) return *at;
    return *shelves_.insert(at, Shelf{size, nullptr});
  }
  // Where bytes are short. Queued copies may still use kept blocks, and such bytes come back only when they end.
  void trim_used() {
    if (kept_.value == 0) return;
    backend_.finish();
    trim();
  }
  std::unique_ptr<Block> make(Bytes size, HostKind kind) {
    try {
      return std::unique_ptr<Block>(new Block{backend_.allocate_host(size, kind), size, kind});
    } catch (const BackendError& error) {
      if (error.kind != BackendError::Kind::out_of_host_memory) throw;
      return nullptr;
    }
  }

  B& backend_;
  Bytes pinned_budget_;
  Bytes host_budget_;
  Bytes in_use_;  // kept blocks included
  Bytes kept_;
  Bytes peak_;
  Bytes pinned_;
  std::vector<Shelf> shelves_;  // ascending sizes
};

}  // namespace swapmm::runtime
