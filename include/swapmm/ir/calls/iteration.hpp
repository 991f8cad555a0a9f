// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/calls/call.hpp>
#include <swapmm/ir/calls/run.hpp>
#include <swapmm/ir/trace.hpp>

// Internal: one iteration of a recorded program as a trace.

namespace swapmm::calls {

/// A trace of the busiest repeated sequence of a run.
struct RecordedIteration {
  Trace trace;
  std::size_t first = 0;       ///< of the repetition that was taken: position in Run::operations
  std::size_t operations = 0;  ///< of the run, in it
  std::size_t repetitions = 0;
  std::size_t covered = 0;         ///< operations of the run that belong to a repetition
  std::vector<std::string> notes;  ///< what the trace cannot hold, and what was filled in; a sentence each
};

/// Finds the sequence, and makes its trace. A Problem says that nothing repeats, or that the trace is beyond the limits
/// of the format. `name`: of the trace.
[[nodiscard]] Result<RecordedIteration> recorded_iteration(const CallLog& log, const Run& run, std::string name);

}  // namespace swapmm::calls
