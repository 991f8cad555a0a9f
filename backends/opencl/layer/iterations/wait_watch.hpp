// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

namespace swapmm::opencl::layer {

/// Watches commands that are not held back, to learn what the program's waits will let go once such commands are. Used
/// for SWAPMM_WAIT=values: else each wait lets everything go. Where it cannot know, it takes it that more is let go.
class WaitWatch {
 public:
  /// The commands that are watched at a time; as many are held back at most.
  static constexpr std::size_t most_commands = 8192;

  struct Command {
    std::vector<const void*> changes;  ///< buffers
    const void* read = nullptr;        ///< all that it does is to copy from this buffer to the host
    bool host_sees = false;            ///< a wait of the host lets it go, or what it reads
    bool has_buffers = false;          ///< so it is an operation of the runtime
  };

  void called(Command command) { commands_.push_back(std::move(command)); }
  [[nodiscard]] bool is_full() const { return commands_.size() > most_commands; }
  /// Lets the older half go.
  void let_half_go() { let_go(commands_.size() / 2); }

  void let_all_go() { commands_.clear(); }
  /// Lets go what the host waits for.
  void let_go_for_host() {
    std::size_t needed = 0;
    for (std::size_t i = 0; i < commands_.size(); ++i) {
      if (commands_[i].host_sees && needed <= i) needed = std::max(needed, needed_by(i));
    }
    let_go(needed);
    for (Command& command : commands_) {
      if (command.read == nullptr) continue;
      command.read = nullptr;  // done early
      command.host_sees = false;
    }
  }

  /// The operations that would still be held back.
  [[nodiscard]] std::size_t operations() const {
    return static_cast<std::size_t>(
        std::count_if(commands_.begin(), commands_.end(), [](const Command& command) { return command.has_buffers; }));
  }

 private:
  // How many of the oldest commands must run before the host has what a command does.
  [[nodiscard]] std::size_t needed_by(std::size_t place) const {
    const void* const read = commands_[place].read;
    if (read == nullptr) return place + 1;
    for (; place != 0; --place) {
      const std::vector<const void*>& changes = commands_[place - 1].changes;
      if (std::find(changes.begin(), changes.end(), read) != changes.end()) break;
    }
    return place;
  }

  void let_go(std::size_t count) {
    commands_.erase(commands_.begin(), commands_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  std::deque<Command> commands_;
};

}  // namespace swapmm::opencl::layer
