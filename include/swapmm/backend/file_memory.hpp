// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>

namespace swapmm {

/// A file as a memory: holds values that fit neither on the device nor into the host's memory. Component `file` of the
/// package has one on a disk: swapmm::file::open(). One manager uses it, see Options::file. A file that is only read
/// can hold the values of constants, also those of several managers: see MemoryManager::constant().
///
/// Reads and writes return when they are done. Threads of a backend call them, several at once, for bytes that do not
/// overlap unless all of them read. Offsets, sizes and addresses are multiples of alignment().
class SWAPMM_EXPORT FileMemory {
 public:
  FileMemory() = default;
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;
  virtual ~FileMemory();

  /// The most bytes that it may hold; a multiple of alignment().
  [[nodiscard]] virtual Bytes capacity() const = 0;
  /// The bytes that can be read: by default the capacity. A file that is only read has a capacity of 0.
  [[nodiscard]] virtual Bytes size() const { return capacity(); }
  /// A power of two.
  [[nodiscard]] virtual Bytes alignment() const = 0;
  /// What it is, for people: "a file in /var/tmp".
  [[nodiscard]] virtual std::string name() const = 0;

  /// Makes sure that the bytes [0, `size`) have room on the disk, so that no later write can run out of it. Throws
  /// BackendError of the kind out_of_host_memory if there is no room; nothing has changed then. Called by the thread
  /// that uses the manager.
  virtual void reserve(Bytes size) = 0;
  /// Fills `to` with the bytes from `offset` on. Throws BackendError, with the system's error number as its code.
  virtual void read(Bytes offset, std::span<std::byte> to) = 0;
  /// Writes `from` to the bytes from `offset` on. Throws BackendError, with the system's error number as its code.
  virtual void write(Bytes offset, std::span<const std::byte> from) = 0;

  /// Called by a manager that is going to use the file. Returns false if another one does.
  [[nodiscard]] bool take() noexcept { return !taken_.exchange(true); }
  /// Called by the manager when nothing of it uses the file any more.
  void give_back() noexcept { taken_.store(false); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace swapmm
