// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/store_program.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include <swapmm/plan/v2/relaxation/solver/sparse_program.hpp>

namespace swapmm::v2::planning {
namespace {

using swapmm::planning::relaxation::SwapModel;
using swapmm::planning::relaxation::Window;

/// Windows that are alike in groups. Groups are counted on in later iterations.
struct Block {
  bool is_clean = false;
  bool must_arrive = false;
  int write = 0;         ///< the first group in which it may be copied out
  int first = 0;         ///< the first group in which it may return
  int last = 0;          ///< the last one
  int first_row = 0;     ///< the first group whose crowded operation is within the window
  int last_row = 0;      ///< the last one
  bool is_free = false;  ///< another window pays for the copy out
  int shares = 1;        ///< the number of windows that share the copy out, or the space if clean

  friend auto operator<=>(const Block&, const Block&) = default;
};

class ProgramMaker {
 public:
  ProgramMaker(const StoreModel& model, const OperationGroups& groups, const PayingStores& paying)
      : model_(model), grouping_(groups), paying_(paying), groups_(static_cast<int>(groups.size())) {
    const SwapModel& swaps = model.swaps;
    duration_.assign(groups.size(), 0.0);
    excess_.assign(groups.size(), 0.0);
    crowded_.assign(groups.size(), 0);
    std::vector<bool> seen(groups.size(), false);
    for (std::uint32_t i = 0; i < swaps.operations; ++i) {
      const std::uint32_t g = groups.group_of[i];
      duration_[g] += swaps.duration[i];
      if (!seen[g] || swaps.excess[i] > excess_[g]) {
        excess_[g] = swaps.excess[i];
        crowded_[g] = i;
      }
      seen[g] = true;
    }
    for (const SharedRate& rate : model.rates) {
      for (const double cost : rate.in) dearest_ = std::max(dearest_, cost);
      for (const double cost : rate.out) dearest_ = std::max(dearest_, cost);
    }
    time_ = std::max(1.0, swaps.compute / std::max(1.0, static_cast<double>(groups.size())));
    // A byte counts as the time that it takes on the slowest link.
    byte_ = dearest_ / time_;
    list_blocks();
  }

  GroupSolution solve(std::size_t most_unknowns) {
    GroupSolution prices;
    prices.crowded = crowded_;
    std::size_t unknowns = 0;
    for (const auto& [block, bytes] : blocks_) {
      const auto ins = static_cast<std::size_t>(block.last - block.first) + 1;
      const auto outs = static_cast<std::size_t>(block.last - block.write) + 1;
      unknowns += model_.stores.size() * (block.is_free ? ins : ins * outs);
    }
    if (unknowns > most_unknowns || blocks_.empty()) return prices;
    write_rows();
    for (const auto& [block, bytes] : blocks_) write_block(block, bytes * byte_);
    write_others();
    const SparseSolution solution = solve_program(program_, 1e-5, 60);
    prices.is_solved = true;
    const auto read = [&](std::size_t family, double sign, double unit) {
      std::vector<double> list(static_cast<std::size_t>(groups_));
      for (int g = 0; g < groups_; ++g) {
        list[static_cast<std::size_t>(g)] = std::max(0.0, sign * unit * price(solution, family, g));
      }
      return list;
    };
    prices.room = read(0, 1, dearest_);
    for (std::size_t r = 0; r < model_.rates.size(); ++r) prices.rates.push_back(read_rate(solution, r));
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      prices.space.push_back(model_.stores[s].space ? read(family_of(s), -1, dearest_)
                                                    : std::vector<double>(static_cast<std::size_t>(groups_)));
    }
    for (int g = 0; g < groups_; ++g) {
      prices.stall.push_back(time_ * solution.x[stalls_[static_cast<std::size_t>(g)]]);
    }
    // How much of each block is in which store.
    std::vector<std::vector<double>> away(blocks_.size(), std::vector<double>(model_.stores.size()));
    for (std::size_t i = 0; i < store_of_.size(); ++i) {
      if (store_of_[i] < 0) continue;
      const std::uint32_t b = program_.block[i];
      away[b][static_cast<std::size_t>(store_of_[i])] += solution.x[i] / program_.amounts[b];
    }
    const auto look_up = [&](const std::vector<std::optional<Block>>& windows) {
      std::vector<std::vector<double>> list;
      for (const std::optional<Block>& window : windows) {
        const auto at = window ? blocks_.find(*window) : blocks_.end();
        if (at == blocks_.end()) {
          list.emplace_back(model_.stores.size(), 0.0);
        } else {
          list.push_back(away[static_cast<std::size_t>(std::distance(blocks_.begin(), at))]);
        }
      }
      return list;
    };
    prices.clean = look_up(clean_);
    prices.dirty = look_up(dirty_);
    return prices;
  }

 private:
  [[nodiscard]] int group_at(std::uint32_t part) const {
    const std::uint32_t parts = model_.swaps.parts();
    return static_cast<int>(grouping_.group_of[part % parts / 2]) + static_cast<int>(part / parts) * groups_;
  }
  [[nodiscard]] std::uint32_t row_of(int group) const {
    return 2 * crowded_[static_cast<std::size_t>(group % groups_)] +
           static_cast<std::uint32_t>(group / groups_) * model_.swaps.parts();
  }

