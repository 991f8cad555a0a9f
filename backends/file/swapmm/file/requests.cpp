// SPDX-License-Identifier: Apache-2.0
#include <swapmm/file/requests.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace swapmm::file::detail {

namespace {

/// A piece that the system gave back: how it goes on.
enum class Next : std::uint8_t { done, again, failed };

/// `result`: bytes, or a negative error number, as io_uring gives it.
Next next_of(int result, std::uint64_t size, int& error) {
  if (result == -EINTR || result == -EAGAIN) return Next::again;
  if (result < 0) {
    error = -result;
    return Next::failed;
  }
  if (result == 0) {  // the file ends here, though it has room for more
    error = EIO;
    return Next::failed;
  }
  return static_cast<std::uint64_t>(result) == size ? Next::done : Next::again;
}

}  // namespace

Requests::Requests(int file, Bytes piece, unsigned depth) : file_(file), piece_(piece.value), pieces_(depth) {
  unused_.reserve(depth);
  for (std::uint32_t number = depth; number-- > 0;) unused_.push_back(number);
  io_uring ring{};
  if (io_uring_queue_init(depth, &ring, 0) == 0) ring_ = ring;
}

Requests::~Requests() {
  if (ring_) go_without_ring();
}

Transfer Requests::read(std::uint64_t offset, std::span<std::byte> to) {
  return transfer(offset, to.data(), nullptr, to.size());
}

Transfer Requests::write(std::uint64_t offset, std::span<const std::byte> from) {
  return transfer(offset, nullptr, from.data(), from.size());
}

Transfer Requests::transfer(std::uint64_t offset, std::byte* to, const std::byte* from, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  return ring_ ? in_ring(offset, to, from, size) : one_by_one(offset, to, from, size);
}

// The memory must not go while the disk uses it, so that this returns only when no request is left.
Transfer Requests::in_ring(std::uint64_t offset, std::byte* to, const std::byte* from, std::uint64_t size) {
  Transfer result;
  std::uint64_t begun = 0;
  std::uint32_t running = 0;
  bool refused = false;
  const auto add = [&](std::uint32_t number) {
    const Piece& piece = pieces_[number];
    io_uring_sqe* const request = io_uring_get_sqe(&*ring_);  // there are as many as pieces
    const auto bytes = static_cast<unsigned>(piece.size);
    if (to != nullptr) {
      io_uring_prep_read(request, file_, to + piece.at, bytes, offset + piece.at);
    } else {
      io_uring_prep_write(request, file_, from + piece.at, bytes, offset + piece.at);
    }
    io_uring_sqe_set_data64(request, number);
    ++running;
  };
  for (;;) {
    while (result.error == 0 && begun < size && !unused_.empty()) {
      const std::uint32_t number = unused_.back();
      unused_.pop_back();
      pieces_[number] = {begun, std::min(piece_, size - begun)};
      begun += pieces_[number].size;
      add(number);
    }
    if (running == 0) break;
    io_uring_cqe* done = nullptr;
    const int submitted = refused ? io_uring_wait_cqe(&*ring_, &done) : io_uring_submit_and_wait(&*ring_, 1);
    if (!refused && submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) {
      // Requests that were handed over still run. Those that were not never will.
      refused = true;
      if (result.error == 0) result = {-submitted, 0, size};
      running -= io_uring_sq_ready(&*ring_);
    }
    while (running != 0 && io_uring_peek_cqe(&*ring_, &done) == 0) {
      const auto number = static_cast<std::uint32_t>(io_uring_cqe_get_data64(done));
      const int moved = done->res;
      io_uring_cqe_seen(&*ring_, done);
      --running;
      Piece& piece = pieces_[number];
      int error = 0;
      const Next next = next_of(moved, piece.size, error);
      if (next == Next::failed && result.error == 0) result = {error, piece.at, piece.size};
      if (next == Next::again && result.error == 0) {
        const std::uint64_t part = moved > 0 ? static_cast<std::uint64_t>(moved) : 0;
        piece.at += part;
        piece.size -= part;
        add(number);
      } else {
        unused_.push_back(number);
      }
    }
  }
  if (refused) go_without_ring();
  return result;
}

void Requests::go_without_ring() {
  io_uring_queue_exit(&*ring_);
  ring_.reset();
}

Transfer Requests::one_by_one(std::uint64_t offset, std::byte* to, const std::byte* from, std::uint64_t size) const {
  for (std::uint64_t at = 0; at < size;) {
    const std::uint64_t part = std::min(piece_, size - at);
    const auto place = static_cast<off_t>(offset + at);
    const ssize_t moved =
        to != nullptr ? ::pread(file_, to + at, part, place) : ::pwrite(file_, from + at, part, place);
    int error = 0;
    const Next next = next_of(moved < 0 ? -errno : static_cast<int>(moved), part, error);
    if (next == Next::failed) return {error, at, part};
    if (moved > 0) at += static_cast<std::uint64_t>(moved);
  }
  return {};
}

}  // namespace swapmm::file::detail
