// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <vector>

#include <swapmm/base/bytes.hpp>
#include <swapmm/base/result.hpp>
#include <swapmm/formats/json/name_table.hpp>
#include <swapmm/formats/json/wait_fields.hpp>
#include <swapmm/formats/v2/machine_fields.hpp>
#include <swapmm/plan/v2/plan.hpp>

// Internal: a plan of version 2 while it is read, and what can be checked only when a command or the whole is complete.

namespace swapmm::v2::formats {

/// The fields that only commands of some kinds have.
enum class CommandField : std::uint8_t { tensor, piece, form, memory, link, engine, operation, offset, position };

/// A set of them.
class CommandFields {
 public:
  constexpr CommandFields() = default;
  constexpr CommandFields(std::initializer_list<CommandField> fields) {
    for (const CommandField field : fields) add(field);
  }
  constexpr void add(CommandField field) { bits_ |= 1U << static_cast<unsigned>(field); }
  [[nodiscard]] constexpr bool has(CommandField field) const {
    return (bits_ >> static_cast<unsigned>(field) & 1U) != 0;
  }

 private:
  std::uint32_t bits_ = 0;
};

/// An entry of predicted.links or predicted.memories.
struct PredictedBytes {
  std::uint32_t name = 0;  ///< its number in PlanTarget::links or PlanTarget::memories
  Bytes bytes;
};

/// A plan that is being read. `machine` may come behind the commands, so that ids in places and commands are numbers of
/// names until the end.
struct PlanTarget {
  Plan plan;
  MachineTarget machine;
  json::NameTable memories;
  json::NameTable links;
  json::NameTable engines;
  json::NameTable forms;  ///< a FormId other than plain is a number in it, plus 1
  json::WaitTarget waits;
  /// Of the current command; copied when complete. A growing vector would take six times the shortest text.
  std::deque<std::uint32_t> before;
  CommandFields fields;   ///< those that the current command has
  std::vector<Bytes> at;  ///< of the current division; copied when complete
  std::vector<PredictedBytes> predicted_links;
  std::vector<PredictedBytes> predicted_peaks;
};

/// The offset of a place for which the text has none. Offsets of texts are below 2^62.
inline constexpr Bytes no_offset{~std::uint64_t{0}};

/// Checks that a command that was read has all fields that its kind needs. Those that only other kinds have are
/// ignored: they get their default.
[[nodiscard]] Check complete_command(Command& command, CommandFields fields);

/// Makes `target.plan` complete: moves the machine into it, and makes names the ids of what has these names.
[[nodiscard]] Check complete_plan(PlanTarget& target);

}  // namespace swapmm::v2::formats
