// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/grid_refinement.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace swapmm::planning::relaxation {
namespace {

const Window& window_of(const SwapModel& model, const BlockMember& member) {
  return member.is_clean ? model.clean[member.window] : model.dirty[member.window];
}

/// The part of a block that is off the device, per group. It includes one group before the block's rows and one after
/// them, for operations of windows that begin or end inside a group.
struct AwayByGroup {
  int first = 0;
  std::vector<double> part;
};

AwayByGroup away_by_group(const CoarseProgram& program, const OptionBlock& block, const ProgramSolution& solution) {
  AwayByGroup away{block.first_row - 1, {}};
  away.part.assign(static_cast<std::size_t>(block.last_row - block.first_row) + 4, 0.0);
  for_each_option(program, block, [&](std::size_t option, int out, int in, int first_row, int last_row) {
    if (in < 0 && first_row > last_row) return;
    const int first = out < 0 ? away.first : std::max(away.first, program.first_freed(out));
    const int last = in < 0 ? block.last_row + 1 : std::min(block.last_row + 1, in);
    if (first > last) return;
    away.part[static_cast<std::size_t>(first - away.first)] += solution.options[option];
    away.part[static_cast<std::size_t>(last + 1 - away.first)] -= solution.options[option];
  });
  double sum = 0;
  for (double& part : away.part) {
    sum += part;
    part = std::clamp(sum / block.amount, 0.0, 1.0);
  }
  away.part.pop_back();
  return away;
}

/// For each operation the bytes that are off the device in the solution.
std::vector<double> bytes_away(const SwapModel& model, const SolvedGrid& solved) {
  const SwapGrid& grid = solved.grid;
  const int groups = grid.size();
  const std::uint32_t n = model.operations;
  std::vector<double> change(2 * std::size_t{n} + 1, 0.0);
  const auto add_member = [&](const Window& window, int turns, const AwayByGroup& away) {
    // Slots of operations. `turns` adds what was subtracted from the block's groups.
    const std::uint32_t first = window.first_boundary / 2;
    const std::uint32_t end = (window.last_part + 1) / 2;
    for (std::size_t i = 0; i < away.part.size(); ++i) {
      const int group = away.first + static_cast<int>(i) + turns * groups;
      if (group < 0) continue;
      const PartGroup& members = grid.groups[static_cast<std::size_t>(group % groups)];
      const std::uint32_t start = members.first_operation + static_cast<std::uint32_t>(group / groups) * n;
      const std::uint32_t from = std::max(first, start);
      const std::uint32_t to = std::min(end, start + members.operations);
      if (from >= to) continue;
      const std::uint32_t shift = from / n * n;
      change[from - shift] += window.bytes * away.part[i];
      change[to - shift] -= window.bytes * away.part[i];
    }
  };
  for (std::size_t b = 0; b < solved.program.members.size(); ++b) {
    const OptionBlock& block = solved.program.program.blocks[b];
    if (block.first_row > block.last_row) continue;
    const AwayByGroup away = away_by_group(solved.program.program, block, solved.solution);
    for (const BlockMember& member : solved.program.members[b]) {
      const Window& window = window_of(model, member);
      add_member(window, (grid.group(window.last_part) - block.last_in) / groups, away);
    }
  }
  std::vector<double> bytes(n, 0.0);
  double sum = 0;
  for (std::uint32_t slot = 0; slot < 2 * n; ++slot) {
    sum += change[slot];
    bytes[slot % n] += sum;
  }
  return bytes;
}

/// Times of copies that, in the grid, may run at any time of a group, but really have only a part of it.
struct TightCopies {
  std::vector<double> in_by;     ///< per operation: copies in that must end before the next operation starts
  std::vector<double> out_from;  ///< per operation: copies out that begin after it
};

TightCopies find_tight_copies(const SwapModel& model, const SolvedGrid& solved) {
  std::vector<std::uint32_t> value_of(model.dirty.size());
  for (std::uint32_t v = 0; v < model.values.size(); ++v) {
    const WrittenValue& value = model.values[v];
    std::fill_n(value_of.begin() + value.first_window, value.windows, v);
  }
  TightCopies tight{std::vector<double>(model.operations, 0.0), std::vector<double>(model.operations, 0.0)};
  for (std::size_t b = 0; b < solved.program.members.size(); ++b) {
    const OptionBlock& block = solved.program.program.blocks[b];
    double last_in = 0;
    double first_out = 0;
    for_each_option(solved.program.program, block, [&](std::size_t option, int out, int in, int, int) {
      const double part = solved.solution.options[option] / block.amount;
      if (in == block.last_in) last_in += part;
      if (!block.is_clean && out == block.first_out) first_out += part;
    });
    for (const BlockMember& member : solved.program.members[b]) {
      const Window& window = window_of(model, member);
      tight.in_by[window.last_part / 2 % model.operations] += window.copy_in * last_in;
      if (block.is_clean) continue;
      const WrittenValue& value = model.values[value_of[member.window]];
      if (solved.grid.group(value.write_part) % solved.grid.size() != block.first_out % solved.grid.size()) continue;
      tight.out_from[value.write_part / 2] += value.copy_out * first_out;
    }
  }
  return tight;
}

class Refiner {
 public:
  Refiner(const SwapModel& model, const SolvedGrid& solved)
      : model_(model), solved_(solved), groups_(solved.grid.groups), cuts_(solved.cuts) {
    before_.assign(model.operations + 1, 0.0);
    for (std::uint32_t i = 0; i < model.operations; ++i) before_[i + 1] = before_[i] + model.duration[i];
  }

