// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/base/result.hpp>

namespace swapmm {

/// How long the value of a tensor lives.
enum class TensorKind : std::uint8_t {
  persistent,  ///< survives from one iteration to the next (weights, optimizer state)
  input,       ///< the host gives a new value in each iteration; dead after its last use in the iteration
  transient,   ///< dead before its first and after its last use in the iteration
};

/// The name of the kind in trace files.
[[nodiscard]] constexpr std::string_view to_string(TensorKind kind) {
  switch (kind) {
    case TensorKind::persistent: return "persistent";
    case TensorKind::input: return "input";
    case TensorKind::transient: return "transient";
  }
  return "unknown";
}

/// One tensor of a trace.
struct TraceTensor {
  std::string name;                         ///< for people; any text, need not be unique
  Bytes bytes;                              ///< the size, without padding
  TensorKind kind = TensorKind::transient;  ///< how long its value lives
  /// For an input: the operation before which the host gives the value. 0 for all other kinds.
  std::uint32_t available_from = 0;
  /// The bytes that a copy is predicted to move; none: all of them. An encoded value has a place for the worst case.
  /// Files do not have it.
  std::optional<Bytes> copied{};

  friend bool operator==(const TraceTensor&, const TraceTensor&) = default;
};

/// The bytes that a copy of the tensor is predicted to move.
[[nodiscard]] inline Bytes copied_bytes(const TraceTensor& tensor) { return tensor.copied.value_or(tensor.bytes); }

/// One unit operation. Its bundle is the union of the three lists. A tensor is in at most one of them.
struct TraceOperation {
  std::string name;                      ///< for people
  std::chrono::nanoseconds duration{0};  ///< time on the device; not negative
  std::vector<TensorId> reads;           ///< tensors whose value it needs and leaves unchanged
  std::vector<TensorId> writes;          ///< tensors to which it gives a whole new value
  std::vector<TensorId> updates;         ///< tensors whose value it needs and changes in place
  /// Position in Trace::engines of the engine that runs it; default_engine: the machine's first engine with a memory.
  std::uint32_t engine = default_engine;
  bool replayable = false;  ///< a plan may run it again: the same inputs give the same outputs
  bool in_pieces = false;   ///< it works with tensors whose pieces are not next to each other

  /// The value of `engine` for operations that name none.
  static constexpr std::uint32_t default_engine = 0xffffffffU;

  friend bool operator==(const TraceOperation&, const TraceOperation&) = default;
};

/// A read by the host, of the value that `tensor` has after an operation.
struct HostRead {
  TensorId tensor{};              ///< the tensor
  OperationId after_operation{};  ///< the host reads the value that the tensor has when this operation has ended

  friend bool operator==(const HostRead&, const HostRead&) = default;
};

/// A value that no operation needs any more, and that may still be asked for by somebody whom the trace does not show.
/// Such values are not lost before it is certain that nobody will ask. The next access of the tensor is in `writes`.
struct LingeringValue {
  TensorId tensor{};       ///< not an input, and not read by the host
  OperationId last_use{};  ///< the last operation that uses the value
  /// The operation at whose end it is certain, counted on from the iteration of `last_use`: above it, and at most the
  /// operation that overwrites the value. In the latter case it is never certain before.
  std::uint32_t until = 0;

  friend bool operator==(const LingeringValue&, const LingeringValue&) = default;
};

/// An access that concerns only a part of a tensor's bytes.
struct AccessRange {
  OperationId operation{};  ///< the operation
  TensorId tensor{};        ///< a tensor of the operation's bundle
  Bytes first;              ///< the first byte
  Bytes bytes;              ///< the number of bytes; at least 1

