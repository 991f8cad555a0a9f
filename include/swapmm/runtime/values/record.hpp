// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <swapmm/backend/backend.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/base/error.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/runtime/order/clock.hpp>
#include <swapmm/runtime/timing/encoding_history.hpp>
#include <swapmm/runtime/values/host_pool.hpp>
#include <swapmm/runtime/values/messages.hpp>
#include <swapmm/runtime/values/none.hpp>

namespace swapmm::runtime {

/// The copy of a tensor on the device: its place, whether its bytes are the value, and the work queued on it.
template <Backend B>
struct DeviceCopy {
  bool resident = false;
  bool valid = false;
  Bytes offset;
  const typename B::Address* address = nullptr;
  Clock ready;              ///< the bytes are the value once this has ended
  Clock busy;               ///< the bytes may be overwritten or given away once this has ended
  std::uint64_t issue = 0;  ///< issue number of the command that wrote the value
};

/// The copy of a tensor on the host.
template <Backend B>
struct HostCopy {
  bool valid = false;
  std::unique_ptr<HostBlock<B>> block;
  std::unique_ptr<HostBlock<B>> spare;  ///< the other slot of a tensor that the host fills or reads repeatedly
  std::uint64_t issue = 0;              ///< issue number of the copy that wrote the value; 0 if the host did
  bool wanted = false;                  ///< the program has filled or read it
};

/// The reason why neither copy is valid.
enum class MissingReason : std::uint8_t { never_written, dropped, lost };

/// The tensor that has the record, and whether it still exists. Updated by RecordTable.
struct TensorState {
  std::uint64_t serial = 0;  ///< serial number of the tensor that has, or last had, the record; never reused
  bool alive = false;        ///< a handle exists
  bool in_use = false;       ///< alive, or still used by the plan executor
  Lifetime lifetime = Lifetime::observed;
  std::uint64_t born =
      0;  ///< number of the iteration in which, or before which, it was made; 0: outside any, see Producer
  std::uint32_t appeared = 0;  ///< index in the log of that iteration
  bool constant = false;       ///< its block has the value for good, in a file of its own
};

/// The last operation with the tensor in its bundle. Written for each operation.
struct LastUse {
  std::uint64_t stamp = 0;     ///< number of the operation
  bool fresh = false;          ///< no operation has used the tensor yet
  std::uint64_t expected = 0;  ///< number of the operation on demand that is expected to use it next; 0: not known
};

/// The state of a tensor's value, apart from its copies.
struct ValueState {
  std::uint64_t written_in = 0;  ///< iteration number of the last write
  std::uint32_t outlives = 0;    ///< see LogTensor
  MissingReason missing_reason = MissingReason::never_written;
};

/// The tensor in the plan that is followed. Updated by the plan executor.
struct PlanBinding {
  std::uint32_t role = none;  ///< the role that was bound last
};

/// The tensor in the log of the current iteration. Updated by Recorder.
struct LogBinding {
  std::uint64_t epoch = 0;  ///< epoch of the log
  std::uint32_t index = 0;  ///< index of the tensor in the log
};

/// Neighbours among the tensors on the device, by last use on demand. Updated by Demand.
struct RecencyLinks {
  std::uint32_t older = none;
  std::uint32_t newer = none;
};

/// The storage of one tensor. Its address is fixed while the manager exists. Reused after the tensor's end.
template <Backend B>
struct Record {
  Bytes bytes;
  LastUse use;
  TensorState tensor;
  PlanBinding plan;
  ValueState value;
  DeviceCopy<B> device;
  HostCopy<B> host;
  std::uint32_t id = 0;               ///< position in the table
  std::uint32_t views = 0;            ///< open host views
  const void* owner = nullptr;        ///< what the entrance calls the tensor; see EntranceOptions
  std::uint32_t alike = not_encoded;  ///< the tensor's number in EncodingHistory, once that was asked
  std::uint8_t element_bytes = 4;     ///< for encodings; divides `bytes`
  RecencyLinks recency;
  LogBinding log;
  std::atomic<Record*> next_deferred_destroy{nullptr};  ///< see TensorRegistry
  std::string name;

