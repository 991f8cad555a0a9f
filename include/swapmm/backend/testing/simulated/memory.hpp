// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of a simulated device and its host memories. Both keep released memory, poisoned, and reuse it first, so
// that a use after release finds bytes of another owner, as on a real device.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/testing/simulated/neighbour.hpp>
#include <swapmm/backend/testing/simulated/shadow.hpp>
#include <swapmm/base/bytes.hpp>

namespace swapmm::simulated::detail {

/// Commands done per queue.
using Progress = std::array<std::uint64_t, queue_count>;

enum class BlockState : std::uint8_t {
  live,
  released,  ///< released by its owner, while queued commands still use it
  free,
};

/// A block number, and the generation of the block among those that had this number.
struct BlockId {
  std::uint32_t number = 0;
  std::uint32_t generation = 0;
};

/// The part that both kinds of memory share.
struct Block {
  std::uint64_t size = 0;      ///< requested size
  std::uint64_t capacity = 0;  ///< occupied size
  std::uint32_t generation = 0;
  BlockState state = BlockState::free;
  Progress last_use{};  ///< for each queue the last command that uses it, counted from 1

  [[nodiscard]] bool unused(const Progress& done) const {
    for (std::size_t i = 0; i < queue_count; ++i) {
      if (last_use[i] > done[i]) return false;
    }
    return true;
  }
};

struct DeviceBlock : Block {
  std::uint64_t offset = 0;
};

struct HostBlock : Block {
  std::unique_ptr<std::byte[]> storage;
  std::uint64_t stored = 0;  ///< size of the storage, which is reused for later blocks
  HostKind kind = HostKind::pageable;
  std::shared_ptr<NeighbourState> neighbour{};  ///< set if it is not on the host, but there
  Shadow shadow;
};

/// One flat range. An allocation takes the fitting hole that was freed last, then the lowest one.
class DeviceHeap {
 public:
  DeviceHeap(Bytes size, Bytes alignment, bool poison);

  /// Allocates `size` bytes, which must be above 0. None if no hole is large enough.
  [[nodiscard]] std::optional<std::uint32_t> allocate(std::uint64_t size);
  void free(std::uint32_t number) noexcept;

  [[nodiscard]] DeviceBlock& block(std::uint32_t number) { return blocks_[number]; }
  [[nodiscard]] std::byte* data(std::uint64_t offset) { return range_ + offset; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  struct Hole {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t freed_at = 0;  // 0: never used
  };

  std::uint64_t size_;
  std::uint64_t alignment_;
  bool poison_;
  std::unique_ptr<std::byte[]> storage_;
  std::byte* range_;
  std::vector<Hole> holes_;  // sorted by address, never adjacent
  std::uint64_t frees_ = 0;
  std::vector<DeviceBlock> blocks_;
  std::vector<std::uint32_t> free_numbers_;
};

/// Host memories, and memories of neighbours, each with its own address.
class HostHeap {
 public:
  explicit HostHeap(bool poison) : poison_(poison) {}

  [[nodiscard]] std::uint32_t allocate(std::uint64_t size, HostKind kind);
  void free(std::uint32_t number) noexcept;

  [[nodiscard]] HostBlock& block(std::uint32_t number) { return blocks_[number]; }

 private:
  bool poison_;
  std::vector<HostBlock> blocks_;
  std::vector<std::uint32_t> free_numbers_;  // the last one was freed last
};

}  // namespace swapmm::simulated::detail
