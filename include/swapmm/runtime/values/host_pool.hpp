// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/codec/zero_format.hpp>
#include <swapmm/runtime/blocks/encoded_blocks.hpp>
#include <swapmm/runtime/blocks/file_blocks.hpp>
#include <swapmm/runtime/blocks/home.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/blocks/neighbour_blocks.hpp>
#include <swapmm/runtime/values/host_ledger.hpp>
#include <swapmm/runtime/values/host_slabs.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/scrubber.hpp>

namespace swapmm::runtime {

/// The host memory in use, and its budgets: of this manager, and one that managers share, if there is a ledger. Budgets
/// are exact.
class HostBudget {
 public:
  HostBudget(Bytes pinned, Bytes host, std::shared_ptr<HostLedger> shared)
      : pinned_budget_(pinned), host_budget_(host), shared_(std::move(shared)) {}
  HostBudget(const HostBudget&) = delete;
  HostBudget& operator=(const HostBudget&) = delete;
  ~HostBudget() {
    if (shared_ != nullptr) shared_->give_back(in_use_);
  }

  /// Bytes that nobody else can take until this ends: so much may be allocated.
  class Claim {
   public:
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { budget_.unclaim(size_); }
    /// False: there is not as much room.
    explicit operator bool() const { return granted_; }
    /// `used` of them are allocated, and in use from now on; the claim ends.
    void take(Bytes used) noexcept {
      budget_.unclaim(size_ - used);
      size_ = Bytes{};
      budget_.take(used, kind_);
    }

   private:
    friend class HostBudget;
    Claim(HostBudget& budget, Bytes size, HostKind kind)
        : budget_(budget), kind_(kind), granted_(size <= budget.room(kind) && budget.claims(size)) {
      if (granted_) size_ = size;
    }
    HostBudget& budget_;
    HostKind kind_;
    Bytes size_;
    bool granted_;
  };

  /// The bytes that may still be allocated.
  [[nodiscard]] Bytes room(HostKind kind) const {
    Bytes host = host_budget_ - in_use_;
    if (shared_ != nullptr) host = std::min(host, shared_->room());
    return kind == HostKind::pinned ? std::min(host, pinned_budget_ - pinned_) : host;
  }
  [[nodiscard]] Claim claim(Bytes size, HostKind kind) { return {*this, size, kind}; }
  void give_back(Bytes size, HostKind kind) noexcept {
    in_use_ -= size;
    if (kind == HostKind::pinned) pinned_ -= size;
    unclaim(size);
  }

  /// What is full when nothing may be allocated any more, and how much of it is in use.
  [[nodiscard]] std::pair<Bytes, Bytes> limit_and_use() const {
    if (shared_ != nullptr && shared_->room() < host_budget_ - in_use_) return {shared_->limit(), shared_->in_use()};
    return {host_budget_, in_use_};
  }
  [[nodiscard]] Bytes in_use() const { return in_use_; }
  [[nodiscard]] Bytes peak() const { return peak_; }
  void forget_peak() noexcept { peak_ = in_use_; }
  [[nodiscard]] Bytes pinned() const { return pinned_; }

 private:
  [[nodiscard]] bool claims(Bytes size) { return shared_ == nullptr || shared_->take(size); }
  void unclaim(Bytes size) noexcept {
    if (shared_ != nullptr) shared_->give_back(size);
  }
  void take(Bytes size, HostKind kind) noexcept {
    in_use_ += size;
    peak_ = std::max(peak_, in_use_);
    if (kind == HostKind::pinned) pinned_ += size;
  }

  Bytes pinned_budget_;
  Bytes host_budget_;
  std::shared_ptr<HostLedger> shared_;
  Bytes in_use_;
  Bytes peak_;
  Bytes pinned_;
};

/// Memory for values that are not on the device: neighbours' if there are any, then pinned memory while its budget
/// lasts, then pageable, then the file, if there is one. Blocks of host memory are kept for reuse by tensors of the
/// same size. If a budget is short, or the API refuses memory, kept blocks are used up first: kept blocks in slabs
/// become blocks of other sizes at once. If this is not enough, the pool waits for the device and returns unused memory
/// to the API. So it does if sizes vary so much that kept blocks have far more bytes than values ever had.
template <Backend B>
class HostPool {
 public:
  using Block = HostBlock<B>;

