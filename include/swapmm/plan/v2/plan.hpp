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
#include <swapmm/plan/plan.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::v2 {

/// What a command of a plan does.
enum class CommandKind : std::uint8_t {
  allocate,  ///< takes a place; no time, no engine
  release,   ///< gives a place back; no time, no engine
  copy,      ///< copies a value over a link, in the form that it has
  run,       ///< runs an operation again, on the operation's engine
  encode,    ///< makes the encoded form of a plain value
  decode,    ///< makes the plain value of an encoded one
};

/// The name of the kind in plan files.
[[nodiscard]] constexpr std::string_view to_string(CommandKind kind) {
  switch (kind) {
    case CommandKind::allocate: return "allocate";
    case CommandKind::release: return "release";
    case CommandKind::copy: return "copy";
    case CommandKind::run: return "run";
    case CommandKind::encode: return "encode";
    case CommandKind::decode: return "decode";
  }
  return "unknown";
}

/// A form in a plan: `plain`, or Plan::forms[id - 1].
enum class FormId : std::uint32_t { plain = 0 };

/// A command of a plan. Which fields have a meaning depends on the kind; all others have their default.
struct Command {
  CommandKind kind = CommandKind::release;  ///< what it does
  TensorId tensor{};                        ///< all kinds but run
  std::optional<std::uint32_t> piece;       ///< the piece, if the plan divides the tensor
  FormId form = FormId::plain;              ///< all kinds but run; not plain for encode and decode
  MemoryId memory{};                        ///< allocate and release
  LinkId link{};                            ///< copy
  EngineId engine{};                        ///< encode and decode
  OperationId operation{};                  ///< run
  /// The place that the command takes. Required for allocate; copy, encode and decode without it fill the place that is
  /// there.
  std::optional<Bytes> offset;
  std::vector<Wait> after;  ///< the command starts when all of these have ended
  /// Operations that start only when this command has ended. Values from n to 2n-1 are operations of the next
  /// iteration; n is the number of operations per iteration. In files `before_operation`: one number, or a list of
  /// numbers.
  std::vector<std::uint32_t> before_operations;
  /// On its engine, the command runs right before this operation; none: behind all operations.
  std::optional<std::uint32_t> position;

  friend bool operator==(const Command&, const Command&) = default;
};

/// A place between two iterations.
struct Place {
  TensorId tensor{};                   ///< the tensor
  std::optional<std::uint32_t> piece;  ///< the piece, if the plan divides the tensor
  FormId form = FormId::plain;         ///< the form
  MemoryId memory{};                   ///< where it is
  Bytes offset;                        ///< 0 in a memory without limit
  bool valid = true;                   ///< whether it holds the newest value when the first iteration begins

  friend bool operator==(const Place&, const Place&) = default;
};

/// How a plan divides a tensor.
struct Division {
  TensorId tensor{};      ///< the tensor
  std::vector<Bytes> at;  ///< where pieces end and the next ones begin: ascending, above 0, below the tensor's size

  friend bool operator==(const Division&, const Division&) = default;
};

/// The simulator's prediction for a plan, per iteration in the long run.
struct Prediction {
  std::chrono::nanoseconds iteration{0};    ///< mean time, including stalls
  std::chrono::nanoseconds compute{0};      ///< the largest sum of durations of one engine's operations
  std::chrono::nanoseconds lower_bound{0};  ///< no valid plan for this trace and machine is faster
  std::vector<Bytes> links;                 ///< bytes copied over each link; empty: not known
  std::vector<Bytes> peaks;                 ///< most bytes occupied in each memory, 0 without limit; empty: not known

  friend bool operator==(const Prediction&, const Prediction&) = default;
};

/// A plan for a machine with many memories: what moves when, for every iteration. Plain data. Its file format is
/// `swapmm-plan` version 2.
struct Plan {
  std::string trace_digest;        ///< digest() of the trace that the plan is for
  std::string planner;             ///< name of the planner; for people
  Machine machine;                 ///< the machine that the plan is made for
  std::vector<std::string> forms;  ///< names of the forms that the plan uses, each once; see FormId
  std::vector<Division> pieces;    ///< the tensors that are divided, each once
  std::vector<Place> initial;      ///< places when an iteration begins
  std::vector<Command> commands;   ///< a command's id is its position
  Prediction predicted;            ///< no guarantee, because durations vary

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Whether commands of that kind run on an engine.
[[nodiscard]] constexpr bool has_engine(CommandKind kind) {
  return kind != CommandKind::allocate && kind != CommandKind::release;
}

/// The name of a form.
[[nodiscard]] inline std::string_view name_of(const Plan& plan, FormId form) {
  return form == FormId::plain ? std::string_view("plain") : std::string_view(plan.forms[index(form) - 1]);
}

/// Checks everything about a plan that needs no trace: the digest has the right form, the machine passes
/// check_machine(), ids exist, divisions ascend, offsets are present where they must be and nowhere else, aligned and
/// within the memory. Use validate() to check whether the plan is valid for a trace. Linear in the size of the plan.
[[nodiscard]] SWAPMM_EXPORT Check check_plan(const Plan& plan);

/// The same plan in version 2. The plan must have passed check_plan().
[[nodiscard]] SWAPMM_EXPORT Plan from_version_1(const swapmm::Plan& plan);

}  // namespace swapmm::v2
