// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/export.hpp>
#include <swapmm/base/ids.hpp>
#include <swapmm/base/result.hpp>

namespace swapmm {

/// How the value of a tensor lives over the iterations.
enum class TensorKind : std::uint8_t {
  persistent,  ///< survives from one iteration to the next (weights, optimizer state)
  input,       ///< the host gives a new value in each iteration; dead after its last use in the iteration
  transient,   ///< dead before its first and after its last use in the iteration
};

/// As it stands in trace files.
[[nodiscard]] constexpr std::string_view to_string(TensorKind kind) {
  switch (kind) {
    case TensorKind::persistent: return "persistent";
    case TensorKind::input: return "input";
    case TensorKind::transient: return "transient";
  }
  return "unknown";
}

/// One tensor of a trace: a size, and how its value lives.
struct TraceTensor {
  std::string name;                         ///< for persons; any text, need not be unique
  Bytes bytes;                              ///< the size, without padding
  TensorKind kind = TensorKind::transient;  ///< how its value lives
  /// For an input: the operation before which the host gives the value. 0 for all other kinds.
  std::uint32_t available_from = 0;

  friend bool operator==(const TraceTensor&, const TraceTensor&) = default;
};

/// One unit operation. Its bundle is the union of the three lists; a tensor stands in one of them at most.
struct TraceOperation {
  std::string name;                      ///< for persons
  std::chrono::nanoseconds duration{0};  ///< what it takes on the device; not negative
  std::vector<TensorId> reads;           ///< needs the value and leaves it
  std::vector<TensorId> writes;          ///< gives it a whole new value
  std::vector<TensorId> updates;         ///< needs the value and changes it in place

  friend bool operator==(const TraceOperation&, const TraceOperation&) = default;
};

/// The host reads the value that `tensor` has after that operation.
struct HostRead {
  TensorId tensor{};              ///< whose value
  OperationId after_operation{};  ///< the value it has when that one has ended

  friend bool operator==(const HostRead&, const HostRead&) = default;
};

/// One iteration of a program as observed, whoever recorded it: plain data, format `swapmm-trace` version 1.
struct Trace {
  std::string name;                        ///< of the iteration
  std::vector<TraceTensor> tensors;        ///< a tensor's id is its position
  std::vector<TraceOperation> operations;  ///< in the order in which they run
  std::vector<HostRead> host_reads;        ///< in any order

  friend bool operator==(const Trace&, const Trace&) = default;
};

/// How an operation accesses a tensor of its bundle: see TraceOperation.
enum class Access : std::uint8_t { read, write, update };

/// Calls visit(TensorId, Access) for each tensor of the operation's bundle: reads, then writes, then updates.
template <class Visit>
void for_each_access(const TraceOperation& operation, Visit&& visit) {
  for (const TensorId id : operation.reads) visit(id, Access::read);
  for (const TensorId id : operation.writes) visit(id, Access::write);
  for (const TensorId id : operation.updates) visit(id, Access::update);
}

/// Everything docs/formats.md asks of a trace that its structure alone does not give: at least one operation, counts
/// within the limits of ir/limits.hpp, ids in range, a tensor at most once in a bundle, durations not negative,
/// available_from in range, only for inputs, and no access before it, a transient written before it is read, host
/// reads of values that exist, the sum of all sizes and that of all durations (in nanoseconds) below 2^62.
/// Every function of ir/ and plan/ that takes a trace expects one that passed. Linear in the size of the trace.
[[nodiscard]] SWAPMM_EXPORT Check check_trace(const Trace& trace);

/// SHA-256 in lower-case hex over sizes, kinds and bundles: the identity of a program. Names and durations are
/// not part of it.
[[nodiscard]] SWAPMM_EXPORT std::string digest(const Trace& trace);

}  // namespace swapmm
