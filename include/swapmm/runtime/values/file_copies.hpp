// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/backend/file_memory.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/runtime/blocks/host_block.hpp>
#include <swapmm/runtime/order/timeline.hpp>
#include <swapmm/runtime/values/host_pool.hpp>

namespace swapmm::runtime {

/// Copies between the file and the device, and between the file and the host. Values go through a few pieces of host
/// memory (slots), so that one part of a value is read or written while another one is on its way to or from the
/// device. All waits are events: the host queues a copy and goes on.
///
/// A command on a file queue has a point on the timeline of its own. Work on the device runs even if the command that
/// it waits for failed, and the timeline finds the failure behind that point.
template <FileBackend B>
class FileCopies {
 public:
  using Block = HostBlock<B>;
  using Event = typename B::Event;

  /// Slots for each direction between the file and the device. One more is for the host's own reads and writes.
  static constexpr std::size_t slot_count = 4;
  static constexpr std::size_t slots_in_all = 2 * slot_count + 1;

  /// Takes at most `staging` bytes of host memory. Throws UsageError if they are too few, OutOfMemory.
  FileCopies(B& backend, Timeline<B>& timeline, HostPool<B>& pool, FileMemory& file, Bytes staging)
      : backend_(backend), timeline_(timeline), file_(file), alignment_(file.alignment()) {
    const Bytes all = staging > alignment_ ? staging - alignment_ : Bytes{};  // the memory may begin anywhere
    slot_bytes_ = round_down(Bytes{all.value / slots_in_all}, alignment_);
    if (slot_bytes_.value == 0) {
      throw UsageError("Options::file_staging is " + std::to_string(staging.value) + " bytes, and " + file.name() +
                       " needs at least " + std::to_string((slots_in_all + 1) * alignment_.value));
    }
    memory_ = pool.acquire_staging(Bytes{slots_in_all * slot_bytes_.value + alignment_.value});
    const auto address = reinterpret_cast<std::uintptr_t>(memory_->data());
    Bytes offset{(alignment_.value - address % alignment_.value) % alignment_.value};
    for (std::vector<Slot>* const slots : {&incoming_, &outgoing_}) {
      slots->reserve(slot_count);
      for (std::size_t i = 0; i < slot_count; ++i, offset += slot_bytes_) slots->push_back({offset, backend});
    }
    by_host_ = memory_->data() + offset.value;
  }
  FileCopies(const FileCopies&) = delete;
  FileCopies& operator=(const FileCopies&) = delete;

  /// Queues the copy of a value from the file to a place, after `waits` on staged_h2d, and records `end` there.
  void to_device(const typename B::Address& to, Block& from, Bytes size, std::span<const Event* const> waits,
                 const CommandLabel& label, Event& end) {
    for (Bytes done; done < size; done += slot_bytes_) {
      const Bytes part = std::min(slot_bytes_, size - done);
      Slot& slot = next(incoming_, next_incoming_);
      const QueuePoint read = queue_read(from, done, part, slot, label);
      const auto needs = timeline_.waits(QueueKind::staged_h2d, Clock::point(QueueKind::file_read, read));
      std::array<const Event*, 2 * queue_count> list{};
      std::size_t count = 0;
      for (const Event* const event : needs.span()) list[count++] = event;
      if (done.value == 0) {
        for (const Event* const event : waits) list[count++] = event;
      }
      backend_.copy_part_to_device(to, done, memory_->memory(), memory_->offset + slot.offset, part,
                                   {list.data(), count}, slot.copied);
      slot.in_use = true;
      timeline_.gained(QueueKind::staged_h2d, needs);
      from.read = read;
    }
    // The last point also reports failures of the copies before it.
    const std::size_t used =
        std::min<std::size_t>(slot_count, (size.value + slot_bytes_.value - 1) / slot_bytes_.value);
    std::array<const Event*, slot_count> copies{};
    for (std::size_t i = 0; i < used; ++i) {
      copies[i] = &incoming_[(next_incoming_ + slot_count - 1 - i) % slot_count].copied;
    }
    backend_.wait(QueueKind::staged_h2d, {copies.data(), used});
    backend_.record(QueueKind::staged_h2d, end);
  }

  /// Queues the copy of a value from a place to the file, after `waits` on staged_d2h, which then comes after `gained`,
  /// and records `end` there: the place may be used again. The value is in the block after block.ready().
  void to_file(Block& to, const typename B::Address& from, Bytes size, std::span<const Event* const> waits,
               const Clock& gained, const CommandLabel& label, Event& end) {
    for (Bytes done; done < size; done += slot_bytes_) {
      const Bytes part = std::min(slot_bytes_, size - done);
      Slot& slot = next(outgoing_, next_outgoing_);
      const auto needs = timeline_.waits(QueueKind::staged_d2h, Clock::point(QueueKind::file_write, slot.written));
      std::array<const Event*, 2 * queue_count> list{};
      std::size_t count = 0;
      for (const Event* const event : needs.span()) list[count++] = event;
      if (done.value == 0) {
        for (const Event* const event : waits) list[count++] = event;
      }
      backend_.copy_part_to_host(memory_->memory(), memory_->offset + slot.offset, from, done, part,
                                 {list.data(), count}, slot.copied);
      timeline_.gained(QueueKind::staged_d2h, needs);
      queue_write(to, done, part, slot, label, gained);
    }
    backend_.record(QueueKind::staged_d2h, end);
  }

