// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <swapmm/plan/v2/relaxation/solver/sparse_program.hpp>
#include <swapmm/plan/v2/relaxation/store_model.hpp>
#include <swapmm/plan/v2/relaxation/store_prices.hpp>

namespace swapmm::v2::planning {

/// Operations in groups, in the order of the iteration.
struct OperationGroups {
  std::vector<std::uint32_t> group_of;  ///< per operation
  std::vector<std::uint32_t> members;   ///< per group: how many operations it has

  [[nodiscard]] std::size_t size() const { return members.size(); }
};

/// Makes this many groups, about equal in the mean of their share of time and of operations. Some may be empty.
[[nodiscard]] OperationGroups make_groups(const StoreModel& model, std::uint32_t groups);

/// The best mixture of what values may do, and its prices.
struct MasterSolution {
  bool is_solved = false;  ///< to the tolerance
  double time = 0;         ///< of the iteration, nanoseconds, about; what is known not to fit costs time, too
  StorePrices prices;
  std::vector<double> stall;  ///< per group, nanoseconds
  /// Per clean window, then per dirty window, and store: how much of it is away there, 0 to 1 (more if choices
  /// overlap).
  std::vector<std::vector<double>> clean;
  std::vector<std::vector<double>> dirty;
  std::vector<std::vector<double>>
      shares;  ///< of values that mix as one, then of what they are known to do; add up to 1
};

/// One choice for each value. Per clean window, then per dirty window: the store where it is away; none: it stays.
struct RoundedChoices {
  std::vector<std::optional<std::size_t>> clean;
  std::vector<std::optional<std::size_t>> dirty;
};

/// The program of docs/planning.md for several stores, in which each value mixes the choices that are known of it (a
/// restricted master problem of Dantzig and Wolfe). Room and space count at one operation of each group, the one with
/// most excess, and what copies share counts for the group as a whole: so prices are those of groups, too. Values whose
/// times away are the same groups mix as one.
class StoreMaster {
 public:
  /// Each value may stay where it is, if it can. `stalls_apart`: copies in stalls and those beside operations count
  /// apart, which is tighter, with nearly twice the rows. Refers to the model.
  StoreMaster(const StoreModel& model, const OperationGroups& groups, bool stalls_apart);

  /// About how many products a step of solve() takes.
  [[nodiscard]] double work() const;

  /// Adds choices, as StoreResponse has them. Returns how many were not known.
  std::size_t add(std::span<const StoreChoice> choices);
  /// Solves the program of what is known.
  [[nodiscard]] MasterSolution solve(double tolerance) const;
  /// Lets each value do one thing, so that all together need about the same room, space and copies as the mixture: one
  /// value after another, the large ones first, does what is nearest to that with those before. `seed` varies the
  /// order.
  [[nodiscard]] RoundedChoices round(const MasterSolution& solution, std::uint64_t seed) const;
  /// The same prices everywhere: `room` for a byte at all crowded operations together, counted in copies of a byte on
  /// the slowest link.
  [[nodiscard]] StorePrices uniform(double room) const;

 private:
  struct Column {
    std::vector<SparseProgram::Entry> entries;
    std::vector<StoreAbsence> absences;
  };

  /// Whether something must be away at the group. Only then it has a row for this.
  [[nodiscard]] bool is_crowded(std::size_t group) const { return excess_[group] > 0; }
  /// Whether the store could be full. Only then it has rows for this.
  [[nodiscard]] bool is_limited(std::size_t store) const { return family_of_[store] > 0; }
  [[nodiscard]] std::size_t room_row(std::size_t group) const { return room_row_[group]; }
  [[nodiscard]] std::size_t space_row(std::size_t store, std::size_t group) const {
    return room_rows_ + (family_of_[store] - 1) * duration_.size() + group;
  }
  [[nodiscard]] std::size_t rate_row(std::size_t rate, std::size_t group, bool in_stall) const {
    const std::size_t family = stalls_apart_ && in_stall ? model_.rates.size() + rate : rate;
    return room_rows_ + (limited_ + family) * duration_.size() + group;
  }
  [[nodiscard]] std::size_t rows() const { return rate_row(0, 0, false) + rate_rows(); }
  [[nodiscard]] std::size_t rate_rows() const {
    return (stalls_apart_ ? 2 : 1) * model_.rates.size() * duration_.size();
  }
  [[nodiscard]] std::vector<std::uint32_t> times_away(std::size_t value) const;
  [[nodiscard]] Column column_of(const StoreChoice& choice) const;
  /// Whether the value has clean windows, and the position of an absence's among all clean or dirty ones.
  [[nodiscard]] std::pair<bool, std::size_t> window_of(std::size_t value, const StoreAbsence& absence) const;
  [[nodiscard]] StorePrices no_prices() const;
  void set_start(SparseProgram& program) const;
  [[nodiscard]] std::vector<std::uint32_t> next_rows() const;

  const StoreModel& model_;
  OperationGroups groups_;
  bool stalls_apart_;
  std::vector<std::size_t> room_row_;   // per group that is crowded
  std::size_t room_rows_ = 0;           // the number of these
  std::vector<std::size_t> family_of_;  // per store: of its rows, from 1 on; 0: it has none
  std::size_t limited_ = 0;             // stores with rows
  double dearest_ = 0;                  // nanoseconds that a byte takes on the slowest link
  double time_ = 1;                     // nanoseconds of a unit of time
  double byte_ = 1;                     // units of a byte
  std::vector<double> duration_;        // per group
  std::vector<double> excess_;          // per group: the most of its operations
  std::vector<std::uint32_t> crowded_;  // per group: that operation
  /// Values that mix as one.
  struct Block {
    double bytes = 0;
    std::uint32_t first = 0;  ///< the first group of these, counted on in later iterations
    std::uint32_t last = 0;   ///< the last one
    std::vector<Column> columns;
  };
  std::vector<std::uint32_t> block_of_;  // per value; no_block: nothing is decided
  std::vector<Block> blocks_;
};

}  // namespace swapmm::v2::planning
