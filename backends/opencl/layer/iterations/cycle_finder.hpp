// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "command.hpp"

namespace swapmm::opencl::layer {

/// Finds the iterations of a program in the sequence of its commands, without marks: a sequence that repeats. Commands
/// are numbers (tokens) that tell what they do, but not with which objects.
///
/// A sequence becomes a cycle when it has run twice in a row and the host reads something in it; when it has run four
/// times in a row, with 128 commands or more, and the host gives something in it; or when it has run eight times in a
/// row, with 2,048 commands or more. So the layers of a network, which repeat within a step, are rarely taken for
/// iterations. A cycle begins behind a read of the host, or else with what the host gives. It is recognized wherever it
/// comes again, so other commands may come in between. What is mostly cycles that follow plans, and moves little beside
/// them, becomes no cycle of its own: it would have to be observed anew.
///
/// Time: a few hash operations per command; some times the length of a cycle when it is found. Memory: at most 4 MB,
/// and 8 bytes for each command of at most 8 cycles.
class CycleFinder {
 public:
  CycleFinder();

  /// What the next command is.
  struct Step {
    bool leaves = false;  ///< the current iteration has ended early, before this command
    bool begins = false;  ///< a new iteration begins with it
    bool ends = false;    ///< the current iteration ends with it
  };
  /// `moved`: bytes copied between device and host, by all commands before this one.
  [[nodiscard]] Step next(std::uint64_t token, HostPart host = HostPart::none, std::uint64_t moved = 0);

  /// The token of a command to come, if the program goes on as it did: `ahead` commands after the next one.
  [[nodiscard]] std::optional<std::uint64_t> expected(std::size_t ahead) const;

  /// The iteration that ends with the last command followed a plan.
  void followed();
  /// Ends the current iteration for a reason that is not in the sequence.
  void leave() { current_ = none; }

  /// Cycles found so far, also those that were forgotten.
  [[nodiscard]] std::uint64_t found() const { return found_; }
  /// Commands of the longest cycle that is known.
  [[nodiscard]] std::size_t longest() const;

  static constexpr std::size_t longest_period = std::size_t{1} << 15U;
  static constexpr std::size_t most_cycles = 8;

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  /// Commands up to and including one.
  struct Count {
    std::uint32_t reads = 0;
    std::uint32_t gives = 0;
    std::uint64_t moved = 0;  ///< without the one itself
  };
  struct Cycle {
    std::vector<std::uint64_t> tokens;
    bool after_read = false;  // it begins behind a read of the host
    // Whole iterations since the last one that followed a plan; none: there was none.
    std::size_t unplanned = none;
    std::uint64_t used = 0;
  };

  [[nodiscard]] std::uint64_t at(std::uint64_t position) const { return tokens_[position % tokens_.size()]; }
  [[nodiscard]] Count counted(std::uint64_t position) const { return counts_[position % counts_.size()]; }
  void remember(std::uint64_t token, HostPart host, std::uint64_t moved);
  void follow_period(std::uint64_t token);
  [[nodiscard]] bool is_cycle() const;
  [[nodiscard]] HostPart mark_of_period() const;
  [[nodiscard]] bool is_mostly_planned(const std::vector<std::uint64_t>& tokens, std::size_t first) const;
  void add_cycle();
  [[nodiscard]] std::size_t first_of_period() const;
  [[nodiscard]] Step go_on(std::uint64_t token);
  bool enter(std::uint64_t token);
  bool change_cycle(std::uint64_t token);

  // The last commands.
  std::vector<std::uint64_t> tokens_;  // ring
  std::vector<Count> counts_;          // ring
  std::uint64_t count_ = 0;            // commands so far
  bool read_before_ = true;            // the previous command was a read of the host

  // The last place of each context of four commands.
  struct Place {
    std::uint64_t context = 0;
    std::uint64_t position = 0;
  };
  std::vector<Place> places_;

  std::size_t period_ = 0;     // candidate: the commands are those of so many commands before
  std::size_t run_ = 0;        // for so many commands now
  bool period_known_ = false;  // the candidate was made a cycle

  std::vector<Cycle> cycles_;
  std::size_t current_ = none;  // the cycle that the program is in
  std::size_t position_ = 0;    // of the next command in it; 0: between two iterations
  std::uint64_t found_ = 0;
};

}  // namespace swapmm::opencl::layer
