// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <swapmm/ir/calls/call.hpp>
#include <swapmm/ir/calls/run.hpp>
#include <swapmm/ir/trace.hpp>

// Internal: some operations of a run as a trace.

namespace swapmm::calls {

struct TraceWindow {
  Trace trace;                          ///< without a name and durations
  std::vector<std::size_t> operations;  ///< of each operation of the trace: its position in Run::operations
  std::size_t skipped_reads = 0;        ///< host reads that the trace has no place for
  std::size_t unknown_writes = 0;       ///< accesses of launches that are updates only because nothing else is known
};

/// The operations [first, first + count) of the run, as an iteration that repeats.
///
/// A storage is persistent if it has a value before the first operation that one of them uses, or a value at the end
/// that is used after it. Otherwise it is an input if the host gives the value, and transient if a command does. An
/// update of a buffer that is new and never had a value is a write. A value that the host gives to a buffer that is not
/// an input is an operation that writes it. Images are not tensors.
[[nodiscard]] TraceWindow make_window(const CallLog& log, const Run& run, std::size_t first, std::size_t count);

}  // namespace swapmm::calls
