// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace swapmm::v2::planning {

/// The bytes of a memory that nothing has taken. Finds the lowest range that is long enough among those of about its
/// length and the first one of each greater length.
class FreeRanges {
 public:
  explicit FreeRanges(std::uint64_t bytes) { insert(0, bytes); }

  /// The lowest offset at or behind `from`, a multiple of the alignment, from which on `size` bytes are free. Takes
  /// nothing. `size` is above 0.
  [[nodiscard]] std::optional<std::uint64_t> lowest(std::uint64_t size, std::uint64_t alignment,
                                                    std::uint64_t from = 0) const {
    const auto fitting = [&](std::uint64_t begin, std::uint64_t end) -> std::optional<std::uint64_t> {
      const std::uint64_t padding = (alignment - begin % alignment) % alignment;
      if (end - begin < size || end - begin - size < padding) return std::nullopt;
      return begin + padding;
    };
    const auto behind = ends_.lower_bound(from);
    if (behind != ends_.begin() && std::prev(behind)->second > from) {
      if (const auto offset = fitting(from, std::prev(behind)->second)) return offset;
    }
    std::optional<std::uint64_t> best;
    for (std::size_t c = class_of(size); c < by_length_.size(); ++c) {
      for (auto begin = by_length_[c].lower_bound(from); begin != by_length_[c].end(); ++begin) {
        if (best && *begin >= *best) break;
        const auto offset = fitting(*begin, ends_.at(*begin));
        if (!offset) continue;
        best = offset;
        break;
      }
    }
    return best;
  }

  /// The range must be free.
  void take(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    const auto at = std::prev(ends_.upper_bound(begin));
    const std::uint64_t free_begin = at->first;
    const std::uint64_t free_end = at->second;
    erase(free_begin, free_end);
    if (free_begin < begin) insert(free_begin, begin);
    if (end < free_end) insert(end, free_end);
  }
  /// Gives back what was taken.
  void give_back(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    const auto next = ends_.find(end);
    if (next != ends_.end()) {
      const std::uint64_t next_end = next->second;
      erase(end, next_end);
      end = next_end;
    }
    const auto after = ends_.lower_bound(begin);
    if (after != ends_.begin() && std::prev(after)->second == begin) {
      const std::uint64_t before = std::prev(after)->first;
      erase(before, begin);
      begin = before;
    }
    insert(begin, end);
  }

 private:
  static std::size_t class_of(std::uint64_t length) { return static_cast<std::size_t>(std::bit_width(length)); }
  void insert(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return;
    ends_.emplace(begin, end);
    by_length_[class_of(end - begin)].insert(begin);
  }
  void erase(std::uint64_t begin, std::uint64_t end) {
    ends_.erase(begin);
    by_length_[class_of(end - begin)].erase(begin);
  }

  std::map<std::uint64_t, std::uint64_t> ends_;        // of each range, by its begin
  std::array<std::set<std::uint64_t>, 65> by_length_;  // begins, by the number of bits of the length
};

}  // namespace swapmm::v2::planning