  std::optional<Block> add(const Window& window, bool is_clean, std::uint32_t write_part, int shares, bool is_free) {
    if (window.bytes <= 0 || (window.is_empty() && !window.is_arrival)) return std::nullopt;
    Block block;
    block.is_clean = is_clean;
    block.must_arrive = window.is_arrival;
    block.first = group_at(window.first_part());
    block.last = group_at(window.last_part);
    block.write = is_clean ? block.first : group_at(write_part);
    block.first_row = row_of(block.first) >= window.first_boundary ? block.first : block.first + 1;
    block.last_row = row_of(block.last) <= window.last_part ? block.last : block.last - 1;
    block.last_row = std::min(block.last_row, block.first_row + groups_ - 1);
    block.write = std::max(block.write, block.last - groups_);
    block.shares = shares;
    block.is_free = is_free;
    if (block.first_row > block.last_row && !block.must_arrive) return std::nullopt;
    blocks_[block] += window.bytes;
    return block;
  }

  void list_blocks() {
    clean_.resize(model_.swaps.clean.size());
    dirty_.resize(model_.swaps.dirty.size());
    for (const CleanValue& value : model_.clean) {
      for (const std::uint32_t w : value.windows) {
        const int shares = value.is_in_host ? 0 : static_cast<int>(value.windows.size());
        clean_[w] = add(model_.swaps.clean[w], true, 0, shares, false);
      }
    }
    for (std::size_t v = 0; v < model_.swaps.values.size(); ++v) {
      const auto& value = model_.swaps.values[v];
      const auto windows = std::span(model_.swaps.dirty).subspan(value.first_window, value.windows);
      const auto real = std::ranges::count_if(windows, [](const Window& window) { return !window.is_empty(); });
      for (std::uint32_t i = 0; i < value.windows; ++i) {
        const bool is_decided = !paying_.main.empty();
        const bool is_free = is_decided && paying_.others_are_free[v] && paying_.main[v] != i;
        const int shares = is_decided ? 1 : static_cast<int>(real);
        dirty_[value.first_window + i] = add(windows[i], false, value.write_part, shares, is_free);
      }
    }
  }

  // Rows of room and space are differences of neighbours, so a range has two or three entries.
  void write_rows() {
    const std::size_t families = family_of(model_.stores.size());
    difference_rows_ = families * static_cast<std::size_t>(groups_);
    program_.right_side.assign(difference_rows_ + model_.rates.size() * static_cast<std::size_t>(groups_), 0.0);
    for (int g = 0; g < groups_; ++g) {
      const auto at = static_cast<std::size_t>(g);
      const double before = g > 0 ? excess_[at - 1] : 0;
      program_.right_side[at] = (std::max(excess_[at], lowest()) - (g > 0 ? std::max(before, lowest()) : 0)) * byte_;
      for (std::size_t s = 0; s < model_.stores.size(); ++s) {
        if (g == 0 && model_.stores[s].space)
          program_.right_side[row(family_of(s), 0)] = *model_.stores[s].space * byte_;
      }
      for (std::size_t r = 0; r < model_.rates.size(); ++r) program_.right_side[rate_row(r, g)] = duration_[at] / time_;
    }
  }
  /// Rooms that are not crowded have a row, too; how empty they are does not matter.
  [[nodiscard]] static double lowest() { return 0; }
  /// Room is family 0, and each limited store is one.
  [[nodiscard]] std::size_t family_of(std::size_t store) const {
    std::size_t family = 1;
    for (std::size_t s = 0; s < store; ++s) family += model_.stores[s].space ? 1 : 0;
    return family;
  }
  [[nodiscard]] std::size_t row(std::size_t family, int g) const {
    return family * static_cast<std::size_t>(groups_) + static_cast<std::size_t>(g);
  }
  [[nodiscard]] std::size_t rate_row(std::size_t rate, int g) const {
    return difference_rows_ + rate * static_cast<std::size_t>(groups_) + static_cast<std::size_t>(g % groups_);
  }
  void entry(std::size_t row, double value) {
    for (std::size_t e = program_.first.back(); e < program_.entries.size(); ++e) {
      if (program_.entries[e].row != row) continue;
      program_.entries[e].value += value;
      return;
    }
    program_.entries.push_back({static_cast<std::uint32_t>(row), value});
  }
  /// A range of groups on the circle.
  void range(std::size_t family, int first, int last, double value) {
    if (first > last) return;
    if (last - first + 1 >= groups_) return entry(row(family, 0), value);
    const int a = first % groups_;
    const int b = last % groups_;
    entry(row(family, a), value);
    if (b + 1 < groups_) entry(row(family, b + 1), -value);
    if (a > b) entry(row(family, 0), value);
  }
  void copy(std::size_t store, int group, bool in, double part) {
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      const double cost = (in ? model_.rates[r].in : model_.rates[r].out)[store] / dearest_;
      if (cost > 0) entry(rate_row(r, group), cost * part);
    }
  }

