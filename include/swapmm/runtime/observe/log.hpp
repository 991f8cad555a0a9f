// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/interface/options.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/values/none.hpp>

namespace swapmm::runtime {

/// A value of LogTensor::outlives: more iterations than any plan covers.
inline constexpr std::uint32_t outlives_all = 1U << 20U;

/// Where the sequence first used a young tensor. It identifies tensors that are made anew in each iteration, and whose
/// handles therefore never repeat.
struct Producer {
  /// The oldest tensors that are identified this way, in iterations. Older ones are identified by their serial number.
  static constexpr std::uint32_t most_age = 2;

  std::uint32_t age = none;  ///< how many iterations ago that was; none: the serial number identifies the tensor
  std::uint32_t index = 0;   ///< the tensor's index in the log of that iteration

  [[nodiscard]] bool known() const { return age != none; }
};

/// A tensor as one iteration saw it. Tensors are listed in the order of their first appearance.
struct LogTensor {
  std::uint64_t serial = 0;  ///< serial number of the handle; never reused; 0 for scratch
  std::uint32_t record = none;
  Bytes bytes;
  std::string name;
  Lifetime lifetime = Lifetime::observed;
  bool created_inside = false;       ///< created since the previous iteration ended
  bool destroyed = false;            ///< destroyed before the next iteration began
  std::uint32_t outlives = 0;        ///< most iterations seen between a write and a read of the value
  std::optional<Bytes> copied = {};  ///< what copies seem to move, if its values are encoded on their way

  Producer producer = {};  ///< see EntranceOptions::identify_by_producer
  /// When its handle was destroyed, in moments (see LogWait) counted from the iteration's begin; not told for tensors
  /// that have a producer.
  std::uint64_t ended = std::numeric_limits<std::uint64_t>::max();

  [[nodiscard]] bool scratch() const { return serial == 0; }
  [[nodiscard]] bool local() const { return (created_inside && destroyed) || producer.known(); }
};

struct LogAccess {
  std::uint32_t tensor = 0;  ///< index in IterationLog::tensors
  Access access = Access::read;
};

struct LogOperation {
  std::string name;
  std::uint32_t first_access = 0;  ///< index in IterationLog::accesses; scratch, if any, is the last access
  std::uint32_t access_count = 0;
  std::chrono::nanoseconds duration{0};
  bool replayable = false;  ///< see swapmm::replayable
};

struct LogEvent {
  enum class What : std::uint8_t { operation, upload, download };
  What what = What::operation;
  std::uint32_t index = 0;  ///< index of the operation, or of the tensor
  bool seldom = false;      ///< a download that was in an earlier iteration like this one, and not in this one
};

/// A wait of the program, told by an entrance that keeps operations waiting (see Core::note_wait()). The order of such
/// waits, of calls and of the ends of tensors is told by *moments*.
struct LogWait {
  static constexpr std::uint64_t moments_per_call = 4;
  /// The moment of a wait after so many calls.
  template <class Count>
  [[nodiscard]] static constexpr Count moment(Count calls) {
    return calls * static_cast<Count>(moments_per_call) + 1;
  }
  /// The moment at which an operation is called.
  [[nodiscard]] static constexpr std::uint64_t moment_of_call(std::size_t operation) {
    return operation * moments_per_call + 3;
  }

  std::uint32_t calls = 0;  ///< operations that the iteration has called before it
  std::uint32_t open = 0;   ///< so many of the last calls may wait on; may reach into iterations before
};

/// The end of a tensor that is identified by its producer.
struct LogEnd {
  Producer producer;
  std::uint64_t moment = 0;  ///< see LogWait; counted from the iteration's begin
};

/// Everything that one iteration did, in the order in which the program did it.
struct IterationLog {
  std::vector<LogTensor> tensors;
  std::vector<LogAccess> accesses;
  std::vector<LogOperation> operations;
  std::vector<LogEvent> events;
  std::vector<LogWait> waits;
  std::vector<LogEnd> ends;
  bool broken = false;          ///< an operation failed in it, so it is not a normal iteration
  bool timed = false;           ///< durations were requested
  bool times_are_late = false;  ///< they are not known yet: see ProgramBook::times_came()

  void clear() {
    tensors.clear();
    accesses.clear();
    operations.clear();
    events.clear();
    waits.clear();
    ends.clear();
    broken = false;
    timed = false;
    times_are_late = false;
  }
};

/// Whether the duration of any of its operations is known.
[[nodiscard]] inline bool has_times(const IterationLog& log) {
  return std::any_of(log.operations.begin(), log.operations.end(),
                     [](const LogOperation& operation) { return operation.duration.count() != 0; });
}

}  // namespace swapmm::runtime
