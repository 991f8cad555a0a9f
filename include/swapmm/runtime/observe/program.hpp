// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/observe/log.hpp>

namespace swapmm::runtime {

/// The meaning of a trace's tensor in the running program. A role's number is its TensorId.
struct Role {
  enum class Kind : std::uint8_t {
    handle,   ///< a tensor that outlives the iteration
    local,    ///< the tensor that is created in the cycle and used at this position in the sequence
    scratch,  ///< a work area of one operation; not a tensor
  };
  Kind kind = Kind::handle;
  std::uint32_t record = none;  ///< record id, for a handle
  std::uint64_t serial = 0;     ///< serial number of the tensor, for a handle
  Bytes bytes;
  bool input = false;
  std::uint32_t appeared = 0;  ///< for a local: its index in the log of the iteration in which it is created
  /// For a local whose tensor of the cycle before is used first: how many iterations before the cycle's first one that
  /// tensor was created. Else 0.
  std::uint32_t carried = 0;
};

struct RoleAccess {
  std::uint32_t role = 0;
  Access access = Access::read;
};

/// The next event of the program.
struct Event {
  enum class What : std::uint8_t {
    operation,
    upload,
    download,
    end_of_iteration,
    replay,  ///< an operation that the manager runs again: not the program's
  };
  What what = What::operation;
  std::uint32_t index = 0;  ///< number of the operation, or of the role
};

/// The replays that are written out in a program; empty if there are none.
struct Replays {
  std::vector<std::uint32_t> runs;   ///< per operation: the operation of the observed program that it is or repeats
  std::vector<bool> is_replay;       ///< per operation
  std::vector<std::uint32_t> times;  ///< per operation of the observed program: how often it is repeated

  [[nodiscard]] bool empty() const { return runs.empty(); }
};

/// One or more iterations of a program, in the program's terms (events, in the order of its calls) and in the
/// planners' (a trace).
struct Program {
  Trace trace;
  std::vector<Role> roles;  ///< one per tensor of the trace
  std::vector<Event> events;
  std::vector<RoleAccess> accesses;          ///< in the order of the call; scratch last
  std::vector<std::uint32_t> first_access;   ///< per operation, plus one at the end
  std::vector<std::uint32_t> scratch_roles;  ///< per operation; none if it has no scratch
  std::vector<bool> replayable;              ///< per operation; empty: none. The trace does not say it
  bool by_producer = false;                  ///< see EntranceOptions::identify_by_producer
  std::vector<LogWait> waits;                ///< with calls counted from the cycle's first operation, without replays
  Replays replays;                           ///< that are written out in it: see replayed_program.hpp

  [[nodiscard]] bool is_replayable(std::size_t operation) const { return !replayable.empty() && replayable[operation]; }
  /// True if the host uploads a value to a tensor in it.
  [[nodiscard]] bool has_uploads() const {
    return std::any_of(events.begin(), events.end(),
                       [](const Event& event) { return event.what == Event::What::upload; });
  }
};

/// Makes one program from the consecutive iterations `logs`. Returns a Problem if there is no operation, if an
/// operation failed, or if a tensor's value from the previous iteration is used before an upload replaces it: a plan
/// cannot express that. `proves_drops`: values may be dropped only if they are proven dead, and no entrance has told
/// waits: each operation goes to the device when it is called.
[[nodiscard]] Result<Program> make_program(std::span<const IterationLog* const> logs, std::string_view name,
                                           bool proves_drops = false);

/// True if the iteration uses tensors that are known by their producers in iterations before.
[[nodiscard]] bool has_earlier_generation(const IterationLog& log);

/// True if tensors that are made anew in each iteration live so long that consecutive ones exist at the same time, so
/// the iterations `logs` need places of their own for both. They must be planned as a longer cycle.
[[nodiscard]] bool generations_overlap(std::span<const IterationLog* const> logs);

/// Two iterations are the same if they agree in sizes, bundles, what is replayable, uploads, and the identity of the
/// tensors that outlive them: their handles or producers. Names, durations and downloads do not count.
[[nodiscard]] std::vector<std::uint64_t> identity(const IterationLog& log);

/// Adds to an iteration what the host read in another one with the same identity(), where it was read: what was read
/// once may be read again.
void add_downloads(IterationLog& log, const IterationLog& before);

}  // namespace swapmm::runtime
