// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/packing_board.hpp>

#include <algorithm>

namespace swapmm::packing {
namespace {

// With few items a look at all of them is faster than keeping lists of some.
constexpr std::size_t items_worth_blocks = 64;
constexpr std::size_t items_per_block = 32;

bool by_offset(const Board::Range& a, const Board::Range& b) {
  return a.offset != b.offset ? a.offset < b.offset : a.item < b.item;
}

}  // namespace

Board::Board(const PackingProblem& problem) : problem_(problem) {
  const std::size_t count = problem.items.size();
  sizes_.reserve(count);
  for (const PackingItem& item : problem.items) sizes_.push_back(round_up(item.size, problem.alignment).value);
  offsets_.assign(count, nowhere);
  if (problem.max_allocation) arena_ = problem.max_allocation->value;
  all_.reserve(count);
  if (count < items_worth_blocks) return;
  const auto blocks = static_cast<std::uint32_t>(std::min<std::size_t>(problem.slots, count / items_per_block));
  block_slots_ = (problem.slots + blocks - 1) / blocks;
  blocks_.resize((problem.slots + block_slots_ - 1) / block_slots_);
}

Board::Blocks Board::blocks_of(std::uint32_t item) const {
  const PackingItem& x = problem_.items[item];
  const std::uint32_t first = x.start / block_slots_;
  const auto count = static_cast<std::uint32_t>(blocks_.size());
  const std::uint64_t last_slot = std::uint64_t{x.start} + x.length - 1;
  if (last_slot < problem_.slots) return {first, static_cast<std::uint32_t>(last_slot / block_slots_) - first + 1};
  const auto wrapped = static_cast<std::uint32_t>((last_slot - problem_.slots) / block_slots_) + 1;
  return {first, std::min(count - first + wrapped, count)};
}

template <class Visit>
void Board::for_each_list(Blocks blocks, Visit&& visit) {
  visit(all_);
  if (blocks_.empty()) return;
  for (std::uint32_t i = 0; i < blocks.count; ++i) visit(blocks_[(blocks.first + i) % blocks_.size()]);
}

void Board::clear() {
  std::fill(offsets_.begin(), offsets_.end(), nowhere);
  all_.clear();
  for (Ranges& ranges : blocks_) ranges.clear();
}

void Board::place(std::uint32_t item, std::uint64_t offset) {
  offsets_[item] = offset;
  if (sizes_[item] == 0) return;  // takes no room: nothing can conflict with it
  const PackingItem& x = problem_.items[item];
  const Range range{offset, offset + sizes_[item], item, x.start, x.length};
  for_each_list(blocks_of(item), [&](Ranges& ranges) {
    ranges.insert(std::upper_bound(ranges.begin(), ranges.end(), range, by_offset), range);
  });
}

void Board::remove(std::uint32_t item) {
  const Range range{offsets_[item], 0, item, 0, 0};
  offsets_[item] = nowhere;
  if (sizes_[item] == 0) return;
  for_each_list(blocks_of(item), [&](Ranges& ranges) {
    ranges.erase(std::lower_bound(ranges.begin(), ranges.end(), range, by_offset));
  });
}

const std::vector<Board::Range>& Board::conflicts(std::uint32_t item) {
  found_.clear();
  const PackingItem& x = problem_.items[item];
  const std::uint32_t slots = problem_.slots;
  const Blocks blocks = blocks_of(item);
  const Ranges& known = !blocks_.empty() && blocks.count == 1 ? blocks_[blocks.first] : all_;
  for (const Range& y : known) {
    // Either begins while the other is there, on the circle.
    const std::uint32_t from_x = y.start >= x.start ? y.start - x.start : y.start + (slots - x.start);
    const std::uint32_t from_y = x.start >= y.start ? x.start - y.start : x.start + (slots - y.start);
    if (from_x < x.length || from_y < y.length) found_.push_back(y);
  }
  return found_;
}

std::uint64_t Board::allowed(std::uint64_t offset, std::uint64_t size) const {
  // Sizes and arenas are multiples of the alignment, so every end of an item is one too.
  if (arena_ == nowhere) return offset;
  return offset % arena_ + size > arena_ ? offset - offset % arena_ + arena_ : offset;
}

std::uint64_t Board::best_fit(const std::vector<Range>& conflicts, std::uint64_t size, std::uint64_t limit) const {
  if (size == 0) return 0;  // never inside another item's bytes
  std::uint64_t best = nowhere;
  std::uint64_t best_gap = nowhere;
  std::uint64_t top = 0;
  for (const Range& range : conflicts) {
    if (range.offset > top && range.offset - top < best_gap) {
      const std::uint64_t place = allowed(top, size);
      if (place + size <= range.offset) {
        best = place;
        best_gap = range.offset - top;
      }
    }
    top = std::max(top, range.end);
  }
  if (best == nowhere) best = allowed(top, size);
  return best + size <= limit ? best : nowhere;
}

}  // namespace swapmm::packing
