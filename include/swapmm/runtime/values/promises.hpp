// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/runtime/values/store.hpp>

namespace swapmm::runtime {

/// A pool of the reads that a manager hands out. Once there are enough, a download does not allocate. take() may be
/// called only inside the manager; any thread may call give_back() at any time.
class ReadPool {
 public:
  PendingRead& take() {
    if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
    if (free_ == nullptr) return all_.emplace_back();
    PendingRead& read = *std::exchange(free_, free_->next);
    read.next = nullptr;
    read.state = PendingRead::State::waiting;
    read.decides = true;
    return read;
  }
  void give_back(PendingRead& read) noexcept {
    read.next = returned_.load(std::memory_order_relaxed);
    while (!returned_.compare_exchange_weak(read.next, &read, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

 private:
  std::deque<PendingRead> all_;
  PendingRead* free_ = nullptr;
  std::atomic<PendingRead*> returned_{nullptr};
};

/// The asynchronous downloads that were not collected yet.
template <Backend B>
class Promises {
 public:
  /// Makes room for one more, so that add() cannot fail.
  void prepare(PendingRead& read, const Record<B>& record) {
    read.tensor = record.name;
    if (all_.size() == all_.capacity()) all_.reserve(2 * all_.size() + 4);
  }

  /// Adds a read whose value is, or will be, in the tensor's block. The read does not move until it is done or
  /// cancelled.
  void add(PendingRead& read, Record<B>& record, Bytes offset, std::span<std::byte> target) noexcept {
    HostBlock<B>& block = *record.host.block;
    read.target = target.data();
    read.offset = offset;
    read.size = Bytes{target.size()};
    read.ready = block.ready();
    read.issue = record.host.issue;
    read.next = block.pending;
    block.pending = &read;
    all_.push_back({&read, &block});
  }

  /// Waits for the value and copies it to the caller's memory.
  void collect(Store<B>& store, PendingRead& read) {
    store.finish_read(*block_of(read), read);
    forget(read);
  }

  /// Removes a read that may or may not be done. If it is done, its block may no longer exist.
  void cancel(PendingRead& read) noexcept {
    if (read.state == PendingRead::State::waiting) {
      if (HostBlock<B>* const block = block_of(read); block != nullptr) Store<B>::unlink(*block, read);
    }
    forget(read);
  }

  /// Gives up the reads of copies that were issued since that number: their values are undefined.
  void abandon_since(std::uint64_t issue) noexcept {
    std::erase_if(all_, [&](const Promise& promise) {
      if (promise.read->state != PendingRead::State::waiting || promise.read->issue < issue) return false;
      abandon(*promise.block, *promise.read);
      return true;
    });
  }

  /// Completes the reads from a block that is about to be released. Reads that fail are given up.
  void settle(Store<B>& store, HostBlock<B>& block) noexcept {
    while (block.pending != nullptr) {
      PendingRead& read = *block.pending;
      try {
        try {
          store.finish_read(block, read);
        } catch (...) {  // possibly only the call failed, and not the copy
          store.drain();
          store.finish_read(block, read);
        }
      } catch (...) {
        abandon(block, read);
      }
      forget(read);
    }
  }
  void settle_all(Store<B>& store) noexcept {
    while (!all_.empty()) {
      const Promise promise = all_.back();
      // A read that is already done was completed by the code that wrote its block, which may no longer exist.
      if (promise.read->state == PendingRead::State::waiting) settle(store, *promise.block);
      forget(*promise.read);
    }
  }

 private:
  static void abandon(HostBlock<B>& block, PendingRead& read) noexcept {
    Store<B>::unlink(block, read);
    read.state = PendingRead::State::abandoned;
  }

  struct Promise {
    PendingRead* read;
    HostBlock<B>* block;
  };
  HostBlock<B>* block_of(const PendingRead& read) const {
    for (const Promise& promise : all_) {
      if (promise.read == &read) return promise.block;
    }
    return nullptr;
  }
  void forget(const PendingRead& read) noexcept {
    std::erase_if(all_, [&](const Promise& promise) { return promise.read == &read; });
  }

  std::vector<Promise> all_;
};

}  // namespace swapmm::runtime
