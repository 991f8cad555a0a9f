// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/values/host_block.hpp>
#include <swapmm/runtime/values/place_map.hpp>

namespace swapmm::runtime {

/// The bytes of a file as blocks for values. The file grows with what is used, in steps, and never beyond its capacity.
template <Backend B>
class FileBlocks {
 public:
  using Block = HostBlock<B>;

  explicit FileBlocks(FileMemory& file) : file_(file), places_(file.capacity(), file.capacity(), file.alignment()) {}
  FileBlocks(const FileBlocks&) = delete;
  FileBlocks& operator=(const FileBlocks&) = delete;

  /// A block of at least `size` bytes; work queued before may still use it (see busy()). Null if the file has no room
  /// in one piece, or the disk has none.
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size) {
    size = round_up(size, file_.alignment());
    kept_.take_if([](const Block& kept) { return kept.pending == nullptr; },
                  [&](std::unique_ptr<Block> kept) noexcept { free(std::move(kept)); });
    std::unique_ptr<Block> block = spent_.pop();
    if (block == nullptr) block = std::make_unique<Block>();
    const std::optional<FreePlace> place = places_.take(size);
    if (!place || !reserve(place->offset + size)) {
      if (place) places_.give_back(place->offset, size, place->after);
      spent_.push(std::move(block));
      return nullptr;
    }
    block->in_file = true;
    block->offset = place->offset;
    block->size = size;
    block->written = place->after[QueueKind::file_write];
    block->read = place->after[QueueKind::file_read];
    peak_ = std::max(peak_, places_.used());
    return block;
  }

  /// The block of a constant: `size` bytes of another file, from `offset` on. Keeps that file as long as this exists,
  /// because reads of it may be queued.
  [[nodiscard]] std::unique_ptr<Block> constant(const std::shared_ptr<FileMemory>& source, Bytes offset, Bytes size) {
    if (std::find(sources_.begin(), sources_.end(), source) == sources_.end()) sources_.push_back(source);
    auto block = std::make_unique<Block>();
    block->in_file = true;
    block->source = source.get();
    block->offset = offset;
    block->size = size;
    return block;
  }

  /// Takes a block back. Work that uses it may still be queued. Its bytes stay while promised reads need them.
  void release(std::unique_ptr<Block> block) noexcept {
    if (block->pending != nullptr) return kept_.push(std::move(block));
    free(std::move(block));
  }

  [[nodiscard]] Bytes in_use() const { return places_.used(); }
  [[nodiscard]] Bytes peak() const { return peak_; }
  [[nodiscard]] const FileMemory& file() const { return file_; }

 private:
  static constexpr Bytes step{64U << 20U};

  void free(std::unique_ptr<Block> block) noexcept {
    if (block->source != nullptr) return;
    places_.give_back(block->offset, block->size, block->busy());
    spent_.push(std::move(block));
  }

  // The disk may have room for what is needed and not for a whole step.
  bool reserve(Bytes end) {
    if (end <= reserved_) return true;
    for (const Bytes wanted : {std::min(round_up(end, step), file_.capacity()), end}) {
      try {
        file_.reserve(wanted);
        reserved_ = wanted;
        return true;
      } catch (const BackendError& error) {
        if (error.kind != BackendError::Kind::out_of_host_memory) throw;
      }
    }
    return false;
  }

  FileMemory& file_;
  PlaceMap places_;
  Bytes reserved_;  // so much of the file has room on the disk
  Bytes peak_;
  HostBlockList<B> kept_;                             // given back, with reads pending
  HostBlockList<B> spent_;                            // kept for reuse, so that a new block seldom allocates
  std::vector<std::shared_ptr<FileMemory>> sources_;  // of constants
};

}  // namespace swapmm::runtime
