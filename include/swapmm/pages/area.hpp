// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <swapmm/base/export.hpp>
#include <swapmm/pages/page_access.hpp>

namespace swapmm::pages {

/// What a block of memory holds, compared with the value that it is a view of.
enum class BlockState : std::uint8_t {
  absent,    ///< an older value, or none; a lazy block may not be read
  clean,     ///< the value; a lazy block may not be written
  modified,  ///< what the program wrote; it may be read and written
};

/// Memory of the host in blocks, and the permissions that make the first access to a block a fault. Blocks are lazy or
/// eager: a lazy block consists of whole pages that nothing else uses. An eager block is never protected; a copy of it
/// tells whether the program has changed it. Edges that share a page with other data are eager.
///
/// One thread at a time changes states. Others may read them.
class Area {
 public:
  /// Part of the memory, in bytes from its beginning.
  struct Block {
    std::size_t begin;
    std::size_t end;
  };

  /// `memory`: the program's, or empty for `bytes` zeroed bytes of the area's own. `block_bytes`: a multiple of the
  /// page size. All blocks are `state`, which is absent or modified. If `why_eager` is not empty, or the system refuses
  /// to protect this memory, all blocks are eager. Throws std::bad_alloc.
  SWAPMM_TEMPLATE_EXPORT Area(std::span<std::byte> memory, std::size_t bytes, std::size_t block_bytes, BlockState state,
                              std::string why_eager);
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;
  /// The program may read and write its own memory again.
  SWAPMM_TEMPLATE_EXPORT ~Area();

  [[nodiscard]] std::span<std::byte> bytes() const { return {begin_, size_}; }
  /// Why all blocks are eager; empty if the whole pages are lazy.
  [[nodiscard]] const std::string& why_eager() const { return why_eager_; }

  // ---- blocks

  [[nodiscard]] std::size_t count() const { return blocks_.size(); }
  [[nodiscard]] Block block(std::size_t i) const { return blocks_[i]; }
  [[nodiscard]] std::span<std::byte> bytes_of(std::size_t i) const {
    return bytes().subspan(blocks_[i].begin, blocks_[i].end - blocks_[i].begin);
  }
  /// The block that has this byte. Async-signal-safe.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::size_t at(std::size_t offset) const noexcept;
  [[nodiscard]] bool is_eager(std::size_t i) const { return i < first_lazy_ || i >= end_lazy_; }
  /// Async-signal-safe.
  [[nodiscard]] BlockState state(std::size_t i) const noexcept { return states_[i].load(std::memory_order_acquire); }
  /// True if the program has changed the block. Compares the bytes of eager blocks.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool is_modified(std::size_t i) const;
  /// The bytes from which to which faults are possible.
  [[nodiscard]] Block protected_part() const noexcept;

  // ---- changes of state

  /// Gives an absent block its bytes, which no thread sees before all are there, and then permission. Returns false if
  /// the system refuses the permission; the block is still absent.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool fill(std::size_t i, std::span<const std::byte> from, bool writable);
  /// Lets the program write a clean block, which counts as modified. Returns false if the system refuses. Async-signal-
  /// safe.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool open(std::size_t i) noexcept;
  /// Takes the permission to write a modified block away; its bytes are about to be copied. If the system refuses, a
  /// lazy block stays modified.
  SWAPMM_TEMPLATE_EXPORT void close(std::size_t i) noexcept;
  /// Called if the bytes of a closed block could not be copied.
  SWAPMM_TEMPLATE_EXPORT void reopen(std::size_t i) noexcept;
  /// The value was replaced: all blocks are absent. Throws std::system_error if the system refuses.
  SWAPMM_TEMPLATE_EXPORT void forget();
  /// The value may have been replaced: clean blocks are absent, and modified blocks stay.
  SWAPMM_TEMPLATE_EXPORT void forget_clean();
  /// As forget(), for the blocks that have a byte of this part. A part of a block must not be modified.
  SWAPMM_TEMPLATE_EXPORT void forget(std::size_t begin, std::size_t end);

  /// Writes to an absent lazy block and leaves it absent, before open_all().
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool poke(std::size_t i, std::span<const std::byte> from) const noexcept;
  /// Makes one range of all lazy blocks: the program may write all, and all count as modified. For a process that may
  /// have no more ranges of pages. Returns false if the system refuses.
  [[nodiscard]] SWAPMM_TEMPLATE_EXPORT bool open_all() noexcept;

 private:
  void divide(std::size_t block_bytes);
  [[nodiscard]] bool permit_block(std::size_t first, std::size_t last, Permission permission) const noexcept;
  [[nodiscard]] std::byte* shadow_of(std::size_t i) const;
  void set(std::size_t i, BlockState state) noexcept { states_[i].store(state, std::memory_order_release); }

  PageMemory own_;
  std::byte* begin_;
  std::size_t size_;
  std::size_t block_bytes_;
  std::string why_eager_;
  PastPermissions past_;
  std::vector<Block> blocks_;
  std::size_t first_lazy_ = 0;  // number of the block
  std::size_t end_lazy_ = 0;
  std::unique_ptr<std::atomic<BlockState>[]> states_;
  std::unique_ptr<std::byte[]> shadow_;  // of eager blocks: the bytes that the value has
};

}  // namespace swapmm::pages
