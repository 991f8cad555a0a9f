// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/plan.hpp>

namespace swapmm::v2::planning {

/// Writes commands with waits such that everything that concerns one memory happens one after another: commands in the
/// order in which they are added, operations between them. Operations on different engines of a memory run side by side
/// as far as they do not conflict.
class CommandChain {
 public:
  CommandChain(std::size_t memories, std::size_t operations) : memories_(memories), operations_(operations) {}

  /// Adds a command that concerns these memories.
  void add(Command command, std::initializer_list<MemoryId> concerned) {
    for (const MemoryId memory : concerned) {
      const State& state = memories_[index(memory)];
      if (state.command) add_wait(command, *state.command);
      for (const auto& [engine, wait] : state.operations) add_wait(command, wait);
    }
    const auto at = static_cast<std::int32_t>(commands_.size());
    for (const MemoryId memory : concerned) memories_[index(memory)] = {Wait{Wait::On::command, false, at}, {}};
    commands_.push_back(std::move(command));
  }

  /// The operation comes after the commands so far that concern the memory of its engine.
  void run(OperationId operation, EngineId engine, MemoryId memory) {
    State& state = memories_[index(memory)];
    const auto same_engine = [&](const auto& entry) { return entry.first == engine; };
    // Behind another operation of its engine, it waits for these already.
    if (std::ranges::none_of(state.operations, same_engine) && state.command) {
      if (!state.command->previous) {
        add_before(commands_[static_cast<std::size_t>(state.command->index)], static_cast<std::uint32_t>(operation));
      } else {
        // The command is of the iteration before, which has the same commands.
        of_next_.emplace_back(state.command->index, static_cast<std::uint32_t>(index(operation) + operations_));
      }
    }
    std::erase_if(state.operations, same_engine);
    state.operations.emplace_back(engine, after_operation(operation));
  }

  /// Begins the next iteration, which will have the same commands. Returns those of this one.
  std::vector<Command> next_iteration() {
    for (const auto& [command, operation] : of_next_) {
      if (static_cast<std::size_t>(command) < commands_.size()) {
        add_before(commands_[static_cast<std::size_t>(command)], operation);
      }
    }
    of_next_.clear();
    for (State& state : memories_) {
      if (state.command && state.command->previous) state.command.reset();  // memories that no command concerns
      if (state.command) state.command->previous = true;
      std::erase_if(state.operations, [](const auto& entry) { return entry.second.index < 0; });
      for (auto& [engine, wait] : state.operations) wait.index -= static_cast<std::int32_t>(operations_);
    }
    return std::exchange(commands_, {});
  }

 private:
  struct State {
    std::optional<Wait> command;                          // the last one
    std::vector<std::pair<EngineId, Wait>> operations{};  // the last one on each engine since then
  };

  static void add_wait(Command& command, const Wait& wait) {
    if (std::ranges::find(command.after, wait) == command.after.end()) command.after.push_back(wait);
  }
  static void add_before(Command& command, std::uint32_t operation) {
    auto& list = command.before_operations;
    if (std::ranges::find(list, operation) == list.end()) list.push_back(operation);
  }

  std::vector<State> memories_;
  std::size_t operations_;
  std::vector<Command> commands_;
  std::vector<std::pair<std::int32_t, std::uint32_t>> of_next_;  // commands, and operations of the next iteration
};

}  // namespace swapmm::v2::planning