  GridCuts refine(const BoundEffort& effort) {
    if (effort.cuts_overrun_room) cut_overrun_rows();
    if (effort.overrun_links > 0) cut_overrun_links(effort.overrun_links);
    if (effort.full_groups > 0) cut_full_groups(effort.full_groups);
    if (effort.cuts_changing_prices) cut_where_prices_change();
    std::vector<std::uint32_t>& cuts = cuts_.operations;
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return std::move(cuts_);
  }

 private:
  void cut(std::uint32_t operation) {
    if (operation > 0 && operation < model_.operations) cuts_.operations.push_back(operation);
  }
  void cut_around(std::uint32_t operation) {
    cut(operation);
    cut(operation + 1);
  }
  /// Cuts the group at the operation at which half of its time is over.
  void halve(const PartGroup& group) {
    if (group.operations < 2) return;
    const std::uint32_t end = group.first_operation + group.operations;
    const double middle = (before_[group.first_operation] + before_[end]) / 2;
    const auto at = std::lower_bound(before_.begin(), before_.end(), middle);
    cut(std::clamp(static_cast<std::uint32_t>(at - before_.begin()), group.first_operation + 1, end - 1));
  }

  void cut_overrun_rows() {
    const std::vector<double> away = bytes_away(model_, solved_);
    for (const PartGroup& group : groups_) {
      if (group.operations < 2) continue;
      double worst = 1e-3 * model_.room;
      std::uint32_t worst_at = model_.operations;
      for (std::uint32_t i = group.first_operation; i < group.first_operation + group.operations; ++i) {
        const double overrun = model_.excess[i] - away[i];
        if (overrun <= worst) continue;
        worst = overrun;
        worst_at = i;
      }
      if (worst_at < model_.operations) cut_around(worst_at);
    }
  }