  friend bool operator==(const AccessRange&, const AccessRange&) = default;
};

/// An encoding that a tensor's values can be stored in.
struct TensorForm {
  TensorId tensor{};                   ///< the tensor
  std::string name;                    ///< 1 to 100 characters out of A-Z a-z 0-9 . _ -, and not `plain`
  Bytes bytes;                         ///< size of a place; holds every encoded value
  Bytes expected;                      ///< the size that times are predicted with; at most `bytes`
  std::chrono::nanoseconds encode{0};  ///< time of an encoding
  std::chrono::nanoseconds decode{0};  ///< time of a decoding

  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

/// One observed iteration of a program, as plain data. Its file format is `swapmm-trace`. `engines`, `ranges` and
/// `forms`, and the last three fields of operations need version 2 of the format; it has no lingering values. In memory
/// a trace may have both lingering values and replayable operations.
struct Trace {
  std::string name;                         ///< name of the iteration
  std::vector<TraceTensor> tensors;         ///< a tensor's id is its position
  std::vector<TraceOperation> operations;   ///< in the order in which they run
  std::vector<HostRead> host_reads;         ///< in any order
  std::vector<std::string> engines{};       ///< names of engines that operations refer to, each once
  std::vector<AccessRange> ranges{};        ///< ascending by operation, then tensor; at most one for each access
  std::vector<TensorForm> forms{};          ///< ascending by tensor; names of one tensor's forms differ
  std::vector<LingeringValue> lingering{};  ///< ascending by tensor, then last use

  friend bool operator==(const Trace&, const Trace&) = default;
};

/// The forms of a tensor. Logarithmic in the number of forms.
[[nodiscard]] SWAPMM_EXPORT std::span<const TensorForm> forms_of(const Trace& trace, TensorId tensor);
/// The form of that name of a tensor; null if it has none. Linear in the forms of the tensor.
[[nodiscard]] SWAPMM_EXPORT const TensorForm* find_form(const Trace& trace, TensorId tensor, std::string_view name);

/// The range of an operation's access to a tensor; null if it accesses all of it. Logarithmic in the number of ranges.
[[nodiscard]] SWAPMM_EXPORT const AccessRange* find_range(const Trace& trace, OperationId operation, TensorId tensor);

/// The operation at whose end the host gives an input its next value: for one that is available from operation 0, the
/// last operation of the iteration before.
[[nodiscard]] constexpr std::size_t giving_operation(const TraceTensor& input, std::size_t operations) {
  return (input.available_from > 0 ? input.available_from : operations) - 1;
}

/// How an operation accesses a tensor of its bundle. See TraceOperation.
enum class Access : std::uint8_t { read, write, update };

/// Calls visit(TensorId, Access) for each tensor of the operation's bundle: reads, then writes, then updates.
template <class Visit>
void for_each_access(const TraceOperation& operation, Visit&& visit) {
  for (const TensorId id : operation.reads) visit(id, Access::read);
  for (const TensorId id : operation.writes) visit(id, Access::write);
  for (const TensorId id : operation.updates) visit(id, Access::update);
}

/// Whether the trace has something that version 1 of the format cannot say. Planners and managers for one device take
/// only traces for which this is false.
[[nodiscard]] SWAPMM_EXPORT bool needs_version_2(const Trace& trace);

/// Whether `name` can name an engine or a form: 1 to 100 characters out of A-Z a-z 0-9 . _ -
[[nodiscard]] SWAPMM_EXPORT bool is_name(std::string_view name);

/// Checks the rules of docs/formats.md for traces. There is at least one operation; counts are within the limits of
/// ir/limits.hpp; ids are in range; a tensor is at most once in a bundle; durations are not negative; only inputs have
/// an available_from, which is in range and not after an access; copies move no more bytes than a tensor has; a
/// transient is written before it is read; host reads find a value; lingering values are as LingeringValue says; the
/// sum of all sizes and the sum of all durations (in nanoseconds) are below 2^62.
///
/// Every function of ir/ and plan/ that takes a trace expects one that passed this check. Linear in the size of the
/// trace.
[[nodiscard]] SWAPMM_EXPORT Check check_trace(const Trace& trace);

/// The digest that identifies a program: SHA-256 in lower-case hex over sizes, kinds and bundles. Names and durations
/// are not part of it.
[[nodiscard]] SWAPMM_EXPORT std::string digest(const Trace& trace);

}  // namespace swapmm
