// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated/memory.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <swapmm/backend/testing/simulated/pattern.hpp>

namespace swapmm::simulated::detail {

namespace {

/// Sufficient alignment for any type in a kernel.
constexpr std::uint64_t range_alignment = 64;

/// Number of host memories kept after their release. Above it, the one released longest ago is freed.
constexpr std::size_t most_free_blocks = 64;

std::byte* aligned(std::byte* pointer) {
  const auto rest = reinterpret_cast<std::uintptr_t>(pointer) % range_alignment;
  return rest == 0 ? pointer : pointer + (range_alignment - rest);
}

void set_bytes(std::byte* begin, std::byte value, std::uint64_t size) {
  std::memset(begin, std::to_integer<int>(value), size);
}

}  // namespace

DeviceHeap::DeviceHeap(Bytes size, Bytes alignment, bool poison)
    : size_(size.value),
      alignment_(alignment.value),
      poison_(poison),
      storage_(std::make_unique_for_overwrite<std::byte[]>(size.value + range_alignment)),
      range_(aligned(storage_.get())) {
  if (size_ > 0) holes_.push_back({0, size_, 0});
}

std::optional<std::uint32_t> DeviceHeap::allocate(std::uint64_t size) {
  const std::optional<Bytes> rounded = checked_round_up(Bytes{size}, Bytes{alignment_});
  if (!rounded) return std::nullopt;
  // Holes begin at multiples of the alignment, because blocks do and end there or at the end of the range.
  auto best = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->end - hole->begin < size) continue;
    if (best == holes_.end() || hole->freed_at > best->freed_at) best = hole;
  }
  if (best == holes_.end()) return std::nullopt;

  // free() must not throw, so room for what it may push is made here.
  if (free_numbers_.empty()) {
    blocks_.reserve(blocks_.size() + 1);
    free_numbers_.reserve(blocks_.size() + 1);
    const auto hole = best - holes_.begin();
    holes_.reserve(blocks_.size() + 3);
    best = holes_.begin() + hole;
    blocks_.emplace_back();
    free_numbers_.push_back(static_cast<std::uint32_t>(blocks_.size() - 1));
  }
  const std::uint32_t number = free_numbers_.back();
  free_numbers_.pop_back();
  DeviceBlock& block = blocks_[number];
  block.offset = best->begin;
  block.size = size;
  block.capacity = std::min(rounded->value, best->end - best->begin);
  block.state = BlockState::live;
  block.last_use = {};
  best->begin += block.capacity;
  if (best->begin == best->end) holes_.erase(best);
  if (poison_) set_bytes(data(block.offset), fresh_byte, block.capacity);
  return number;
}

void DeviceHeap::free(std::uint32_t number) noexcept {
  DeviceBlock& block = blocks_[number];
  if (poison_) set_bytes(data(block.offset), freed_byte, block.capacity);
  block.state = BlockState::free;
  ++block.generation;
  free_numbers_.push_back(number);
  Hole hole{block.offset, block.offset + block.capacity, ++frees_};
  auto after = std::find_if(holes_.begin(), holes_.end(), [&](const Hole& other) { return other.begin >= hole.end; });
  if (after != holes_.end() && after->begin == hole.end) {
    hole.end = after->end;
    after = holes_.erase(after);
  }
  if (after != holes_.begin() && (after - 1)->end == hole.begin) {
    (after - 1)->end = hole.end;
    (after - 1)->freed_at = hole.freed_at;
  } else {
    holes_.insert(after, hole);
  }
}

std::uint32_t HostHeap::allocate(std::uint64_t size, HostKind kind) {
  // A block may serve a smaller request, but not so much smaller that memory is wasted.
  const auto fits = [&](std::uint32_t number) {
    return blocks_[number].stored >= size && blocks_[number].stored <= 2 * size + 64;
  };
  Shadow shadow;
  auto found = std::find_if(free_numbers_.rbegin(), free_numbers_.rend(), fits);
  if (found == free_numbers_.rend()) {
    auto storage = std::make_unique_for_overwrite<std::byte[]>(size);
    if (free_numbers_.size() < most_free_blocks) {
      free_numbers_.reserve(blocks_.size() + 1);  // so that free() does not throw
      blocks_.emplace_back();
      free_numbers_.push_back(static_cast<std::uint32_t>(blocks_.size() - 1));
      found = free_numbers_.rbegin();
    } else {
      found = free_numbers_.rend() - 1;
    }
    blocks_[*found].storage = std::move(storage);
    blocks_[*found].stored = size;
  }
  const std::uint32_t number = *found;
  free_numbers_.erase(found.base() - 1);
  HostBlock& block = blocks_[number];
  block.size = size;
  block.capacity = size;
  block.kind = kind;
  block.state = BlockState::live;
  block.last_use = {};
  block.neighbour = nullptr;
  block.shadow = std::move(shadow);
  if (poison_) set_bytes(block.storage.get(), fresh_byte, block.stored);
  return number;
}

void HostHeap::free(std::uint32_t number) noexcept {
  HostBlock& block = blocks_[number];
  if (poison_) set_bytes(block.storage.get(), freed_byte, block.stored);
  block.state = BlockState::free;
  ++block.generation;
  free_numbers_.push_back(number);
}

}  // namespace swapmm::simulated::detail
