// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/values/homes.hpp>
#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// Which way a copy goes, as the device sees it.
enum class CopyWay : bool { in, out };

[[nodiscard]] constexpr QueueKind queue_of(Home home, CopyWay way) {
  return way == CopyWay::in ? in_queue(home) : out_queue(home);
}

/// Both ends of copies that are only timed: free bytes of the device, and a block of the host or of a neighbour. They
/// are free again when this is destroyed; nothing may use them then.
template <Backend B>
class ProbeEnds {
 public:
  /// The least that is copied. So few take as long as a copy's start, so the link seems slow: until larger copies are
  /// seen, plans move less.
  static constexpr Bytes least{64};

  ProbeEnds(Store<B>& store, Home home) : store_(store), home_(home) {}
  ProbeEnds(const ProbeEnds&) = delete;
  ProbeEnds& operator=(const ProbeEnds&) = delete;
  ~ProbeEnds() { give_back(); }

  [[nodiscard]] Home home() const { return home_; }
  [[nodiscard]] Bytes size() const { return size_; }

  /// Takes so many bytes at both ends, or else a quarter, a quarter of that, and so on. False: not even `least`. What
  /// uses them may still be queued.
  [[nodiscard]] bool take_up_to(Bytes bytes) {
    for (size_ = aligned(bytes); size_ >= least; size_ = aligned(Bytes{size_.value / 4})) {
      if (take()) return true;
      give_back();
    }
    return false;
  }
  /// The host writes the block, so that a copy reads bytes that are there.
  void prepare() {
    if (!block_->in_host()) return;
    await_free(*block_, store_);
    store_.note_host_access(*block_, Bytes{}, size_, true);
    std::memset(block_->data(), 0, static_cast<std::size_t>(size_.value));
  }
  /// Queues a copy of the first bytes.
  void copy(CopyWay way, Bytes bytes, typename B::Event& end) {
    const typename B::Address& address = *store_.addresses.at(place_->offset, bytes);
    const bool in = way == CopyWay::in;
    if (!block_->in_host()) {
      in ? store_.away.to_device(address, *block_, bytes, {}, {}, end)
         : store_.away.from_device(*block_, address, bytes, {}, {}, {}, end);
      store_.away.discount(in ? bytes : Bytes{}, in ? Bytes{} : bytes);
    } else if (in) {
      store_.backend.copy_to_device(address, block_->memory(), block_->offset, bytes, {}, end);
    } else {
      store_.backend.copy_to_host(block_->memory(), block_->offset, address, bytes, {}, end);
    }
  }

  /// So many bytes, or the most below that can be copied.
  [[nodiscard]] Bytes aligned(Bytes bytes) const { return round_down(bytes, store_.places.alignment()); }

 private:
  bool take() {
    place_ = store_.places.take(size_);
    if (!place_) return false;
    if (is_neighbour(home_)) {
      block_ = store_.pool.neighbours()->acquire_on(neighbour_path(home_), size_);
      return block_ != nullptr;
    }
    try {
      block_ = store_.pool.acquire_memory(size_);
    } catch (const OutOfMemory&) {
      return false;
    }
    return true;
  }
  void give_back() noexcept {
    if (place_) store_.places.give_back(place_->offset, size_, place_->after);
    place_.reset();
    if (block_ != nullptr) store_.pool.release(std::move(block_));
  }

  Store<B>& store_;
  Home home_;
  Bytes size_;
  std::optional<FreePlace> place_;
  std::unique_ptr<HostBlock<B>> block_;
};

/// A copy that is timed: its ends, how many of their bytes, and what its end is recorded in.
template <Backend B>
struct ProbeCopy {
  ProbeEnds<B>& ends;
  Bytes bytes;
  typename B::Event& end;
};

/// Queues such copies one after another and waits for them. From the begin of the first one to the end of the last one:
/// as the device tells it; if it tells no times, by the host's clock.
template <Backend B>
[[nodiscard]] std::chrono::nanoseconds time_copies(Store<B>& store, CopyWay way, std::span<const ProbeCopy<B>> copies) {
  typename B::Event begin = store.backend.make_event();
  const auto before = std::chrono::steady_clock::now();
  store.backend.record(queue_of(copies.front().ends.home(), way), begin);
  for (const ProbeCopy<B>& copy : copies) {
    copy.ends.copy(way, copy.bytes, copy.end);
    store.backend.flush(queue_of(copy.ends.home(), way));
  }
  for (const ProbeCopy<B>& copy : copies) store.backend.wait(copy.end);
  const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - before;
  std::chrono::nanoseconds longest{0};
  for (const ProbeCopy<B>& copy : copies) {
    const std::optional<std::chrono::nanoseconds> time = store.backend.elapsed(begin, copy.end);
    if (!time) return waited;
    longest = std::max(longest, *time);
  }
  return longest;
}

}  // namespace swapmm::runtime