  /// `scrub`: memory is overwritten with zeros before it is returned to the API. `shared`: a limit of several managers.
  /// `file`: null if there is none.
  HostPool(B& backend, Bytes pinned_budget, Bytes host_budget, bool scrub = false,
           std::shared_ptr<HostLedger> shared = nullptr, FileMemory* file = nullptr,
           std::span<const std::shared_ptr<Neighbour>> neighbours = {})
      : backend_(backend),
        budget_(pinned_budget, host_budget, std::move(shared)),
        slabs_(backend, backend.capabilities().host_slab, scrub),
        scrub_(scrub) {
    if (file != nullptr) file_.emplace(*file);
    if (neighbours.empty()) return;
    neighbours_.emplace(neighbours);
    take_staging(neighbours_->staging());
  }
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool() = default;

  /// A block of at least `size` bytes; work queued before may still use it (see busy()). Waits for the device if memory
  /// is short. Throws OutOfMemory.
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size) {
    if (neighbours_) [[unlikely]] {
      if (std::unique_ptr<Block> block = neighbours_->acquire(size)) return block;
    }
    return acquire(size, true);
  }
  /// The same, and in that memory if it has room; if the file was named, it must exist.
  [[nodiscard]] std::unique_ptr<Block> acquire_in(Home home, Bytes size) {
    std::unique_ptr<Block> block;
    if (home == Home::file) block = file_->acquire(size);
    if (is_neighbour(home) && neighbours_) block = neighbours_->acquire_on(neighbour_path(home), size);
    if (block != nullptr) return block;
    return home == Home::host ? acquire(size, true) : acquire(size);
  }
  /// The same, and in no other memory than the host's.
  [[nodiscard]] std::unique_ptr<Block> acquire_memory(Bytes size) { return acquire(size, false); }
  /// Memory for a value in an encoded form; work queued before may still use it. Null if there is no room.
  [[nodiscard]] std::unique_ptr<Block> acquire_encoded(const ZeroElements& elements) {
    if (std::unique_ptr<Block> block = encoded_.reuse(elements)) return block;
    if (refused_ != 0) {
      --refused_;
      return nullptr;
    }
    const bool keeps_much = encoded_.unused().value > kept_to_used * std::max(encoded_.most_used(), few_bytes).value;
    if (keeps_much || zero_worst_case(elements) > budget_.room(HostKind::pinned)) free_encoded();
    auto claim = budget_.claim(zero_worst_case(elements), HostKind::pinned);
    if (!claim) return nullptr;
    try {
      std::unique_ptr<Block> block = encoded_.make(backend_, elements);
      claim.take(block->size);
      return block;
    } catch (const BackendError& error) {
      if (error.kind != BackendError::Kind::out_of_host_memory) throw;
      refused_ = patience;
      return nullptr;
    }
  }
  /// The same, in memory and for as long as the pool exists: not for values.
  [[nodiscard]] std::unique_ptr<Block> acquire_staging(Bytes size) {
    std::unique_ptr<Block> block = acquire(size, false);
    staging_ += block->size;
    return block;
  }

  /// The block of a constant, in a file of its own. There must be a file for values, too.
  [[nodiscard]] std::unique_ptr<Block> constant(const std::shared_ptr<FileMemory>& source, Bytes offset, Bytes size) {
    return file_->constant(source, offset, size);
  }

