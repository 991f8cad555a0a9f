// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the component; not for programs.

#include <liburing.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/base/bytes.hpp>

namespace swapmm::file::detail {

/// How a transfer ended: the error number of the first piece that failed, and where that was. 0: all is done.
struct Transfer {
  int error = 0;
  std::uint64_t at = 0;    ///< from the beginning of the transfer
  std::uint64_t size = 0;  ///< of the piece
};

/// Reads or writes a file in pieces, of which the disk has several at a time. One transfer at a time: a second thread
/// waits.
class Requests {
 public:
  /// `piece`: the largest size of one request. `depth`: how many the disk has at a time.
  Requests(int file, Bytes piece, unsigned depth);
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  ~Requests();

  [[nodiscard]] Transfer read(std::uint64_t offset, std::span<std::byte> to);
  [[nodiscard]] Transfer write(std::uint64_t offset, std::span<const std::byte> from);

 private:
  struct Piece {
    std::uint64_t at = 0;
    std::uint64_t size = 0;
  };

  // `to` or `from` is null.
  Transfer transfer(std::uint64_t offset, std::byte* to, const std::byte* from, std::uint64_t size);
  Transfer in_ring(std::uint64_t offset, std::byte* to, const std::byte* from, std::uint64_t size);
  void go_without_ring();
  Transfer one_by_one(std::uint64_t offset, std::byte* to, const std::byte* from, std::uint64_t size) const;

  std::mutex mutex_;
  int file_;
  std::uint64_t piece_;
  std::optional<io_uring> ring_;
  std::vector<Piece> pieces_;          // that the disk has; by number
  std::vector<std::uint32_t> unused_;  // numbers
};

}  // namespace swapmm::file::detail
