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
  allocate,  ///< device bytes for a tensor whose next access is a whole write; no time, no engine
  swap_in,   ///< copy host to device; occupies the bytes from its start
  swap_out,  ///< copy device to host; the device copy stays
  release,   ///< frees the device bytes; no time, no engine
};

/// As it stands in plan files.
[[nodiscard]] constexpr std::string_view to_string(CommandKind kind) {
  switch (kind) {
    case CommandKind::allocate: return "allocate";
    case CommandKind::swap_in: return "swap_in";
    case CommandKind::swap_out: return "swap_out";
    case CommandKind::release: return "release";
  }
  return "unknown";
}

/// Where the other copy of a command lives. Version 1 of the format knows the host alone.
enum class Tier : std::uint8_t { host };

/// The end of an operation or of a command, of this iteration or of the one before: as it stands in the file.
struct Wait {
  /// What is waited for.
  enum class On : std::uint8_t { operation, command };
  On on = On::operation;   ///< the end of an operation, or of a command
  bool previous = false;   ///< commands only: that of the iteration before
  std::int32_t index = 0;  ///< an operation from -n to -1 is operation n + index of the iteration before

  friend bool operator==(const Wait&, const Wait&) = default;
};

/// The end of operation `id` of this iteration.
[[nodiscard]] constexpr Wait after_operation(OperationId id) {
  return {Wait::On::operation, false, static_cast<std::int32_t>(id)};
}
/// The end of operation `id` in the iteration before, of n operations.
[[nodiscard]] constexpr Wait after_previous_operation(OperationId id, std::size_t n) {
  return {Wait::On::operation, false, static_cast<std::int32_t>(id) - static_cast<std::int32_t>(n)};
}
/// The end of command `id` of this iteration.
[[nodiscard]] constexpr Wait after_command(CommandId id) {
  return {Wait::On::command, false, static_cast<std::int32_t>(id)};
}
/// The end of command `id` in the iteration before.
[[nodiscard]] constexpr Wait after_previous_command(CommandId id) {
  return {Wait::On::command, true, static_cast<std::int32_t>(id)};
}

/// One move of one tensor, tied to operations and to other moves.
struct Command {
  CommandKind kind = CommandKind::release;  ///< what it does
  Tier tier = Tier::host;                   ///< where the other copy lives
  TensorId tensor{};                        ///< which tensor it moves
  Bytes offset;                             ///< of allocate and swap_in: the place; 0 for the others
  std::vector<Wait> after;                  ///< starts when all of them have ended, and its engine is free
  /// That operation starts only when this command has ended. From n to 2n-1: operation value - n of the next
  /// iteration (n operations per iteration).
  std::optional<std::uint32_t> before_operation;

  friend bool operator==(const Command&, const Command&) = default;
};

/// A tensor on the device between two iterations.
struct Resident {
  TensorId tensor{};        ///< which one
  Bytes offset;             ///< its place
  bool host_valid = false;  ///< the host copy is valid too

  friend bool operator==(const Resident&, const Resident&) = default;
};

/// What the simulator says of a plan: per iteration, in the steady state.
struct Prediction {
  std::chrono::nanoseconds iteration{0};    ///< long-run mean, stalls included
  std::chrono::nanoseconds compute{0};      ///< sum of the durations of the operations
  std::chrono::nanoseconds lower_bound{0};  ///< no valid plan for this trace and machine beats it
  Bytes h2d;                                ///< copied to the device
  Bytes d2h;                                ///< copied to the host
  Bytes peak;                               ///< most bytes occupied at one time, sizes rounded up to the alignment

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

/// What moves when, for every iteration: plain data, format `swapmm-plan` version 1.
struct Plan {
  std::string trace_digest;       ///< of the program it is for: digest()
  std::string planner;            ///< who made it; for persons
  Machine machine;                ///< what it is made for
  std::vector<Resident> initial;  ///< on the device where an iteration begins
  std::vector<Command> commands;  ///< a command's id is its position; each copy engine runs its own in this order
  Prediction predicted;           ///< promises nothing: durations vary

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Whether a command of that kind says where on the device its tensor comes to lie.
[[nodiscard]] constexpr bool has_place(CommandKind kind) {
  return kind == CommandKind::allocate || kind == CommandKind::swap_in;
}

/// What can be said of a plan without its trace: the trace's digest has the form of one, the machine passes
/// check_machine(), waits refer to commands that exist, offsets are aligned and within the budget, and no tensor is on
/// the device twice at the start. Whether the plan is valid, validate() says. Linear in the size of the plan.
[[nodiscard]] SWAPMM_EXPORT Check check_plan(const Plan& plan);

}  // namespace swapmm