  /// Takes a block back for reuse. Work that uses it may still be queued.
  void release(std::unique_ptr<Block> block) noexcept {
    if (block->home() == Home::file) return file_->release(std::move(block));
    if (is_neighbour(block->home())) return neighbours_->release(std::move(block));
    if (block->home() == Home::encoded) return encoded_.release(std::move(block));
    keep(*block);
    Shelf& shelf = *lower_bound(block->size);
    shelf.blocks.push(std::move(block));
  }
  /// The same for a block from which a copy was queued just now, in a loop that does so again and again. Others are
  /// used first, as far as there is room: a copy into it would wait for that one.
  void rest(std::unique_ptr<Block> block) noexcept {
    if (!block->in_host()) return release(std::move(block));
    keep(*block);
    Shelf& shelf = *lower_bound(block->size);
    shelf.resting.push(std::move(block));
    if (shelf.resting.size() > most_resting) shelf.blocks.push(shelf.resting.pop());
  }

  /// Returns all unused memory to the API. Waits for the device if there is any.
  void give_back_all_unused() {
    if (slabs_.wanted()) merge_kept();
    give_back_unused();
  }

  /// Called while no value is in the host: unused memory goes back to the API, and the peak is what is left.
  void begin() {
    give_back_all_unused();
    budget_.forget_peak();
    most_used_ = used_;
  }

  /// Overwrites slabs and kept blocks with zeros, before all memory is released. No copy may use them any more.
  void scrub() noexcept {
    for (Shelf& shelf : shelves_) {
      shelf.wake();
      shelf.blocks.for_each([&](Block& block) noexcept {
        if (block.own) scrub_host(backend_, *block.own, block.size);
      });
    }
    slabs_.scrub();
  }

  [[nodiscard]] const HostBudget& budget() const { return budget_; }
  [[nodiscard]] std::size_t slabs() const { return slabs_.count(); }
  /// Sizes of blocks of memory are multiples of this.
  [[nodiscard]] Bytes alignment() const { return slabs_.wanted() ? HostSlabs<B>::alignment : granule; }
  /// Host memory that is not for values.
  [[nodiscard]] Bytes staging() const { return staging_; }
  /// Null if there is no file.
  [[nodiscard]] const FileBlocks<B>* file() const { return file_ ? &*file_ : nullptr; }
  /// Null if there are no neighbours.
  [[nodiscard]] const NeighbourBlocks<B>* neighbours() const { return neighbours_ ? &*neighbours_ : nullptr; }
  [[nodiscard]] NeighbourBlocks<B>* neighbours() { return neighbours_ ? &*neighbours_ : nullptr; }

 private:
  static constexpr Bytes granule{64};             // of blocks with a separate allocation
  static constexpr std::size_t most_resting = 4;  // of one size
  static constexpr Bytes few_bytes{16U << 20U};   // may be kept in any case
  static constexpr std::uint64_t kept_to_used = 3;
  struct Shelf {
    Bytes size;
    HostBlockList<B> blocks;
    HostBlockQueue<B> resting{};

    void wake() noexcept {
      while (std::unique_ptr<Block> block = resting.pop()) blocks.push(std::move(block));
    }
  };

  // The backend allocates it, for copies to and from neighbours.
  void take_staging(Bytes size) {
    auto claim = budget_.claim(size, HostKind::pageable);
    if (!claim) throw_out_of_memory(size, false);
    claim.take(size);
    staging_ += size;
  }

  // `anywhere`: in other memories than the host's, too, if the host has no room.
  [[nodiscard]] std::unique_ptr<Block> acquire(Bytes size, bool anywhere) {
    std::unique_ptr<Block> block = find(size, anywhere);
    if (block->in_host()) {
      used_ += block->size;
      most_used_ = std::max(most_used_, used_);
    }
    return block;
  }