  void write_block(const Block& block, double amount) {
    const auto id = static_cast<std::uint32_t>(program_.amounts.size());
    program_.amounts.push_back(amount);
    const auto add_unknown = [&](int store) {
      // Of solutions that take as long, one without needless moves.
      constexpr double small = 1e-4;
      program_.add_unknown(store < 0 ? 0 : small, id);
      store_of_.push_back(store);
    };
    if (!block.must_arrive) add_unknown(-1);
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      const bool is_limited = model_.stores[s].space.has_value();
      for (int in = block.first; in <= block.last; ++in) {
        const int last_row = std::min(block.last_row, in);
        if (block.is_clean) {
          if (block.shares == 0 && model_.host && s != *model_.host) continue;
          range(0, block.first_row, last_row, 1);
          if (is_limited && block.shares > 0) range(family_of(s), 0, groups_ - 1, 1.0 / block.shares);
          copy(s, in, true, 1);
          add_unknown(static_cast<int>(s));
          if (!is_limited || block.must_arrive) continue;
        }
        if (block.is_free) {
          if (block.first_row > last_row) continue;
          range(0, block.first_row, last_row, 1);
          if (is_limited) range(family_of(s), block.first_row, last_row, 1);
          copy(s, in, true, 1);
          add_unknown(static_cast<int>(s));
          continue;
        }
        for (int out = block.write; out <= in; ++out) {
          const int first_row = std::max(block.first_row, out);
          if (first_row > last_row) break;
          range(0, first_row, last_row, 1);
          if (is_limited) range(family_of(s), first_row, last_row, 1);
          copy(s, in, true, 1);
          copy(s, out, false, block.is_clean ? 1 : 1.0 / block.shares);
          add_unknown(static_cast<int>(s));
        }
      }
    }
  }

  void write_others() {
    constexpr std::uint32_t none = SparseProgram::no_block;
    constexpr double missing_price = 50;
    const auto single = [&](std::size_t family, int g, double value, double cost) {
      range(family, g, g, value);
      program_.add_unknown(cost, none);
    };
    for (int g = 0; g < groups_; ++g) {
      single(0, g, -1, 0);             // more away than necessary
      single(0, g, 1, missing_price);  // less than necessary
      for (std::size_t s = 0; s < model_.stores.size(); ++s) {
        if (model_.stores[s].space) single(family_of(s), g, 1, 0);  // free space
      }
      for (std::size_t r = 0; r < model_.rates.size(); ++r) {
        entry(rate_row(r, g), 1);
        program_.add_unknown(0, none);  // idle time
      }
      for (std::size_t r = 0; r < model_.rates.size(); ++r) entry(rate_row(r, g), -1);
      stalls_.push_back(program_.unknowns());
      program_.add_unknown(1, none);  // the stall, for all rates together
    }
  }

  /// The price of a group, from those of differences.
  [[nodiscard]] double price(const SparseSolution& solution, std::size_t family, int g) const {
    const double next = g + 1 < groups_ ? solution.prices[row(family, g + 1)] : 0.0;
    return solution.prices[row(family, g)] - next;
  }
  [[nodiscard]] std::vector<double> read_rate(const SparseSolution& solution, std::size_t rate) const {
    std::vector<double> list;
    list.reserve(static_cast<std::size_t>(groups_));
    for (int g = 0; g < groups_; ++g) list.push_back(std::max(0.0, -solution.prices[rate_row(rate, g)]));
    return list;
  }

  const StoreModel& model_;
  const OperationGroups& grouping_;
  const PayingStores& paying_;
  int groups_;
  double dearest_ = 0;  // nanoseconds that a byte takes on the slowest link
  double time_ = 1;     // nanoseconds of a unit of time
  double byte_ = 1;     // units of a byte
  std::vector<double> duration_;
  std::vector<double> excess_;
  std::vector<std::uint32_t> crowded_;
  std::map<Block, double> blocks_;  // with their bytes
  SparseProgram program_;
  std::size_t difference_rows_ = 0;
  std::vector<int> store_of_;                // of the unknowns of blocks; -1: it stays
  std::vector<std::size_t> stalls_;          // the unknowns
  std::vector<std::optional<Block>> clean_;  // of each window
  std::vector<std::optional<Block>> dirty_;
};

}  // namespace

OperationGroups make_groups(const StoreModel& model, std::uint32_t groups) {
  const SwapModel& swaps = model.swaps;
  const std::uint32_t n = swaps.operations;
  OperationGroups made;
  made.group_of.assign(n, 0);
  made.members.assign(groups, 0);
  double passed = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    const double share = 0.5 * (passed / std::max(swaps.compute, 1.0) + static_cast<double>(i) / n);
    made.group_of[i] = groups == n ? i : std::min(groups - 1, static_cast<std::uint32_t>(share * groups));
    passed += swaps.duration[i];
    ++made.members[made.group_of[i]];
  }
  return made;
}

GroupSolution solve_groups(const StoreModel& model, const OperationGroups& groups, const PayingStores& paying,
                           std::size_t most_unknowns) {
  return ProgramMaker(model, groups, paying).solve(most_unknowns);
}

}  // namespace swapmm::v2::planning
