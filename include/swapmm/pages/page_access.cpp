// SPDX-License-Identifier: Apache-2.0
#include <swapmm/pages/page_access.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <vector>

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#endif

namespace swapmm::pages {

#if defined(__linux__)

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

int process_number() noexcept { return ::getpid(); }

bool permit(std::byte* begin, std::size_t bytes, Permission permission) noexcept {
  const int bits = permission == Permission::none   ? PROT_NONE
                   : permission == Permission::read ? PROT_READ
                                                    : PROT_READ | PROT_WRITE;
  return bytes == 0 || ::mprotect(begin, bytes, bits) == 0;
}

PageMemory::PageMemory(std::size_t bytes) : bytes_((bytes + page_bytes() - 1) / page_bytes() * page_bytes()) {
  void* const begin = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  begin_ = static_cast<std::byte*>(begin);
}

PageMemory::~PageMemory() {
  if (begin_ != nullptr) ::munmap(begin_, bytes_);
}

PastPermissions::~PastPermissions() {
  if (file_ >= 0) ::close(file_);
}

bool PastPermissions::open() noexcept {
  if (file_ < 0) file_ = ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  return file_ >= 0;
}

bool PastPermissions::write(std::byte* to, std::span<const std::byte> from) const noexcept {
  while (!from.empty()) {
    const ssize_t count =
        ::pwrite(file_, from.data(), from.size(), static_cast<off_t>(reinterpret_cast<std::uintptr_t>(to)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    from = from.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

std::string obstacle_at(std::byte* page) {
  const std::vector<std::byte> bytes(page, page + page_bytes());
  if (!permit(page, bytes.size(), Permission::none)) return "the system does not let pages be protected (mprotect)";
  PastPermissions past;
  const bool filled = past.open() && past.write(page, bytes);
  if (!permit(page, bytes.size(), Permission::read_write))
    return "the system does not give permissions back (mprotect)";
  return filled ? "" : "the system does not let protected pages be filled (/proc/self/mem)";
}

#else

std::size_t page_bytes() { return 4096; }
int process_number() noexcept { return 0; }
bool permit(std::byte* /*begin*/, std::size_t /*bytes*/, Permission /*permission*/) noexcept { return false; }
PageMemory::PageMemory(std::size_t bytes) : begin_(new std::byte[bytes]()), bytes_(bytes) {}
PageMemory::~PageMemory() { delete[] begin_; }
PastPermissions::~PastPermissions() = default;
bool PastPermissions::open() noexcept { return false; }
bool PastPermissions::write(std::byte* /*to*/, std::span<const std::byte> /*from*/) const noexcept { return false; }
std::string obstacle_at(std::byte* /*page*/) { return "host views are lazy on Linux only"; }

#endif

}  // namespace swapmm::pages
