// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/plan/problem/planning_case.hpp>
#include <swapmm/plan/ways.hpp>
#include <swapmm/plan/ways/program/history.hpp>
#include <swapmm/plan/ways/units.hpp>

namespace swapmm::planning {

/// Makes all feature maps of a chain again from a few that are kept, in the least time that there is for so many: each
/// run from a kept value to the next that is needed keeps some values on its way, in the room of those that are needed
/// no more (A. Griewank and A. Walther, "Algorithm 799: revolve", ACM Transactions on Mathematical Software 26, 2000,
/// here for operations of different durations). Exact where each feature map is made from the one before, and needed
/// before it.
class CheckpointChoice {
 public:
  /// Up to this many feature maps; others have no choices.
  static constexpr std::size_t most_maps = 100;

  /// Refers to all arguments. Choices keep up to `most_kept` feature maps. Takes maps^3 x most_kept.
  CheckpointChoice(const Trace& trace, const ValueHistory& history, const PlanningCase& planning,
                   std::size_t most_kept);

  /// The largest number of feature maps that may be kept at a time, beside the one that is needed.
  [[nodiscard]] std::size_t most_kept() const { return most_kept_; }
  /// The replays if up to `kept` feature maps, at most most_kept(), are kept at a time.
  [[nodiscard]] std::vector<Replay> choose(std::size_t kept) const;

 private:
  /// Where a run of feature maps is divided.
  struct Division {
    double time = 0;         ///< of all replays of the run
    std::size_t middle = 0;  ///< the position of the value that is made next: it is kept unless it is the last one
  };

  // Positions count from 1; 0 is what is there without a replay. A run [first, end) has its first value, and needs the
  // others.
  [[nodiscard]] Division& at(std::size_t kept, std::size_t first, std::size_t end) {
    return divisions_[(kept * (count_ + 1) + first) * (count_ + 2) + end];
  }
  [[nodiscard]] const Division& at(std::size_t kept, std::size_t first, std::size_t end) const {
    return divisions_[(kept * (count_ + 1) + first) * (count_ + 2) + end];
  }
  /// The run of the program itself from there on: what it keeps on its way costs nothing.
  [[nodiscard]] std::size_t from(std::size_t kept, std::size_t first) const { return kept * (count_ + 1) + first; }
  void divide(std::size_t kept, std::size_t first, std::size_t end);
  void divide_program(std::size_t kept, std::size_t first);
  void add_run(std::size_t kept, std::size_t first, std::size_t end, std::vector<Replay>& replays) const;

  const Trace& trace_;
  const ValueHistory& history_;
  std::vector<FeatureMap> maps_;
  std::size_t count_ = 0;
  std::size_t most_kept_ = 0;
  std::vector<double> until_;        // per position: what all values up to it take
  std::vector<Division> divisions_;  // per number that is kept, first and end
  std::vector<Division> program_;    // per number that is kept and first
};

}  // namespace swapmm::planning
