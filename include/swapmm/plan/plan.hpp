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
#include <swapmm/plan/machine.hpp>

namespace swapmm {

/// What a command of a plan does to one tensor.
enum class CommandKind : std::uint8_t {
  allocate,  ///< takes device bytes for a tensor whose next access is a whole write; no time, no engine
  swap_in,   ///< copies host to device; occupies the bytes from its start
  swap_out,  ///< copies device to host; the device copy stays
  release,   ///< frees the device bytes; no time, no engine
};

/// The name of the kind in plan files.
[[nodiscard]] constexpr std::string_view to_string(CommandKind kind) {
  switch (kind) {
    case CommandKind::allocate: return "allocate";
    case CommandKind::swap_in: return "swap_in";
    case CommandKind::swap_out: return "swap_out";
    case CommandKind::release: return "release";
  }
  return "unknown";
}

/// The other memory of a copy. Version 1 of the format has only the host.
enum class Tier : std::uint8_t { host };

/// A wait for the end of an operation or of a command, in this iteration or in the one before. Same fields as in the
/// file.
struct Wait {
  /// The kind of thing that is waited for.
  enum class On : std::uint8_t { operation, command };
  On on = On::operation;   ///< waits for an operation or for a command
  bool previous = false;   ///< commands only: the command of the iteration before
  std::int32_t index = 0;  ///< position; for operations, -n to -1 is operation n + index of the iteration before

  friend bool operator==(const Wait&, const Wait&) = default;
};

/// A wait for the end of operation `id` of this iteration.
[[nodiscard]] constexpr Wait after_operation(OperationId id) {
  return {Wait::On::operation, false, static_cast<std::int32_t>(id)};
}
/// A wait for the end of operation `id` of the iteration before. `n` is the number of operations per iteration.
[[nodiscard]] constexpr Wait after_previous_operation(OperationId id, std::size_t n) {
  return {Wait::On::operation, false, static_cast<std::int32_t>(id) - static_cast<std::int32_t>(n)};
}
/// A wait for the end of command `id` of this iteration.
[[nodiscard]] constexpr Wait after_command(CommandId id) {
  return {Wait::On::command, false, static_cast<std::int32_t>(id)};
}
/// A wait for the end of command `id` of the iteration before.
[[nodiscard]] constexpr Wait after_previous_command(CommandId id) {
  return {Wait::On::command, true, static_cast<std::int32_t>(id)};
}

/// A command of a plan: one move of one tensor, tied to operations and to other moves.
struct Command {
  CommandKind kind = CommandKind::release;  ///< what it does
  Tier tier = Tier::host;                   ///< the other memory of a copy
  TensorId tensor{};                        ///< the tensor
  Bytes offset;                             ///< the place, for allocate and swap_in; 0 for the others
  std::vector<Wait> after;                  ///< the command starts when all of these have ended and its engine is free
  /// The operation that starts only when this command has ended. A value from n to 2n-1 is operation value - n of the
  /// next iteration; n is the number of operations per iteration.
  std::optional<std::uint32_t> before_operation;

  friend bool operator==(const Command&, const Command&) = default;
};

/// A tensor on the device between two iterations.
struct Resident {
  TensorId tensor{};        ///< the tensor
  Bytes offset;             ///< its place on the device
  bool host_valid = false;  ///< true if the host copy is valid, too

  friend bool operator==(const Resident&, const Resident&) = default;
};

/// The simulator's prediction for a plan, per iteration in the steady state.
struct Prediction {
  std::chrono::nanoseconds iteration{0};    ///< long-run mean time, including stalls
  std::chrono::nanoseconds compute{0};      ///< sum of the durations of the operations
  std::chrono::nanoseconds lower_bound{0};  ///< no valid plan for this trace and machine is faster
  Bytes h2d;                                ///< bytes copied to the device
  Bytes d2h;                                ///< bytes copied to the host
  Bytes peak;  ///< largest number of bytes occupied at one time; sizes rounded up to the alignment

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

/// A plan: what moves when, for every iteration. Plain data. Its file format is `swapmm-plan` version 1.
struct Plan {
  std::string trace_digest;       ///< digest() of the trace that the plan is for
  std::string planner;            ///< name of the planner; for people
  Machine machine;                ///< the machine that the plan is made for
  std::vector<Resident> initial;  ///< tensors on the device when an iteration begins
  std::vector<Command> commands;  ///< a command's id is its position; each copy engine runs its own in this order
  Prediction predicted;           ///< no guarantee, because durations vary

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Whether commands of that kind give their tensor a place on the device.
[[nodiscard]] constexpr bool has_place(CommandKind kind) {
  return kind == CommandKind::allocate || kind == CommandKind::swap_in;
}

/// Checks everything about a plan that needs no trace: the digest has the right form, the machine passes
/// check_machine(), waits refer to commands that exist, offsets are aligned and within the budget, and no tensor is on
/// the device twice at the start. Use validate() to check whether the plan is valid for a trace. Linear in the size of
/// the plan.
[[nodiscard]] SWAPMM_EXPORT Check check_plan(const Plan& plan);

}  // namespace swapmm
