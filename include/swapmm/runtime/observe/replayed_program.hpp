// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/runtime/observe/program.hpp>

namespace swapmm::runtime {

/// The program's trace, with the operations that may run again marked.
[[nodiscard]] Trace trace_with_replayable(const Program& program);

/// Whether plans for the program may have replays: an operation is replayable, and the program is a single iteration.
/// What runs again is kept no longer than to the end of an iteration.
[[nodiscard]] bool may_have_replays(const Program& program);

/// The program with replays written out: as operations of its trace, and as events right before the operation that
/// needs them. A Problem if one is not possible.
[[nodiscard]] Result<Program> with_replays(const Program& program, std::span<const Replay> replays);

/// The trace of `replayed`, with the durations, and what copies seem to move, that `observed`, the trace without
/// replays, has.
[[nodiscard]] Trace with_times_of(const Trace& observed, const Program& replayed);

}  // namespace swapmm::runtime