  [[nodiscard]] std::unique_ptr<Block> find(Bytes size, bool anywhere) {
    const Bytes wanted = size;
    size = round_up(size, alignment());
    Shelf& shelf = shelf_for(size);  // release() never allocates
    std::unique_ptr<Block> block = shelf.blocks.pop();
    if (block == nullptr && shelf.resting.size() != 0) {
      if (std::unique_ptr<Block> another = make_beside_resting(size)) return another;
      block = shelf.resting.pop();
    }
    if (block == nullptr && kept_ > kept_at_least()) block = reuse_larger(size);
    if (block != nullptr) {
      unkeep(*block);
      return block;
    }
    if (kept_ > kept_at_least()) keep_less();
    block = make(size);
    const bool use_file = anywhere && file_;
    if (block == nullptr && anywhere && neighbours_) block = neighbours_->acquire(wanted);
    // Unused memory of other sizes is better than the file, and worse if there is less of it than is needed: the wait
    // for the device would be in vain.
    if (block == nullptr && use_file && kept_alone_ < size) block = file_->acquire(wanted);
    if (block == nullptr) {
      give_back_unused();
      block = make(size);
    }
    if (block == nullptr && use_file) block = file_->acquire(wanted);
    if (block == nullptr) throw_out_of_memory(size, use_file);
    return block;
  }

  void keep(const Block& block) noexcept {
    used_ -= block.size;
    kept_ += block.size;
    if (block.own) kept_alone_ += block.size;
  }
  void unkeep(const Block& block) noexcept {
    kept_ -= block.size;
    if (block.own) kept_alone_ -= block.size;
  }

  // Kept blocks of other sizes may have so many bytes before more memory is better found among them.
  [[nodiscard]] Bytes kept_at_least() const { return std::max(most_used_, few_bytes); }
  // A block of up to twice the size: not of its own, for then it was not found.
  std::unique_ptr<Block> reuse_larger(Bytes size) noexcept {
    for (auto shelf = lower_bound(size); shelf != shelves_.end() && shelf->size.value <= 2 * size.value; ++shelf) {
      if (std::unique_ptr<Block> block = shelf->blocks.pop()) return block;
    }
    return nullptr;
  }
  // Memory that is returned to the API may be needed again, and takes long to allocate.
  void keep_less() {
    if (slabs_.wanted()) merge_kept();
    if (kept_alone_.value > kept_to_used * kept_at_least().value) give_back_unused();
  }

  auto lower_bound(Bytes size) noexcept {
    return std::lower_bound(shelves_.begin(), shelves_.end(), size,
                            [](const Shelf& shelf, Bytes wanted) { return shelf.size < wanted; });
  }
  Shelf& shelf_for(Bytes size) {
    const auto at = lower_bound(size);
    if (at != shelves_.end() && at->size == size) return *at;
    return *shelves_.insert(at, Shelf{size, {}});
  }

  // Page-locked, of bytes that are free or of a little more memory. After the API has refused that, it is not asked so
  // soon again.
  std::unique_ptr<Block> make_beside_resting(Bytes size) {
    std::unique_ptr<Block> block = slabs_.wanted() ? slabs_.carve(size) : nullptr;
    if (block != nullptr) return block;
    if (patient_ != 0) {
      --patient_;
      return nullptr;
    }
    if (!slabs_.wanted()) {
      block = make_alone(size, HostKind::pinned);
    } else if (grow(size, Bytes{most_resting * size.value})) {
      block = slabs_.carve(size);
    }
    if (block == nullptr) patient_ = patience;
    return block;
  }

  std::unique_ptr<Block> make(Bytes size) {
    std::unique_ptr<Block> block = slabs_.wanted() ? make_in_slab(size) : make_alone(size, HostKind::pinned);
    if (block == nullptr && free_encoded()) {
      block = slabs_.wanted() ? make_in_slab(size) : make_alone(size, HostKind::pinned);
    }
    return block != nullptr ? std::move(block) : make_alone(size, HostKind::pageable);
  }

  // Memory of encoded values that nobody needs any more. Waits for the device. False: there is none.
  bool free_encoded() {
    if (encoded_.unused().value == 0) return false;
    backend_.finish();
    const Bytes freed = encoded_.free_unused();
    budget_.give_back(freed, HostKind::pinned);
    return freed.value != 0;
  }

