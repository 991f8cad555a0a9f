// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file in memory for managers on a simulated device. It can be short of room, and fail.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <swapmm/backend/file_memory.hpp>
#include <swapmm/error.hpp>

namespace swapmm::test {

class MemoryFile : public FileMemory {
 public:
  explicit MemoryFile(Bytes capacity, Bytes alignment = Bytes{64}) : capacity_(capacity), alignment_(alignment) {}

  [[nodiscard]] Bytes capacity() const override { return capacity_; }
  [[nodiscard]] Bytes alignment() const override { return alignment_; }
  [[nodiscard]] std::string name() const override { return "a file in memory"; }

  void reserve(Bytes size) override {
    ++reserves;
    if (size > capacity_) throw std::logic_error("more is reserved than the capacity");
    if (size > disk) {
      throw BackendError(BackendError::Kind::out_of_host_memory, ENOSPC, "reserving: no space left", size);
    }
    if (bytes_.size() < size.value) bytes_.resize(static_cast<std::size_t>(size.value), std::byte{0xDC});
  }
  void read(Bytes offset, std::span<std::byte> to) override {
    if (++reads == failing_read) throw failure("reading");
    check(offset, to.size());
    std::memcpy(to.data(), bytes_.data() + offset.value, to.size());
    bytes_read += to.size();
  }
  void write(Bytes offset, std::span<const std::byte> from) override {
    if (++writes == failing_write) throw failure("writing");
    check(offset, from.size());
    std::memcpy(bytes_.data() + offset.value, from.data(), from.size());
    bytes_written += from.size();
  }

  Bytes disk{std::numeric_limits<std::uint64_t>::max()};  ///< so much can be reserved
  std::uint64_t failing_read = 0;                         ///< the read with this number fails; counted from 1
  std::uint64_t failing_write = 0;
  std::uint64_t reserves = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;

 private:
  static BackendError failure(const std::string& what) {
    return {BackendError::Kind::failed, EIO, what + ": Input/output error"};
  }
  void check(Bytes offset, std::size_t size) const {
    if (offset.value % alignment_.value != 0 || size % alignment_.value != 0) throw std::logic_error("not aligned");
    if (offset.value + size > bytes_.size()) throw std::logic_error("beyond what is reserved");
  }

  Bytes capacity_;
  Bytes alignment_;
  std::vector<std::byte> bytes_;
};

}  // namespace swapmm::test
