// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <swapmm/base/export.hpp>

namespace swapmm::pages {

/// What a program may do with a range of pages.
enum class Permission : unsigned char { none, read, read_write };

/// The size of a page in bytes.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT std::size_t page_bytes();

/// The number of the calling process, which differs in a child of fork(). Async-signal-safe.
[[nodiscard]] SWAPMM_TEMPLATE_EXPORT int process_number() noexcept;

/// Changes the permission of whole pages. Async-signal-safe. Returns false if the system refuses, for example because
/// the process has as many ranges of pages as it may have; the old permission then stays.
[[nodiscard]] bool permit(std::byte* begin, std::size_t bytes, Permission permission) noexcept;

/// Zeroed pages of the process's own, freed when this is destroyed. Move-only.
class PageMemory {
 public:
  PageMemory() = default;
  /// Throws std::bad_alloc.
  explicit PageMemory(std::size_t bytes);
  PageMemory(PageMemory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  PageMemory& operator=(PageMemory&& other) = delete;
  ~PageMemory();

  [[nodiscard]] std::byte* data() const { return begin_; }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;  // whole pages
};

/// Writes to memory of the process whatever its permission is: a block is filled before any thread may read it.
class PastPermissions {
 public:
  PastPermissions() = default;
  PastPermissions(PastPermissions&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  PastPermissions& operator=(PastPermissions&& other) = delete;
  ~PastPermissions();

  /// Opens what it needs. Returns false if the system has no such thing.
  [[nodiscard]] bool open() noexcept;
  /// Writes `from` to `to`. Returns false if the system refuses.
  [[nodiscard]] bool write(std::byte* to, std::span<const std::byte> from) const noexcept;

 private:
  int file_ = -1;
};

/// The reason why pages like this one cannot be protected and filled; empty: they can. Tries it, and leaves the bytes
/// as they are. A sandbox may refuse it, and shared mappings cannot be filled.
[[nodiscard]] std::string obstacle_at(std::byte* page);

}  // namespace swapmm::pages
