// SPDX-License-Identifier: Apache-2.0
#include <swapmm/pages/area.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace swapmm::pages {

Area::Area(std::span<std::byte> memory, std::size_t bytes, std::size_t block_bytes, BlockState state,
           std::string why_eager)
    : own_(memory.empty() ? PageMemory(bytes) : PageMemory()),
      begin_(memory.empty() ? own_.data() : memory.data()),
      size_(bytes),
      block_bytes_(block_bytes),
      why_eager_(std::move(why_eager)) {
  divide(block_bytes);
  if (first_lazy_ < end_lazy_) why_eager_ = obstacle_at(begin_ + blocks_[first_lazy_].begin);
  if (why_eager_.empty() && !past_.open()) why_eager_ = "/proc/self/mem cannot be opened";
  if (!why_eager_.empty()) divide(block_bytes);
  states_ = std::make_unique<std::atomic<BlockState>[]>(count());
  for (std::size_t i = 0; i < count(); ++i) set(i, state);
  std::size_t eager = 0;
  for (std::size_t i = 0; i < count(); ++i) eager += is_eager(i) ? blocks_[i].end - blocks_[i].begin : 0;
  shadow_ = std::make_unique<std::byte[]>(eager);
  if (state == BlockState::absent) forget();
}

Area::~Area() {
  if (own_.data() == nullptr) (void)permit_block(first_lazy_, end_lazy_, Permission::read_write);
}

// An edge in front up to the first whole page, lazy blocks, and an edge behind the last whole page. Nothing else uses
// the last page of memory of the area's own.
void Area::divide(std::size_t block_bytes) {
  blocks_.clear();
  const auto address = reinterpret_cast<std::uintptr_t>(begin_);
  const std::size_t page = page_bytes();
  const std::size_t front = std::min(size_, static_cast<std::size_t>((page - address % page) % page));
  const std::size_t back = own_.data() != nullptr ? 0 : (size_ - front) % page;
  if (why_eager_.empty() && front + back >= size_) why_eager_ = "the memory has no whole page";
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (; begin < end; begin += block_bytes) blocks_.push_back({begin, std::min(end, begin + block_bytes)});
  };
  if (!why_eager_.empty()) {
    add(0, size_);
    first_lazy_ = end_lazy_ = count();
    return;
  }
  add(0, front);
  first_lazy_ = count();
  add(front, size_ - back);
  end_lazy_ = count();
  add(size_ - back, size_);
}

std::size_t Area::at(std::size_t offset) const noexcept {
  if (first_lazy_ == end_lazy_) return std::min(offset / block_bytes_, blocks_.size() - 1);
  const Block lazy = protected_part();
  if (offset < lazy.begin) return 0;
  return offset < lazy.end ? first_lazy_ + (offset - lazy.begin) / block_bytes_ : end_lazy_;
}

Area::Block Area::protected_part() const noexcept {
  if (first_lazy_ == end_lazy_) return {0, 0};
  return {blocks_[first_lazy_].begin, blocks_[end_lazy_ - 1].end};
}

bool Area::is_modified(std::size_t i) const {
  if (state(i) != BlockState::clean) return state(i) == BlockState::modified;
  return is_eager(i) && std::memcmp(shadow_of(i), bytes_of(i).data(), bytes_of(i).size()) != 0;
}

bool Area::fill(std::size_t i, std::span<const std::byte> from, bool writable) {
  if (is_eager(i)) {
    std::memcpy(bytes_of(i).data(), from.data(), from.size());
    std::memcpy(shadow_of(i), from.data(), from.size());
    set(i, BlockState::clean);
    return true;
  }
  if (!poke(i, from)) throw std::system_error(errno, std::generic_category(), "filling a block of a host view");
  if (!permit_block(i, i + 1, writable ? Permission::read_write : Permission::read)) return false;
  set(i, writable ? BlockState::modified : BlockState::clean);
  return true;
}

bool Area::open(std::size_t i) noexcept {
  if (is_eager(i)) return true;
  if (!permit_block(i, i + 1, Permission::read_write)) return false;
  set(i, BlockState::modified);
  return true;
}

void Area::close(std::size_t i) noexcept {
  if (is_eager(i)) {
    std::memcpy(shadow_of(i), bytes_of(i).data(), bytes_of(i).size());
  } else if (!permit_block(i, i + 1, Permission::read)) {
    return;
  }
  set(i, BlockState::clean);
}

void Area::reopen(std::size_t i) noexcept {
  if (!is_eager(i)) (void)permit_block(i, i + 1, Permission::read_write);
  set(i, BlockState::modified);
}

void Area::forget() { forget(0, size_); }

void Area::forget_clean() {
  for (std::size_t i = 0; i < count(); ++i) {
    if (!is_modified(i)) forget(blocks_[i].begin, blocks_[i].end);
  }
}

void Area::forget(std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  const std::size_t first = at(begin);
  const std::size_t last = at(end - 1) + 1;
  const std::size_t first_lazy = std::clamp(first, first_lazy_, end_lazy_);
  const std::size_t end_lazy = std::clamp(last, first_lazy_, end_lazy_);
  if (!permit_block(first_lazy, end_lazy, Permission::none)) {
    throw std::system_error(errno, std::generic_category(), "protecting a host view");
  }
  for (std::size_t i = first; i < last; ++i) set(i, BlockState::absent);
}

bool Area::poke(std::size_t i, std::span<const std::byte> from) const noexcept {
  return past_.write(bytes_of(i).data(), from);
}

bool Area::open_all() noexcept {
  if (!permit_block(first_lazy_, end_lazy_, Permission::read_write)) return false;
  for (std::size_t i = first_lazy_; i < end_lazy_; ++i) set(i, BlockState::modified);
  return true;
}

bool Area::permit_block(std::size_t first, std::size_t last, Permission permission) const noexcept {
  if (first >= last) return true;
  const std::size_t page = page_bytes();
  const std::size_t bytes = blocks_[last - 1].end - blocks_[first].begin;
  return permit(begin_ + blocks_[first].begin, (bytes + page - 1) / page * page, permission);
}

std::byte* Area::shadow_of(std::size_t i) const {
  if (i < first_lazy_) return shadow_.get() + blocks_[i].begin;
  const std::size_t lazy = first_lazy_ == end_lazy_ ? 0 : protected_part().end - protected_part().begin;
  return shadow_.get() + blocks_[i].begin - lazy;
}

}  // namespace swapmm::pages
