// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/blocks/place_map.hpp>
#include <swapmm/runtime/order/backend_scopes.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/order/timeline.hpp>
#include <swapmm/runtime/timing/link_estimate.hpp>
#include <swapmm/runtime/timing/profiler.hpp>
#include <swapmm/runtime/timing/sampler.hpp>
#include <swapmm/runtime/timing/timed_copies.hpp>
#include <swapmm/runtime/values/address_book.hpp>
#include <swapmm/runtime/values/away_copies.hpp>
#include <swapmm/runtime/values/encodings.hpp>
#include <swapmm/runtime/values/host_pool.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/record.hpp>
#include <swapmm/runtime/values/scrubber.hpp>
#include <swapmm/runtime/values/traffic.hpp>

namespace swapmm::runtime {

/// Keeps the place of each value and performs moves. A move is queued first and booked afterwards, so a move that
/// throws has changed nothing. Demand and PlanExecutor decide what moves when.
template <Backend B>
class Store {
 public:
  using Rec = Record<B>;
  using Block = HostBlock<B>;

  Store(B handle, const Options& options, std::shared_ptr<HostLedger> shared_host = nullptr)
      : holds(options),
        backend(std::move(handle)),
        encodings(backend, options),
        timeline(backend, options.queue_depth, holds.file() != nullptr, holds.neighbour_paths()),
        profiler(backend),
        sampler(backend),
        places(places_of(encodings.left_of(options.device_budget), backend)),
        addresses(backend, places.budget(), places.arena()),
        pool(backend, options.pinned_budget, options.host_budget, options.scrub, std::move(shared_host), holds.file(),
             options.neighbours),
        away(backend, timeline, pool, holds.file(), options, encodings.encoder()) {
    if (!options.scrub) return;
    scrubber.emplace(pool.acquire_memory(std::max(places.alignment(), std::min(budget(), Scrubber<B>::most))));
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  MemoryHolds holds;
  B backend;
  Encodings<B> encodings;
  Timeline<B> timeline;
  Profiler<B> profiler;
  Sampler<B> sampler;
  PlaceMap places;  ///< up to date only on demand; see PlanExecutor
  AddressBook<B> addresses;
  HostPool<B> pool;
  AwayCopies<B> away;
  std::optional<Scrubber<B>> scrubber;  ///< with Options::scrub
  RecordTable<B> records;
  Traffic traffic;
  std::uint64_t iteration = 1;  ///< number of the current iteration; between two iterations, of the next one
  bool timing = false;          ///< operations and copies are timed for the recorder
  bool fixed_slots = false;     ///< values keep their host blocks, because graphs contain the addresses
  TimedCopies timed_copies;

  [[nodiscard]] Bytes padded(Bytes size) const { return round_up(size, places.alignment()); }
  [[nodiscard]] Bytes budget() const { return places.budget(); }
  [[nodiscard]] NeighbourBytes neighbours_budget() const {
    return pool.neighbours() != nullptr ? pool.neighbours()->capacities() : NeighbourBytes{};
  }

  /// What is known of the copies in a queue.
  [[nodiscard]] LinkHistory& link(QueueKind queue) { return links_[index(queue)]; }
  [[nodiscard]] const LinkHistory& link(QueueKind queue) const { return links_[index(queue)]; }
  /// The time of a copy is known. `alike`: see TimedCopies.
  void copy_took(QueueKind queue, Bytes bytes, std::uint32_t alike, std::chrono::nanoseconds time) {
    if (alike == not_encoded) return link(queue).add(bytes, time);
    encodings.history().took(alike, queue == QueueKind::h2d, time);
  }
  void end_link_samples() {
    for (LinkHistory& link : links_) link.end_sample();
  }

  // ---- bytes of the device

  using When = typename Profiler<B>::When;

  /// Books bytes that are free after `after` for a tensor or a work area. Every path calls this, so the budget is
  /// asserted here.
  void book(Bytes size, const Clock& after, When when = When::after_clock, std::uint32_t tensor = none) {
    const Bytes rounded = padded(size);
    if (rounded > budget() || used_ > budget() - rounded) throw over_budget(size, tensor);
    used_ += rounded;
    traffic.device_peak = std::max(traffic.device_peak, used_);
    profiler.taken(rounded, after, when, tensor);
  }
  /// Frees bytes that are not used after `until`. `for_next`: they are freed only because the next booking needs the
  /// room.
  void unbook(Bytes size, const Clock& until, bool for_next = false) noexcept {
    used_ -= padded(size);
    profiler.freed(padded(size), until, for_next);
  }
  [[nodiscard]] Bytes used() const { return used_; }

  /// Makes the map of free places for this budget, in arenas that the backend can allocate.
  [[nodiscard]] static PlaceMap places_of(Bytes budget, const B& backend) {
    const Capabilities& can = backend.capabilities();
    budget = round_down(budget, can.alignment);
    const bool whole = !can.max_allocation || *can.max_allocation >= budget;
    const Bytes arena = whole ? budget : round_down(*can.max_allocation, can.alignment);
    return {budget, std::max(arena, can.alignment), can.alignment};
  }

  /// Gives the tensor this place. Its bytes there are undefined until `after` has ended and they were written.
  void assign_place(Rec& record, Bytes offset, const typename B::Address* address, const Clock& after,
                    When when = When::after_clock) {
    book(record.bytes, after, when, record.id);
    record.device.resident = true;
    record.device.valid = false;
    record.device.offset = offset;
    record.device.address = address;
    record.device.ready = after;
    record.device.busy = after;
  }

  /// Takes the tensor's place away. The next user of the bytes comes after device.busy.
  void clear_place(Rec& record, bool for_next = false) noexcept {
    unbook(record.bytes, record.device.busy, for_next);
    if (record.device.valid && !record.host.valid) record.value.missing_reason = MissingReason::dropped;
    record.device.resident = false;
    record.device.valid = false;
  }

  /// Makes the tensor's value undefined.
  static void lose(Rec& record) noexcept {
    record.device.valid = false;
    record.host.valid = false;
    record.value.missing_reason = MissingReason::lost;
  }

  // ---- copies

  /// Queues the copy of the value from the tensor's block into its place on the device, after `needs`.
  void swap_in(Rec& record, const Clock& needs) {
    Block& from = *record.host.block;
    const QueueKind queue = in_queue(from.home());
    const auto waits = timeline.waits(queue, needs);
    auto& slot = timeline.next(queue);
    CommandLabel label = copy_label(CommandLabel::What::swap_in, record);
    issue([&] {
      [[maybe_unused]] const auto around = annotate(backend, AnnotationKind::swap_in, record.name);
      const auto rest = start_timing(queue, waits, slot.start, label, record, from.home());
      name_next_copy(backend, record.tensor.serial);
      if (!from.in_host()) {
        return away.to_device(*record.device.address, from, record.bytes, rest, label, slot.event);
      }
      backend.copy_to_device(*record.device.address, from.memory(), from.offset, record.bytes, rest, slot.event);
    });
    timeline.gained(queue, waits);
    const QueuePoint at = timeline.commit(queue, label);
    if (profiler.active()) profiler.end(queue, at);
    if (sampler.active()) sampler.end(queue);
    record.device.valid = true;
    record.device.ready.set(queue, at);
    record.device.busy.set(queue, at);
    record.device.issue = label.issue;
    if (from.home() == Home::file) {
      traffic.from_file += record.bytes;
    } else {
      from.read = at;
    }
    ++traffic.swap_ins;
    traffic.h2d += record.bytes;
    if (from.home() == Home::encoded) traffic.encoded_in += record.bytes;
  }

  /// Queues the copy of the value from the device into the tensor's block, after `needs`. Call
  /// ensure_block_for_swap_out() first.
  void swap_out(Rec& record, const Clock& needs) {
    Block& to = *record.host.block;
    const QueueKind queue = out_queue(to.home());
    settle_pending(to);
    const auto waits = timeline.waits(queue, needs);
    auto& slot = timeline.next(queue);
    CommandLabel label = copy_label(CommandLabel::What::swap_out, record);
    issue([&] {
      [[maybe_unused]] const auto around = annotate(backend, AnnotationKind::swap_out, record.name);
      const auto rest = start_timing(queue, waits, slot.start, label, record, to.home());
      name_next_copy(backend, record.tensor.serial);
      if (!to.in_host()) {
        return away.from_device(to, *record.device.address, record.bytes, rest, waits.gained, label, slot.event);
      }
      backend.copy_to_host(to.memory(), to.offset, *record.device.address, record.bytes, rest, slot.event);
    });
    timeline.gained(queue, waits);
    const QueuePoint at = timeline.commit(queue, label);
    if (profiler.active()) profiler.end(queue, at);
    if (sampler.active()) sampler.end(queue);
    record.host.valid = true;
    record.host.issue = label.issue;
    if (to.home() != Home::file) to.written = at;
    record.device.busy.set(queue, at);
    ++traffic.swap_outs;
    traffic.d2h += record.bytes;
    if (to.home() == Home::encoded) traffic.encoded_out += record.bytes;
  }

  /// The work that precedes a swap_in: the place is free, and the value is in the block. The file's queue keeps the
  /// order of a file.
  [[nodiscard]] Clock before_swap_in(const Rec& record, Clock free) const {
    if (record.host.block->home() != Home::file) free.join(record.host.block->ready());
    return free;
  }

  /// The work that precedes a swap_out on demand: the last write on the device, and all uses of the block.
  [[nodiscard]] Clock before_swap_out(const Rec& record) const {
    Clock needs = record.device.ready;
    if (record.host.block->home() != Home::file) needs.join(record.host.block->busy());
    return needs;
  }

  /// `for_host`: the host reads or fills the value, so its own memory comes first. `any`: one that is there will do.
  void ensure_block(Rec& record, bool for_host = false, bool any = false) {
    std::unique_ptr<Block>& block = record.host.block;
    const bool stays = any || record.host.valid || fixed_slots || (block != nullptr && block->pending != nullptr);
    if (block != nullptr && (stays || block->home() != Home::encoded)) return;
    const bool encode = !for_host && encodings.wants(record, link(QueueKind::h2d), link(QueueKind::d2h));
    if (block != nullptr && encode) return;
    if (block != nullptr) pool.release(std::move(block));
    block = acquire_in(encode ? Home::encoded : Home::host, record, for_host);
  }
  /// A block for the tensor's value, there if there is room. `only_there`: in the host, if that was asked for.
  [[nodiscard]] std::unique_ptr<Block> acquire_in(Home home, const Rec& record, bool only_there = true) {
    if (home == Home::encoded) {
      if (std::unique_ptr<Block> block = encodings.acquire(record, pool)) return block;
    }
    return home == Home::encoded || !only_there ? pool.acquire(record.bytes) : pool.acquire_in(home, record.bytes);
  }

  /// Allocates a second block if there is room for it. Without it, the host waits for the first one.
  void ensure_spare(Rec& record) {
    ensure_block(record);
    if (record.host.spare != nullptr) return;
    try {
      record.host.spare = pool.acquire_in(Home::host, record.bytes);
    } catch (const OutOfMemory&) {  // NOLINT(bugprone-empty-catch): see above
    }
  }

  /// Chooses the block for the value of a swap_out. If the previous value was promised to the host and not collected
  /// yet, this is the other slot. If there is no other slot, or both are promised, swap_out() waits.
  void ensure_block_for_swap_out(Rec& record, bool any = false) {
    ensure_block(record, false, any);
    // A value that is on the host stays in the block that has it.
    if (record.host.block->pending == nullptr || record.host.valid || fixed_slots) return;
    ensure_spare(record);
    if (record.host.spare != nullptr) std::swap(record.host.block, record.host.spare);
  }

  // ---- the host's own accesses

  /// Waits until the host may write `block`, after completing promised reads from it.
  void settle_pending(Block& block) {
    while (block.pending != nullptr) {
      PendingRead& read = *block.pending;
      finish_read(block, read);
    }
  }

  void finish_read(Block& block, PendingRead& read) {
    timeline.host_wait(read.ready);
    read_block(block, read.offset, {read.target, static_cast<std::size_t>(read.size.value)});
    read.state = PendingRead::State::done;
    unlink(block, read);
  }

  static void unlink(Block& block, PendingRead& read) noexcept {
    for (PendingRead** at = &block.pending; *at != nullptr; at = &(*at)->next) {
      if (*at != &read) continue;
      *at = read.next;
      read.next = nullptr;
      return;
    }
  }

  /// Copies a part of a block's value to memory of the host. The value must be there; for a block that is not in the
  /// host, this waits.
  void read_block(Block& block, Bytes offset, std::span<std::byte> to) {
    if (!block.in_host()) return away.read(block, offset, to);
    note_host_access(block, offset, Bytes{to.size()}, false);
    std::memcpy(to.data(), block.data() + offset.value, to.size());
  }

  /// Copies memory of the host into a part of a block of the tensor that is not in the host. Waits. Throws QueueFailure
  /// if the tensor's value is lost by that, because the memory fails.
  void write_away(Rec& record, Block& block, Bytes offset, std::span<const std::byte> from) {
    timeline.host_wait(block.busy());
    bool began = false;
    try {
      away.write(block, record.bytes, offset, from, began);
    } catch (const BackendError&) {
      if (!began || !record.host.valid || &block != record.host.block.get()) throw;
      const CommandLabel label = copy_label(CommandLabel::What::swap_out, record);
      record.host.issue = label.issue;
      throw QueueFailure{writing_queue(block.home()), label, nullptr, std::current_exception()};
    }
  }

  /// Tells the backend, if it checks accesses, that the host accesses bytes [offset, offset + size) of the block.
  void note_host_access([[maybe_unused]] const Block& block, [[maybe_unused]] Bytes offset, [[maybe_unused]] Bytes size,
                        [[maybe_unused]] bool write) {
    if constexpr (requires { backend.note_host_access(block.memory(), offset, size, write); }) {
      backend.note_host_access(block.memory(), block.offset + offset, size, write);
    }
  }

  // ---- the end of a tensor

  /// Returns the host blocks to the pool. Queued work may still use them.
  void free_host(Rec& record) noexcept {
    if (record.host.block != nullptr) pool.release(std::move(record.host.block));
    if (record.host.spare != nullptr) pool.release(std::move(record.host.spare));
    record.host.valid = false;
  }

  /// Returns host blocks that hold no value of the tensor, after completing promised reads from them. Returns whether
  /// there were any.
  bool free_unused_host(Rec& record) {
    bool freed = false;
    for (std::unique_ptr<Block>* const block : {&record.host.spare, &record.host.block}) {
      if (*block == nullptr || (block == &record.host.block && record.host.valid)) continue;
      settle_pending(**block);
      pool.release(std::move(*block));
      freed = true;
    }
    return freed;
  }

  // ---- the end of memory, with Options::scrub

  /// Overwrites device memory before it is released. Nothing may be in flight. Throws BackendError.
  void scrub_device() {
    if (scrubber) scrubber->scrub(backend, addresses, places.alignment());
  }
  /// Overwrites all host memory of a manager that ends.
  void scrub_host_memory() noexcept {
    if (!scrubber) return;
    for (Rec& record : records) free_host(record);
    pool.scrub();
  }

  // ---- times

  /// Lets the device record times while they are needed.
  void time_for_recorder(bool on) {
    if (on != timing && !profiler.active() && !sampler.active()) backend.set_timing(on);
    timing = on;
  }

  /// Runs calls that record events with times.
  template <class Record>
  void with_times(Record&& record) {
    const bool on = timing || profiler.active() || sampler.active();
    if (on) return issue(record);
    backend.set_timing(true);
    try {
      issue(record);
    } catch (...) {
      backend.set_timing(false);
      throw;
    }
    backend.set_timing(false);
  }

  /// Begins to time a round of a followed plan. Call sampler.reserve() first.
  void start_sample() {
    if (!timing && !profiler.active()) backend.set_timing(true);
    sampler.start();
  }
  /// Ends the timing of a round. Throws failures that occurred while it was timed.
  void finish_sample() {
    if (!timing && !profiler.active()) backend.set_timing(false);
    sampler.finish();
  }
  void give_up_sample() noexcept {
    if (!sampler.active()) return;
    sampler.give_up();
    try {
      if (!timing && !profiler.active()) backend.set_timing(false);
    } catch (...) {  // NOLINT(bugprone-empty-catch): recording unused times only costs time
    }
  }

  /// Nothing may be in flight. If it throws, nothing is being recorded.
  void start_profile() {
    try {
      give_up_sample();
      if (!timing) backend.set_timing(true);
      profiler.start(used_);
    } catch (...) {
      give_up_profile();
      throw;
    }
  }
  [[nodiscard]] Profile stop_profile() {
    if (!timing) backend.set_timing(false);
    Profile profile = profiler.stop();
    profile.device = backend.capabilities().device_name;
    profile.device_budget = budget() + encodings.device_bytes();
    return profile;
  }
  void give_up_profile() noexcept {
    profiler.reset();
    try {
      if (!timing) backend.set_timing(false);
    } catch (...) {  // NOLINT(bugprone-empty-catch): recording unused times only costs time
    }
  }

  /// Runs a call that queues work. If the call throws, none of its work is in flight when this throws.
  template <class Queue>
  void issue(Queue&& queue_it) {
    try {
      queue_it();
    } catch (const BackendError& error) {
      if (error.kind != BackendError::Kind::device_lost) drain();
      throw;
    } catch (...) {
      drain();
      throw;
    }
  }

  /// Waits until nothing is in flight. A failure to wait is tried once more.
  void drain() {
    try {
      backend.finish();
    } catch (const BackendError& error) {
      if (error.kind == BackendError::Kind::device_lost) throw;
      backend.finish();
    }
  }

 private:
  InternalError over_budget(Bytes size, std::uint32_t tensor) {
    ErrorDetails details;
    if (tensor != none) details.tensors.push_back(name_of(records[tensor]));
    return internal_error(std::to_string(size.value) + " bytes of the device are taken, and " +
                              std::to_string(used_.value) + " of a budget of " + std::to_string(budget().value) +
                              " are in use",
                          std::move(details));
  }

  CommandLabel copy_label(CommandLabel::What what, const Rec& record) {
    CommandLabel label;
    label.what = what;
    label.tensor = record.id;
    label.issue = timeline.next_issue();
    return label;
  }

  // If a copy is timed, its waits precede the point from which the time counts.
  std::span<const typename B::Event* const> start_timing(QueueKind queue, const typename Timeline<B>::Waits& waits,
                                                         typename B::Event& start, CommandLabel& label, Rec& record,
                                                         Home home) {
    if (!timing && !profiler.active() && !sampler.active()) return waits.span();
    const std::uint32_t alike = home == Home::encoded ? encodings.number_of(record) : not_encoded;
    if (waits.count != 0) backend.wait(queue, waits.span());
    if (timing) {
      label.timing = timed_copies.add(queue, record.bytes, alike);
      backend.record(queue, start);
    }
    if (profiler.active()) profiler.begin(queue, record.name, record.bytes, record.id);
    if (sampler.active()) sampler.begin(queue, record.bytes, alike);
    return {};
  }

  Bytes used_;
  std::array<LinkHistory, device_queue_count> links_;  // of compute: unused
};

}  // namespace swapmm::runtime
