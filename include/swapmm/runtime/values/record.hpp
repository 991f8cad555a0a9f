// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/values/host_pool.hpp>
#include <swapmm/runtime/values/none.hpp>

namespace swapmm::runtime {

/// The copy of a tensor on the device: its place there, whether the bytes are the value, and what was queued on it.
template <Backend B>
struct DeviceCopy {
  bool resident = false;
  bool valid = false;
  Bytes offset;
  const typename B::Address* address = nullptr;
  Clock ready;              ///< the bytes are the value once this has ended
  Clock busy;               ///< the bytes may be overwritten or given away once this has ended
  std::uint64_t issue = 0;  ///< of the command that gave the value
};

/// The copy of a tensor on the host.
template <Backend B>
struct HostCopy {
  bool valid = false;
  std::unique_ptr<HostBlock<B>> block;
  std::unique_ptr<HostBlock<B>> spare;  ///< the other slot of a tensor that the host fills or reads again and again
  std::uint64_t issue = 0;              ///< of the copy that gave the value; 0: the host did
};

/// Why neither copy is valid.
enum class Absence : std::uint8_t { never_written, dropped, lost };

/// The storage of one tensor. Has a fixed address for as long as the manager lives; reused after the tensor's end.
template <Backend B>
struct Record {
  DeviceCopy<B> device;
  HostCopy<B> host;
  Bytes bytes;
  std::uint64_t stamp = 0;    ///< number of the last operation with it in its bundle
  std::uint32_t id = 0;       ///< position in the table
  std::uint32_t role = none;  ///< in the followed plan: the last one that was bound
  Lifetime lifetime = Lifetime::observed;
  Absence absence = Absence::never_written;
  bool alive = false;            ///< a handle exists
  bool in_use = false;           ///< alive, or still in the hands of the executor
  bool fresh = false;            ///< no operation has used it yet
  std::uint32_t outlives = 0;    ///< see LogTensor
  std::uint64_t serial = 0;      ///< of the tensor that has or had the record last; never used twice
  std::uint64_t born = 0;        ///< number of the iteration that it was made in or before
  std::uint64_t written_in = 0;  ///< iteration number of the last write
  std::uint64_t log_epoch = 0;
  std::uint32_t log_index = 0;
  std::uint32_t older = none;  ///< among residents, by last use on demand
  std::uint32_t newer = none;
  std::atomic<Record*> next_dead{nullptr};  ///< destroyed while the manager was busy
  std::string name;

  [[nodiscard]] bool has_value() const { return device.valid || host.valid; }
};

/// A tensor, as views and bundles refer to it: they keep nothing alive, and its record may be another tensor's by now.
template <Backend B>
struct TensorKey {
  Record<B>* record = nullptr;
  std::uint64_t serial = 0;

  /// The tensor still exists.
  [[nodiscard]] bool exists() const { return record->serial == serial && record->alive; }
  /// What it is or was called; null if that is no longer known.
  [[nodiscard]] const std::string* name() const { return record->serial == serial ? &record->name : nullptr; }
};

/// All storages of a manager.
template <Backend B>
class RecordTable {
 public:
  Record<B>& add(std::string_view name, Bytes bytes, Lifetime lifetime, std::uint64_t iteration) {
    if (free_.capacity() < records_.size() + 1) free_.reserve(2 * (records_.size() + 1));  // remove() never allocates
    if (free_.empty()) {
      records_.emplace_back();
      records_.back().id = static_cast<std::uint32_t>(records_.size() - 1);
      free_.push_back(records_.back().id);
    }
    Record<B>& record = records_[free_.back()];
    record.name.assign(name);
    free_.pop_back();
    record.bytes = bytes;
    record.lifetime = lifetime;
    record.absence = Absence::never_written;
    record.alive = true;
    record.in_use = true;
    record.outlives = 0;
    record.fresh = true;
    record.born = iteration;
    record.serial = ++last_serial_;
    record.role = none;
    record.written_in = 0;
    record.log_epoch = 0;
    record.stamp = 0;
    ++alive_;
    return record;
  }

  /// The handle is gone; the record may still be in the hands of the executor.
  void end(Record<B>& record) noexcept {
    record.alive = false;
    --alive_;
  }

  /// The record holds nothing any more.
  void remove(Record<B>& record) noexcept {
    record.in_use = false;
    free_.push_back(record.id);
  }

  void swap(RecordTable& other) noexcept {
    records_.swap(other.records_);
    free_.swap(other.free_);
    std::swap(last_serial_, other.last_serial_);
    std::swap(alive_, other.alive_);
  }

  Record<B>& operator[](std::uint32_t id) { return records_[id]; }
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  [[nodiscard]] std::size_t alive() const { return alive_; }
  auto begin() { return records_.begin(); }
  auto end() { return records_.end(); }

 private:
  std::deque<Record<B>> records_;
  std::vector<std::uint32_t> free_;
  std::uint64_t last_serial_ = 0;
  std::size_t alive_ = 0;
};

}  // namespace swapmm::runtime
