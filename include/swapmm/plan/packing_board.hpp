// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <swapmm/plan/packing.hpp>

namespace swapmm::packing {

/// Items on their places while a packing is made. Finding the placed items that share a slot with another one costs
/// about the number of those in its block of slots, or of all of them where it reaches over more than one block.
class Board {
 public:
  static constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t end = 0;
    std::uint32_t item = 0;
    std::uint32_t start = 0;
    std::uint32_t length = 0;
  };

  explicit Board(const PackingProblem& problem);

  [[nodiscard]] std::size_t size() const { return sizes_.size(); }
  [[nodiscard]] std::uint64_t size_of(std::uint32_t item) const { return sizes_[item]; }
  [[nodiscard]] std::uint64_t offset_of(std::uint32_t item) const { return offsets_[item]; }
  [[nodiscard]] bool is_placed(std::uint32_t item) const { return offsets_[item] != nowhere; }

  void clear();
  void place(std::uint32_t item, std::uint64_t offset);
  void remove(std::uint32_t item);

  /// The places of all placed items that share a slot with `item`, by ascending offset. Valid until the next call.
  const std::vector<Range>& conflicts(std::uint32_t item);

  /// The lowest allowed offset for `size` bytes at or above `offset`, with respect to alignment and arenas.
  [[nodiscard]] std::uint64_t allowed(std::uint64_t offset, std::uint64_t size) const;

  /// The offset in the smallest gap between `conflicts` (by ascending offset) that takes `size` bytes; where none
  /// does, the lowest offset above them all. `nowhere` if that ends above `limit`.
  [[nodiscard]] std::uint64_t best_fit(const std::vector<Range>& conflicts, std::uint64_t size,
                                       std::uint64_t limit) const;

 private:
  using Ranges = std::vector<Range>;  ///< by ascending offset

  /// The blocks that an item touches, counted on from the first: they may wrap.
  struct Blocks {
    std::uint32_t first;
    std::uint32_t count;
  };
  [[nodiscard]] Blocks blocks_of(std::uint32_t item) const;
  /// Calls visit(Ranges&) for every list that an item of these blocks stands in.
  template <class Visit>
  void for_each_list(Blocks blocks, Visit&& visit);

  const PackingProblem& problem_;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t arena_ = nowhere;  ///< max_allocation
  std::uint32_t block_slots_ = 1;
  Ranges all_;                  ///< every placed item
  std::vector<Ranges> blocks_;  ///< each with the placed items that touch its slots; none for few items
  Ranges found_;
};

}  // namespace swapmm::packing
