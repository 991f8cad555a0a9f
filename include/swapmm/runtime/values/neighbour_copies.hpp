// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/blocks/neighbour_blocks.hpp>
#include <swapmm/runtime/order/timeline.hpp>

namespace swapmm::runtime {

/// The memory that a manager has on neighbours, and the copies between it and the device, and between it and the host.
template <NeighbourBackend B>
class NeighbourCopies {
 public:
  using Block = HostBlock<B>;
  using Event = typename B::Event;

  /// Allocates all arenas of the blocks. Throws BackendError.
  NeighbourCopies(B& backend, Timeline<B>& timeline, const NeighbourBlocks<B>& blocks)
      : backend_(backend), timeline_(timeline) {
    match(blocks);
  }
  NeighbourCopies(const NeighbourCopies&) = delete;
  NeighbourCopies& operator=(const NeighbourCopies&) = delete;

  /// Frees the memory of arenas that were removed, then allocates that of new ones. Throws BackendError.
  void match(const NeighbourBlocks<B>& blocks) {
    blocks.for_each_arena([&](std::size_t number, const Neighbour&, std::size_t, Bytes bytes) {
      if (number >= arenas_.size()) arenas_.emplace_back();
      if (bytes.value == 0) arenas_[number].reset();
    });
    blocks.for_each_arena([&](std::size_t number, const Neighbour& neighbour, std::size_t path, Bytes bytes) {
      if (bytes.value != 0 && !arenas_[number]) arenas_[number].emplace(backend_.allocate_at(neighbour, bytes, path));
    });
  }

  /// Queues the copy of a value from a block to a place, after `waits` on the queue of its path, and records `end`
  /// there. The caller commits the point.
  void to_device(const typename B::Address& to, const Block& from, Bytes size, std::span<const Event* const> waits,
                 Event& end) {
    backend_.copy_from_neighbour(to, *arenas_[from.arena], from.offset, size, waits, end);
    bytes_read_ += size;
  }
  /// Queues the copy of a value from a place to a block, after `waits` on the queue of its path, and records `end`
  /// there.
  void from_device(const Block& to, const typename B::Address& from, Bytes size, std::span<const Event* const> waits,
                   Event& end) {
    backend_.copy_to_neighbour(*arenas_[to.arena], to.offset, from, size, waits, end);
    bytes_written_ += size;
  }

  /// Reads a part of a block's value into memory of the host. Waits for the value, and for the copy.
  void read(const Block& from, Bytes offset, std::span<std::byte> to) {
    timeline_.host_wait(from.ready());
    backend_.read_neighbour(*arenas_[from.arena], from.offset + offset, to);
    bytes_read_ += Bytes{to.size()};
  }
  /// Writes memory of the host into a part of a block. Work that uses the block must have ended. Waits for the copy. If
  /// it throws, and `began` is true, the block has no value any more.
  void write(const Block& to, Bytes offset, std::span<const std::byte> from, bool& began) {
    began = true;
    backend_.write_neighbour(*arenas_[to.arena], to.offset + offset, from);
    bytes_written_ += Bytes{from.size()};
  }

  /// So many bytes of the copies so far were no values.
  void discount(Bytes read, Bytes written) {
    bytes_read_ -= read;
    bytes_written_ -= written;
  }
  [[nodiscard]] Bytes bytes_read() const { return bytes_read_; }
  [[nodiscard]] Bytes bytes_written() const { return bytes_written_; }

 private:
  B& backend_;
  Timeline<B>& timeline_;
  std::vector<std::optional<typename B::NeighbourMemory>> arenas_;
  Bytes bytes_read_;
  Bytes bytes_written_;
};

}  // namespace swapmm::runtime
