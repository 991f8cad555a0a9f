// SPDX-License-Identifier: Apache-2.0
// Replaces operator new of the whole program, in all its forms: they all end here.

#include "support/failing_new.hpp"

#include <execinfo.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

thread_local std::uint64_t made = 0;
thread_local std::uint64_t left = 0;  // until one fails; 0: none will
thread_local bool has_fired = false;
thread_local bool counts = true;
thread_local swapmm::test::FailingNew::Next next_failure = nullptr;
thread_local void* next_context = nullptr;
thread_local swapmm::test::AllocationSites* sites = nullptr;

bool fails_now() {
  if (!counts) return false;
  ++made;
  if (sites != nullptr) sites->note();
  if (left == 0 || --left > 0) return false;
  has_fired = true;
  if (next_failure != nullptr) {
    const swapmm::test::UncountedAllocations uncounted;
    left = next_failure(next_context);
  }
  return true;
}

/// A large block that was allocated while memory is measured. It begins full of a pattern.
struct Block {
  static constexpr std::size_t least = std::size_t{1} << 16U;
  static constexpr std::size_t page = 4096;
  static constexpr unsigned char pattern = 0xA5;

  const unsigned char* begin = nullptr;  ///< none: free to be used
  std::size_t pages = 0;
  std::size_t touched = 0;  ///< pages that were seen to be written to

  [[nodiscard]] std::size_t touched_now() {
    while (touched < pages && !is_untouched(begin + touched * page)) ++touched;
    return touched;
  }
  static bool is_untouched(const unsigned char* at) { return *at == pattern && std::memcmp(at, at + 1, page - 1) == 0; }
};

thread_local bool measures = false;
thread_local std::int64_t small_bytes = 0;   // held in small blocks
thread_local std::int64_t small_looked = 0;  // when the large blocks were looked at
thread_local std::int64_t most_bytes = 0;
thread_local std::array<Block, 64> blocks{};

void look() {
  std::int64_t bytes = small_bytes;
  for (Block& block : blocks) {
    if (block.begin != nullptr) bytes += static_cast<std::int64_t>(block.touched_now() * Block::page);
  }
  most_bytes = std::max(most_bytes, bytes);
  small_looked = small_bytes;
}

void* taken(void* pointer) {
  if (!measures || pointer == nullptr) return pointer;
  const std::size_t size = malloc_usable_size(pointer);
  const auto free_one = std::find_if(blocks.begin(), blocks.end(), [](const Block& b) { return b.begin == nullptr; });
  if (size >= Block::least && free_one != blocks.end()) {
    look();
    std::memset(pointer, Block::pattern, size);
    *free_one = {static_cast<const unsigned char*>(pointer), size / Block::page, 0};
    return pointer;
  }
  small_bytes += static_cast<std::int64_t>(size);
  if (small_bytes > small_looked + static_cast<std::int64_t>(Block::least)) look();
  return pointer;
}

void give_back(void* pointer) noexcept {
  if (measures && pointer != nullptr) {
    const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const Block& b) { return b.begin == pointer; });
    if (block != blocks.end()) {
      look();
      *block = {};
    } else {
      if (small_bytes > small_looked) look();
      small_bytes -= static_cast<std::int64_t>(malloc_usable_size(pointer));
      small_looked = std::min(small_looked, small_bytes);
    }
  }
  std::free(pointer);
}

void* plain(std::size_t size) noexcept {
  return fails_now() ? nullptr : taken(std::malloc(std::max<std::size_t>(size, 1)));
}

void* aligned(std::size_t size, std::align_val_t alignment) noexcept {
  if (fails_now()) return nullptr;
  void* pointer = nullptr;
  const std::size_t at_least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  return posix_memalign(&pointer, at_least, std::max<std::size_t>(size, 1)) == 0 ? taken(pointer) : nullptr;
}

void* or_throw(void* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

namespace swapmm::test {

std::uint64_t allocations() { return made; }

FailingNew::FailingNew(std::uint64_t n, Next next, void* context) {
  has_fired = false;
  left = n;
  next_failure = next;
  next_context = context;
}
FailingNew::~FailingNew() {
  left = 0;
  next_failure = nullptr;
}
void FailingNew::fail_in(std::uint64_t n) { left = n; }
bool FailingNew::fired() const { return has_fired; }

UncountedAllocations::UncountedAllocations() : before_(counts) { counts = false; }
UncountedAllocations::~UncountedAllocations() { counts = before_; }

void AllocationSites::start() { sites = this; }
void AllocationSites::stop() {
  if (sites == this) sites = nullptr;
}
void AllocationSites::note() {
  sites = nullptr;  // what this allocates is no allocation of the program
  constexpr int most_calls = 48;
  std::array<void*, most_calls> calls{};
  const auto count = static_cast<std::size_t>(backtrace(calls.data(), most_calls));
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(calls[i])) * 0x9E3779B97F4A7C15U;
  }
  ++made_;
  if (seen_[hash]++ < of_each_) numbers_.push_back(made_);
  sites = this;
}

PeakMemory::PeakMemory() {
  blocks = {};
  small_bytes = small_looked = most_bytes = 0;
  measures = true;
}
PeakMemory::~PeakMemory() { measures = false; }
std::uint64_t PeakMemory::bytes() const {
  look();
  return static_cast<std::uint64_t>(most_bytes);
}

}  // namespace swapmm::test

void* operator new(std::size_t size) { return or_throw(plain(size)); }
void* operator new[](std::size_t size) { return or_throw(plain(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return plain(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return plain(size); }
void* operator new(std::size_t size, std::align_val_t a) { return or_throw(aligned(size, a)); }
void* operator new[](std::size_t size, std::align_val_t a) { return or_throw(aligned(size, a)); }
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(size, a); }
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(size, a); }

void operator delete(void* pointer) noexcept { give_back(pointer); }
void operator delete[](void* pointer) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { give_back(pointer); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { give_back(pointer); }
void operator delete[](void* pointer, const std::nothrow_t&) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept { give_back(pointer); }
void operator delete(void* pointer, std::align_val_t, const std::nothrow_t&) noexcept { give_back(pointer); }
void operator delete[](void* pointer, std::align_val_t, const std::nothrow_t&) noexcept { give_back(pointer); }