  /// Reads a part of a block's value into memory of the host. Waits for the value, and for the file.
  void read(const Block& from, Bytes offset, std::span<std::byte> to) {
    timeline_.host_wait(from.ready());
    const Bytes end = offset + Bytes{to.size()};
    for (Bytes at = round_down(offset, alignment_); at < end; at += slot_bytes_) {
      const Bytes part_end = std::min(at + slot_bytes_, round_up(end, alignment_));
      read_by_host(from, at, part_end);
      const Bytes first = std::max(at, offset);
      const Bytes last = std::min(part_end, end);
      std::memcpy(to.data() + (first - offset).value, by_host_ + (first - at).value, (last - first).value);
    }
  }

  /// Writes memory of the host into a part of a block that holds a value of `size` bytes. The rest of the value stays
  /// as it is. Work that uses the block must have ended. Waits for the file. If it throws, and `began` is true, the
  /// block has no value any more.
  void write(const Block& to, Bytes size, Bytes offset, std::span<const std::byte> from, bool& began) {
    const Bytes end = offset + Bytes{from.size()};
    for (Bytes at = round_down(offset, alignment_); at < end; at += slot_bytes_) {
      const Bytes part_end = std::min(at + slot_bytes_, round_up(end, alignment_));
      const Bytes first = std::max(at, offset);
      const Bytes last = std::min(part_end, end);
      const bool whole = first == at && (last == part_end || last == size);
      if (!whole) read_by_host(to, at, part_end);
      std::memcpy(by_host_ + (first - at).value, from.data() + (first - offset).value, (last - first).value);
      began = true;
      file_.write(to.offset + at, {by_host_, static_cast<std::size_t>((part_end - at).value)});
      bytes_written_ += part_end - at;
    }
  }

  [[nodiscard]] Bytes bytes_read() const { return bytes_read_; }
  [[nodiscard]] Bytes bytes_written() const { return bytes_written_; }

 private:
  struct Slot {
    Slot(Bytes at, B& backend) : offset(at), copied(backend.make_event()) {}
    Bytes offset;            // from the block's first byte
    Event copied;            // the last copy between the slot and the device
    bool in_use = false;     // incoming: `copied` must have ended before the slot is filled again
    QueuePoint written = 0;  // outgoing: the last write from the slot to the file
  };

  Slot& next(std::vector<Slot>& slots, std::size_t& position) {
    Slot& slot = slots[position];
    position = (position + 1) % slot_count;
    return slot;
  }

  [[nodiscard]] FileMemory& file_of(const Block& block) const {
    return block.source != nullptr ? *block.source : file_;
  }
  // A constant's file may end with its value.
  [[nodiscard]] Bytes readable(const Block& block, Bytes size) const {
    return round_up(size, block.source != nullptr ? block.source->alignment() : alignment_);
  }

  void read_by_host(const Block& from, Bytes begin, Bytes end) {
    if (from.source != nullptr) end = std::min(end, begin + readable(from, from.size - begin));
    file_of(from).read(from.offset + begin, {by_host_, static_cast<std::size_t>((end - begin).value)});
    bytes_read_ += end - begin;
  }

  QueuePoint queue_read(Block& from, Bytes offset, Bytes size, Slot& slot, const CommandLabel& label) {
    const Bytes padded = readable(from, size);
    const auto needs = timeline_.waits(QueueKind::file_read, from.ready());
    std::array<const Event*, queue_count + 1> list{};
    std::size_t count = 0;
    for (const Event* const event : needs.span()) list[count++] = event;
    if (slot.in_use) {
      backend_.flush(QueueKind::staged_h2d);
      list[count++] = &slot.copied;
    }
    auto& point = timeline_.next(QueueKind::file_read);
    backend_.read_file(file_of(from), from.offset + offset, memory_->memory(), memory_->offset + slot.offset, padded,
                       {list.data(), count}, point.event);
    timeline_.gained(QueueKind::file_read, needs);
    bytes_read_ += padded;
    return timeline_.commit(QueueKind::file_read, untimed(label));
  }

  void queue_write(Block& to, Bytes offset, Bytes size, Slot& slot, const CommandLabel& label, const Clock& gained) {
    const Bytes padded = round_up(size, alignment_);
    const auto needs = timeline_.waits(QueueKind::file_write, to.busy());
    std::array<const Event*, queue_count + 1> list{};
    std::size_t count = 0;
    for (const Event* const event : needs.span()) list[count++] = event;
    backend_.flush(QueueKind::staged_d2h);
    list[count++] = &slot.copied;
    auto& point = timeline_.next(QueueKind::file_write);
    backend_.write_file(file_, to.offset + offset, memory_->memory(), memory_->offset + slot.offset, padded,
                        {list.data(), count}, point.event);
    timeline_.gained(QueueKind::file_write, needs);
    timeline_.follow(QueueKind::file_write, QueueKind::staged_d2h, gained);
    bytes_written_ += padded;
    slot.written = to.written = timeline_.commit(QueueKind::file_write, untimed(label));
  }

  // The time of a copy counts once.
  static CommandLabel untimed(CommandLabel label) {
    label.timing = 0;
    return label;
  }

  B& backend_;
  Timeline<B>& timeline_;
  FileMemory& file_;
  Bytes alignment_;
  Bytes slot_bytes_;
  std::unique_ptr<Block> memory_;
  std::byte* by_host_ = nullptr;  // the host's slot
  std::vector<Slot> incoming_;
  std::vector<Slot> outgoing_;
  std::size_t next_incoming_ = 0;
  std::size_t next_outgoing_ = 0;
  Bytes bytes_read_;
  Bytes bytes_written_;
};

}  // namespace swapmm::runtime