  /// Cuts at operations before which copies in are due that take more than the group's time up to it, and at operations
  /// after which copies out begin that take more than the rest. The stall of the group counts for both.
  void cut_overrun_links(std::size_t most) {
    const TightCopies tight = find_tight_copies(model_, solved_);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const PartGroup& group = groups_[g];
      const std::uint32_t first = group.first_operation;
      const std::uint32_t end = first + group.operations;
      const double stall = solved_.solution.stall[g] * solved_.units.time;
      double due = 0;
      cut_worst(group, stall, [&](std::uint32_t i) {
        due += tight.in_by[i - 1];
        return due - (before_[i] - before_[first]);
      });
      double begun = 0;
      for (std::uint32_t i = first; i < end; ++i) begun += tight.out_from[i];
      cut_worst(group, stall, [&](std::uint32_t i) {
        if (i > first + 1) begun -= tight.out_from[i - 2];
        return begun - (before_[end] - before_[i]);
      });
    }
    std::sort(overruns_.begin(), overruns_.end());
    for (std::size_t i = 0; i < std::min(most, overruns_.size()); ++i) cut(overruns_[i].second);
  }

  /// Lists the operation inside the group that exceeds `allowed` most, if the excess is large.
  template <class Overrun>
  void cut_worst(const PartGroup& group, double allowed, Overrun overrun) {
    double worst = allowed + 1e-4 * solved_.units.time;
    std::uint32_t worst_at = 0;
    for (std::uint32_t i = group.first_operation + 1; i < group.first_operation + group.operations; ++i) {
      const double value = overrun(i);
      if (value <= worst) continue;
      worst = value;
      worst_at = i;
    }
    if (worst_at > 0) overruns_.emplace_back(allowed - worst, worst_at);
  }

  void cut_full_groups(std::size_t count) {
    std::vector<std::pair<double, std::size_t>> full;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      constexpr double has_a_price = 1e-3;
      if (groups_[g].operations < 2) continue;
      if (std::max(solved_.solution.in[g], solved_.solution.out[g]) <= has_a_price) continue;
      full.emplace_back(-(solved_.program.program.duration[g] + solved_.solution.stall[g]), g);
    }
    std::sort(full.begin(), full.end());
    for (std::size_t i = 0; i < std::min(count, full.size()); ++i) halve(groups_[full[i].second]);
  }

  void cut_where_prices_change() {
    const ProgramSolution& prices = solved_.solution;
    const std::size_t count = groups_.size();
    const auto differs = [&](std::size_t a, std::size_t b) {
      constexpr double much = 1e-2;
      return std::abs(prices.in[a] - prices.in[b]) + std::abs(prices.out[a] - prices.out[b]) > much;
    };
    for (std::size_t g = 0; g < count; ++g) {
      if (groups_[g].operations == 0) continue;
      const bool has_room_price = prices.room[g] > 1e-3;
      if (has_room_price) cut_around(groups_[g].row_boundary / 2);
      if (has_room_price || differs(g, (g + 1) % count) || differs(g, (g + count - 1) % count)) halve(groups_[g]);
    }
  }

  const SwapModel& model_;
  const SolvedGrid& solved_;
  const std::vector<PartGroup>& groups_;
  GridCuts cuts_;
  std::vector<std::pair<double, std::uint32_t>> overruns_;  ///< overrun, negated, and operation
  std::vector<double> before_;                              ///< per operation: the time computed before it
};

}  // namespace

PartsAway parts_away(const SwapModel& model, const SolvedGrid& solved) {
  PartsAway parts{std::vector<double>(model.clean.size(), 0.0), std::vector<double>(model.dirty.size(), 0.0)};
  for (std::size_t b = 0; b < solved.program.members.size(); ++b) {
    const OptionBlock& block = solved.program.program.blocks[b];
    double away = 0;
    for_each_option(solved.program.program, block, [&](std::size_t option, int, int, int first_row, int last_row) {
      if (first_row <= last_row) away += solved.solution.options[option];
    });
    const double part = std::clamp(away / block.amount, 0.0, 1.0);
    for (const BlockMember& member : solved.program.members[b]) {
      (member.is_clean ? parts.clean : parts.dirty)[member.window] = part;
    }
  }
  return parts;
}

GridCuts refine(const SwapModel& model, const SolvedGrid& solved, const BoundEffort& effort) {
  return Refiner(model, solved).refine(effort);
}

}  // namespace swapmm::planning::relaxation
