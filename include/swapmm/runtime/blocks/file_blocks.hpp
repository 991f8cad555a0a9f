// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>
#include <swapmm/runtime/blocks/placed_blocks.hpp>

namespace swapmm::runtime {

/// The bytes of a file as blocks for values. The file grows with what is used, in steps, and never beyond its capacity.
template <Backend B>
class FileBlocks {
 public:
  using Block = HostBlock<B>;

  explicit FileBlocks(FileMemory& file)
      : file_(file), blocks_(PlaceMap(file.capacity(), file.capacity(), file.alignment()), Home::file) {}
  FileBlocks(const FileBlocks&) = delete;
  FileBlocks& operator=(const FileBlocks&) = delete;

  /// A block of at least `size` bytes; work queued before may still use it (see busy()). Null if the file has no room
  /// in one piece, or the disk has none.
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size) {
    return blocks_.acquire(size, reserved_, [this](Bytes end) { return reserve(end); });
  }

  /// The block of a constant: `size` bytes of another file, from `offset` on. Keeps that file as long as this exists,
  /// because reads of it may be queued.
  [[nodiscard]] std::unique_ptr<Block> constant(const std::shared_ptr<FileMemory>& source, Bytes offset, Bytes size) {
    if (std::find(sources_.begin(), sources_.end(), source) == sources_.end()) sources_.push_back(source);
    auto block = std::make_unique<Block>();
    block->place = Home::file;
    block->source = source.get();
    block->offset = offset;
    block->size = size;
    return block;
  }

  /// Takes a block back. Work that uses it may still be queued. Its bytes stay while promised reads need them.
  void release(std::unique_ptr<Block> block) noexcept { blocks_.release(std::move(block)); }

  [[nodiscard]] Bytes in_use() const { return blocks_.in_use(); }
  [[nodiscard]] Bytes peak() const { return blocks_.peak(); }
  [[nodiscard]] const FileMemory& file() const { return file_; }

 private:
  static constexpr Bytes step{64U << 20U};

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
  PlacedBlocks<B> blocks_;
  Bytes reserved_;                                    // so much of the file has room on the disk
  std::vector<std::shared_ptr<FileMemory>> sources_;  // of constants
};

}  // namespace swapmm::runtime
