// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pool of host memory on a backend that counts what it is asked for.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/error.hpp>
#include <swapmm/runtime/values/host_pool.hpp>

#include "support/null_backend.hpp"

namespace swapmm::test {

inline constexpr Bytes no_limit{~std::uint64_t{0}};

/// What was asked of the API for host memory, and what it has given and not got back.
struct HostCounters {
  std::vector<Bytes> pinned;    ///< sizes, in order
  std::vector<Bytes> pageable;  ///< likewise
  Bytes pinned_live;
  Bytes live;
  std::size_t refused = 0;
  std::size_t finished = 0;
  std::size_t given_back = 0;
  std::size_t given_back_busy = 0;  ///< while work may have used it
  bool busy = false;                ///< work is queued; until finish()
  Bytes largest_pinned = no_limit;  ///< the API refuses more in one piece
  Bytes most_pinned = no_limit;     ///< and more in all
  Bytes most = no_limit;            ///< of both kinds
};

/// A NullBackend with host memory that nobody touches, so that much of it costs nothing.
class CountingBackend : public NullBackend {
 public:
  class HostMemory {
   public:
    HostMemory(std::shared_ptr<HostCounters> counters, Bytes size, HostKind kind)
        : counters_(std::move(counters)),
          size_(size),
          kind_(kind),
          bytes_(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size.value))) {
      counters_->live += size_;
      if (kind_ == HostKind::pinned) counters_->pinned_live += size_;
    }
    HostMemory(HostMemory&&) noexcept = default;
    HostMemory& operator=(HostMemory&&) = delete;
    ~HostMemory() {
      if (counters_ == nullptr) return;
      counters_->live -= size_;
      if (kind_ == HostKind::pinned) counters_->pinned_live -= size_;
      ++counters_->given_back;
      if (counters_->busy) ++counters_->given_back_busy;
    }
    [[nodiscard]] std::byte* data() { return bytes_.get(); }
    [[nodiscard]] const std::byte* data() const { return bytes_.get(); }

   private:
    std::shared_ptr<HostCounters> counters_;
    Bytes size_;
    HostKind kind_;
    std::unique_ptr<std::byte[]> bytes_;
  };

  explicit CountingBackend(Bytes host_slab) : NullBackend(false, Bytes{64}, host_slab) {}

  [[nodiscard]] HostCounters& host() { return *counters_; }

  [[nodiscard]] HostMemory allocate_host(Bytes size, HostKind kind) {
    const auto over = [&](Bytes limit, Bytes used) { return size > limit || used > limit - size; };
    if (over(counters_->most, counters_->live) ||
        (kind == HostKind::pinned &&
         (size > counters_->largest_pinned || over(counters_->most_pinned, counters_->pinned_live)))) {
      ++counters_->refused;
      throw BackendError(BackendError::Kind::out_of_host_memory, -6, "none");
    }
    (kind == HostKind::pinned ? counters_->pinned : counters_->pageable).push_back(size);
    return {counters_, size, kind};
  }
  void copy_to_device(const Address&, const HostMemory&, Bytes, Bytes, std::span<const Event* const>, Event&) {}
  void copy_to_host(HostMemory&, Bytes, const Address&, Bytes, std::span<const Event* const>, Event&) {}
  void finish() {
    ++counters_->finished;
    counters_->busy = false;
  }

 private:
  std::shared_ptr<HostCounters> counters_ = std::make_shared<HostCounters>();
};
static_assert(Backend<CountingBackend>);

using Pool = runtime::HostPool<CountingBackend>;
using Block = std::unique_ptr<Pool::Block>;

/// The pool, and several blocks at once.
struct HostDesk {
  explicit HostDesk(Bytes slab, Bytes pinned_budget = no_limit, Bytes host_budget = no_limit)
      : backend(slab), pool(backend, pinned_budget, host_budget) {}

  std::vector<Block> acquire(std::size_t count, Bytes size) {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(pool.acquire(size));
    return blocks;
  }
  void release(std::vector<Block>& blocks) {
    for (Block& block : blocks) pool.release(std::move(block));
    blocks.clear();
  }
  [[nodiscard]] const HostCounters& host() { return backend.host(); }
  /// What the pool says it took is what the API gave.
  [[nodiscard]] bool counts_right() {
    return pool.budget().in_use() == host().live && pool.budget().pinned() == host().pinned_live &&
           pool.budget().peak() >= host().live;
  }

  CountingBackend backend;
  Pool pool;
};

}  // namespace swapmm::test