  [[nodiscard]] bool has_value() const { return device.valid || host.valid; }
};

/// A reference of a view or bundle to a tensor. It does not keep the tensor alive; another tensor may have reused the
/// record.
template <Backend B>
struct TensorKey {
  Record<B>* record = nullptr;
  std::uint64_t serial = 0;

  /// True if the tensor still exists.
  [[nodiscard]] bool exists() const { return record->tensor.serial == serial && record->tensor.alive; }
};

/// Identifies the tensor in exceptions. If another tensor has reused the record, only the id is known.
template <Backend B>
[[nodiscard]] TensorName name_of(const TensorKey<B>& tensor) {
  if (tensor.record->tensor.serial != tensor.serial) return {.id = tensor.serial};
  return name_of(*tensor.record);
}

/// The size of the elements that a tensor is encoded in: that of its own, if the codec takes it.
[[nodiscard]] constexpr std::uint8_t element_of(std::size_t element_bytes, Bytes bytes) {
  for (const std::uint8_t size : {std::uint8_t{8}, std::uint8_t{4}, std::uint8_t{2}}) {
    if (element_bytes % size == 0 && bytes.value % size == 0) return size;
  }
  return 1;
}

/// All records of a manager.
template <Backend B>
class RecordTable {
 public:
  Record<B>& add(std::string_view name, Bytes bytes, Lifetime lifetime, std::uint64_t iteration,
                 std::size_t element_bytes = 4) {
    if (free_.capacity() < records_.size() + 1)
      free_.reserve(2 * (records_.size() + 1));  // so that remove() never allocates
    if (free_.empty()) {
      records_.emplace_back();
      records_.back().id = static_cast<std::uint32_t>(records_.size() - 1);
      free_.push_back(records_.back().id);
    }
    Record<B>& record = records_[free_.back()];
    record.name.assign(name);
    free_.pop_back();
    record.bytes = bytes;
    record.use = {0, true, 0};
    record.tensor = {++last_serial_, true, true, lifetime, iteration, 0, false};
    record.owner = nullptr;
    record.host.wanted = false;
    record.alike = not_encoded;
    record.element_bytes = element_of(element_bytes, bytes);
    record.views = 0;
    record.plan = {};
    record.value = {};
    record.log.epoch = 0;
    ++alive_;
    return record;
  }

  /// The tensor's value is in this block for good.
  void make_constant(Record<B>& record, std::unique_ptr<HostBlock<B>> block) noexcept {
    record.tensor.constant = true;
    record.host.block = std::move(block);
    record.host.valid = true;
    record.host.issue = 0;  // no copy brought it, and none that fails takes it away
    ++constants_;
  }

  /// Called when the handle is destroyed. The plan executor may still use the record.
  void end(Record<B>& record) noexcept {
    record.tensor.alive = false;
    if (record.tensor.constant) --constants_;
    --alive_;
  }

  /// Frees a record that holds nothing any more.
  void remove(Record<B>& record) noexcept {
    record.tensor.in_use = false;
    free_.push_back(record.id);
  }

  void swap(RecordTable& other) noexcept {
    records_.swap(other.records_);
    free_.swap(other.free_);
    std::swap(last_serial_, other.last_serial_);
    std::swap(alive_, other.alive_);
    std::swap(constants_, other.constants_);
  }

  Record<B>& operator[](std::uint32_t id) { return records_[id]; }
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  [[nodiscard]] std::size_t alive() const { return alive_; }
  /// Of those alive.
  [[nodiscard]] std::size_t constants() const { return constants_; }
  auto begin() { return records_.begin(); }
  auto end() { return records_.end(); }

 private:
  std::deque<Record<B>> records_;
  std::vector<std::uint32_t> free_;
  std::uint64_t last_serial_ = 0;
  std::size_t alive_ = 0;
  std::size_t constants_ = 0;
};

}  // namespace swapmm::runtime
