// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <swapmm/base/result.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/runtime/observe/log.hpp>

namespace swapmm::runtime {

/// What a tensor of a trace stands for in the running program. A role's number is its TensorId.
struct Role {
  enum class Kind : std::uint8_t {
    handle,   ///< one tensor that outlives the iteration
    local,    ///< whichever tensor made in the iteration is used at that place
    scratch,  ///< a work area of one operation; no tensor at all
  };
  Kind kind = Kind::handle;
  std::uint32_t record = none;  ///< of a handle
  std::uint64_t serial = 0;     ///< of a handle
  Bytes bytes;
  bool input = false;
};

struct RoleAccess {
  std::uint32_t role = 0;
  Access access = Access::read;
};

/// What the program does next.
struct Event {
  enum class What : std::uint8_t { operation, upload, download, end_of_iteration };
  What what = What::operation;
  std::uint32_t index = 0;  ///< operation, or role
};

/// One or more iterations of a program, in the program's terms (events, in the order of its calls) and in the
/// planners' (a trace).
struct Program {
  Trace trace;
  std::vector<Role> roles;  ///< one per tensor of the trace
  std::vector<Event> events;
  std::vector<RoleAccess> accesses;          ///< in the order of the call; scratch last
  std::vector<std::uint32_t> first_access;   ///< per operation, and one more
  std::vector<std::uint32_t> scratch_roles;  ///< per operation, or none

  /// The host gives a tensor a value in it.
  [[nodiscard]] bool has_uploads() const {
    return std::any_of(events.begin(), events.end(),
                       [](const Event& event) { return event.what == Event::What::upload; });
  }
};

/// The consecutive iterations `logs` as one program. A Problem where a plan could not express what it does: an
/// uploaded value that must survive into the next iteration.
[[nodiscard]] Result<Program> make_program(std::span<const IterationLog* const> logs, std::string_view name);

/// What makes two iterations the same: sizes, bundles, uploads, and the identity of the tensors that outlive them.
/// Neither names nor durations nor downloads.
[[nodiscard]] std::vector<std::uint64_t> identity(const IterationLog& log);

}  // namespace swapmm::runtime