  std::unique_ptr<Block> make_alone(Bytes size, HostKind kind) {
    auto claim = budget_.claim(size, kind);
    if (!claim) return nullptr;
    auto block = std::make_unique<Block>();
    auto memory = take_host_memory(backend_, size, kind);
    if (!memory) return nullptr;
    block->own.emplace(std::move(*memory));
    block->size = size;
    block->kind = kind;
    claim.take(size);
    return block;
  }

  std::unique_ptr<Block> make_in_slab(Bytes size) {
    std::unique_ptr<Block> block = slabs_.carve(size);
    if (block == nullptr && grow(size)) block = slabs_.carve(size);
    if (block != nullptr) return block;
    merge_kept();
    block = slabs_.carve(size);
    if (block != nullptr) return block;
    // Unused slabs are each too small, but a larger one may fit in their place.
    const Bytes unused = slabs_.unused();
    const Bytes room = budget_.room(HostKind::pinned);
    if (unused.value == 0 || (size > room && size - room > unused)) return nullptr;
    backend_.finish();  // bytes that copies still use become free only when these end
    budget_.give_back(slabs_.give_back_unused(), HostKind::pinned);
    return grow(size) ? slabs_.carve(size) : nullptr;
  }

  // By `most` at most, if that is above 0.
  bool grow(Bytes size, Bytes most = {}) {
    Bytes room = budget_.room(HostKind::pinned);
    if (most.value != 0) room = std::min(room, most);
    if (size > room) return false;
    auto claim = budget_.claim(room, HostKind::pinned);
    if (!claim) return false;  // another manager was faster
    const Bytes taken = slabs_.grow(size, room);
    claim.take(taken);
    return taken.value != 0;
  }

  // Blocks that promised reads still need are kept.
  void merge_kept() noexcept {
    for (Shelf& shelf : shelves_) {
      shelf.wake();
      shelf.blocks.take_if([](const Block& block) { return block.slab != nullptr && block.pending == nullptr; },
                           [&](std::unique_ptr<Block> block) noexcept {
                             unkeep(*block);
                             slabs_.merge(std::move(block));
                           });
    }
  }

  // Returns all unused memory to the API, after make() has merged what is kept in slabs. Bytes that queued copies still
  // use become free only when these end.
  void give_back_unused() {
    if (kept_alone_.value == 0 && encoded_.unused().value == 0 && slabs_.unused().value == 0) return;
    backend_.finish();
    for (Shelf& shelf : shelves_) {
      shelf.wake();
      shelf.blocks.take_if([](const Block& block) { return block.pending == nullptr; },
                           [&](std::unique_ptr<Block> block) noexcept {
                             if (scrub_) scrub_host(backend_, *block->own, block->size);
                             unkeep(*block);
                             budget_.give_back(block->size, block->kind);
                           });
    }
    budget_.give_back(slabs_.give_back_unused(), HostKind::pinned);
    (void)free_encoded();
  }

  [[noreturn]] void throw_out_of_memory(Bytes size, bool file_is_full) const {
    OutOfMemory::Sizes sizes{.need = size, .in_use = budget_.in_use()};
    if (size <= budget_.room(HostKind::pageable)) throw host_refused(sizes);
    std::tie(sizes.budget, sizes.in_use) = budget_.limit_and_use();
    throw host_budget_exceeded(sizes, file_is_full ? file_->file().name() : std::string());
  }

  B& backend_;
  HostBudget budget_;
  HostSlabs<B> slabs_;
  std::vector<Shelf> shelves_;  // ascending sizes
  Bytes used_;                  // in blocks in the host that are not kept
  Bytes most_used_;             // so far
  Bytes kept_;                  // in kept blocks
  Bytes kept_alone_;            // in those with a separate allocation
  Bytes staging_;
  bool scrub_;
  EncodedBlocks<B> encoded_;
  // After the API has refused memory for encoded values, it is not asked so many times: it may take long to refuse.
  static constexpr int patience = 64;
  int refused_ = 0;
  int patient_ = 0;
  std::optional<FileBlocks<B>> file_;
  std::optional<NeighbourBlocks<B>> neighbours_;
};

}  // namespace swapmm::runtime
