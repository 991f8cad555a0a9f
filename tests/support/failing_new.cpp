// SPDX-License-Identifier: Apache-2.0
// Replaces operator new of the whole program, in all its forms: they all end here.

#include "support/failing_new.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t made = 0;
thread_local std::uint64_t left = 0;  // until one fails; 0: none will
thread_local bool has_fired = false;

bool fails_now() {
  ++made;
  if (left == 0 || --left > 0) return false;
  has_fired = true;
  return true;
}

void* plain(std::size_t size) noexcept { return fails_now() ? nullptr : std::malloc(std::max<std::size_t>(size, 1)); }

void* aligned(std::size_t size, std::align_val_t alignment) noexcept {
  if (fails_now()) return nullptr;
  void* pointer = nullptr;
  const std::size_t at_least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
  return posix_memalign(&pointer, at_least, std::max<std::size_t>(size, 1)) == 0 ? pointer : nullptr;
}

void* or_throw(void* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

}  // namespace

namespace swapmm::test {

std::uint64_t allocations() { return made; }

FailingNew::FailingNew(std::uint64_t n) {
  has_fired = false;
  left = n;
}
FailingNew::~FailingNew() { left = 0; }
bool FailingNew::fired() const { return has_fired; }

}  // namespace swapmm::test

void* operator new(std::size_t size) { return or_throw(plain(size)); }
void* operator new[](std::size_t size) { return or_throw(plain(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return plain(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return plain(size); }
void* operator new(std::size_t size, std::align_val_t a) { return or_throw(aligned(size, a)); }
void* operator new[](std::size_t size, std::align_val_t a) { return or_throw(aligned(size, a)); }
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(size, a); }
void* operator new[](std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept { return aligned(size, a); }

void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete[](void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { std::free(pointer); }
void operator delete[](void* pointer, const std::nothrow_t&) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::align_val_t, const std::nothrow_t&) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::align_val_t, const std::nothrow_t&) noexcept { std::free(pointer); }
