// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/relaxation/store_master.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace swapmm::v2::planning {
namespace {

using swapmm::planning::relaxation::SwapModel;
using swapmm::planning::relaxation::Window;

// Of StoreMaster::times_away().
constexpr std::size_t first_of_times = 1;
constexpr std::size_t last_of_times = 2;

/// How often `boundary` of one iteration is in a range of boundaries of two.
double times_in(std::uint32_t boundary, std::uint32_t parts, std::uint32_t first, std::uint32_t last) {
  const auto is_in = [&](std::uint32_t at) { return first <= at && at <= last; };
  return (is_in(boundary) ? 1.0 : 0.0) + (is_in(boundary + parts) ? 1.0 : 0.0);
}

}  // namespace

OperationGroups make_groups(const StoreModel& model, std::uint32_t groups) {
  groups = std::max(1U, groups);
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

StoreMaster::StoreMaster(const StoreModel& model, const OperationGroups& groups, bool stalls_apart)
    : model_(model),
      groups_(groups),
      stalls_apart_(stalls_apart),
      duration_(groups.size()),
      excess_(groups.size()),
      crowded_(groups.size()) {
  // A value may be in a store for two iterations at a time.
  double all = 0;
  for (std::size_t v = 0; v < model.values(); ++v) all += 2 * model.bytes_of(v);
  for (const StoreOfModel& store : model.stores) {
    family_of_.push_back(store.space && *store.space < all ? ++limited_ : 0);
  }
  const SwapModel& swaps = model.swaps;
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
  for (std::size_t g = 0; g < groups.size(); ++g) room_row_.push_back(is_crowded(g) ? room_rows_++ : 0);
  for (const SharedRate& rate : model.rates) {
    for (const double cost : rate.in) dearest_ = std::max(dearest_, cost);
    for (const double cost : rate.out) dearest_ = std::max(dearest_, cost);
  }
  time_ = std::max(1.0, swaps.compute / std::max(1.0, static_cast<double>(groups.size())));
  // A byte counts as the time that it takes on the slowest link.
  byte_ = dearest_ / time_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> known;
  for (std::size_t v = 0; v < model.values(); ++v) {
    const double bytes = model.bytes_of(v);
    block_of_.push_back(SparseProgram::no_block);
    if (bytes <= 0) continue;
    const std::vector<std::uint32_t> times = times_away(v);
    const auto [at, is_new] = known.try_emplace(times, static_cast<std::uint32_t>(blocks_.size()));
    if (is_new) {
      Block& block = blocks_.emplace_back();
      std::tie(block.first, block.last) = std::pair{times[first_of_times], times[last_of_times]};
      if (!model.must_move(v)) block.columns.emplace_back();
    }
    block_of_.back() = at->second;
    blocks_[at->second].bytes += bytes;
  }
}

/// What choices of the value can be, as groups.
std::vector<std::uint32_t> StoreMaster::times_away(std::size_t value) const {
  const SwapModel& swaps = model_.swaps;
  const std::uint32_t parts = swaps.parts();
  const auto groups = static_cast<std::uint32_t>(groups_.size());
  const auto group_at = [&](std::uint32_t part) { return groups_.group_of[part % parts / 2] + part / parts * groups; };
  const auto row_of = [&](std::uint32_t group) { return 2 * crowded_[group % groups] + group / groups * parts; };
  std::vector<std::uint32_t> times(3);
  std::uint32_t first = 2 * groups;
  std::uint32_t last = 0;
  const auto add = [&](const Window& window) {
    const std::uint32_t from = group_at(window.first_part());
    const std::uint32_t to = group_at(std::max(window.first_part(), window.last_part));
    times.insert(times.end(), {from, to, row_of(from) >= window.first_boundary ? 1U : 0U,
                               row_of(to) <= window.last_part ? 1U : 0U, window.is_arrival ? 1U : 0U});
    first = std::min(first, from);
    last = std::max(last, to);
  };
  if (value < model_.clean.size()) {
    const CleanValue& clean = model_.clean[value];
    times[0] = clean.is_in_host ? 1 : 2;
    for (const std::uint32_t w : clean.windows) add(swaps.clean[w]);
    if (!clean.is_in_host) std::tie(first, last) = std::pair{0U, 2 * groups - 1};
  } else {
    const auto& written = swaps.values[value - model_.clean.size()];
    times[0] = written.must_go ? 3 : 4;
    first = group_at(written.write_part);
    times.push_back(first);
    if (written.must_go) times.push_back(group_at(std::max(written.write_part, written.last_part)));
    for (std::uint32_t i = 0; i < written.windows; ++i) add(swaps.dirty[written.first_window + i]);
  }
  times[first_of_times] = first;
  times[last_of_times] = last;
  return times;
}

double StoreMaster::work() const {
  const auto all = static_cast<double>(rows());
  const double families = all / std::max(1.0, static_cast<double>(duration_.size()));
  double sum = all * all * all / 3;
  for (const Block& block : blocks_) {
    // In each family of rows, the choices of a value begin and end at a few groups.
    constexpr std::uint32_t few = 6;
    sum += std::pow(std::min(block.last - block.first + 1, few) * families, 2);
  }
  return sum;
}

StoreMaster::Column StoreMaster::column_of(const StoreChoice& choice) const {
  const std::uint32_t parts = model_.swaps.parts();
  std::map<std::uint32_t, double> used;  // by row
  const auto copy = [&](std::size_t store, std::uint32_t part, bool in) {
    const std::size_t g = groups_.group_of[part % parts / 2];
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      const double cost = (in ? model_.rates[r].in : model_.rates[r].out)[store];
      if (cost > 0) used[static_cast<std::uint32_t>(rate_row(r, g, part % 2 == 1))] += cost / dearest_;
    }
  };
  for (const StoreCopyOut& out : choice.outs) copy(out.store, out.part, false);
  for (const StoreAbsence& absence : choice.absences) {
    copy(absence.store, absence.in, true);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_.members[g] == 0) continue;
      const std::uint32_t boundary = 2 * crowded_[g];
      const auto share = [&](std::uint32_t first, std::uint32_t last) {
        return 0.5 * (times_in(boundary, parts, first, last) + times_in(boundary + 1, parts, first, last));
      };
      if (const double away = share(absence.from, absence.in); away > 0 && is_crowded(g)) {
        used[static_cast<std::uint32_t>(room_row(g))] += away;
      }
      if (!is_limited(absence.store)) continue;
      if (const double stored = share(absence.stored, absence.last); stored > 0) {
        used[static_cast<std::uint32_t>(space_row(absence.store, g))] += stored;
      }
    }
  }
  if (choice.home && is_limited(*choice.home)) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_.members[g] > 0) used[static_cast<std::uint32_t>(space_row(*choice.home, g))] += 1;
    }
  }
  Column column;
  for (const auto& [row, value] : used) column.entries.push_back({row, value});
  column.absences = choice.absences;
  return column;
}

std::size_t StoreMaster::add(std::span<const StoreChoice> choices) {
  std::size_t added = 0;
  for (std::size_t v = 0; v < choices.size(); ++v) {
    if (block_of_[v] == SparseProgram::no_block) continue;
    std::vector<Column>& columns = blocks_[block_of_[v]].columns;
    Column column = column_of(choices[v]);
    if (std::ranges::find(columns, column.entries, &Column::entries) != columns.end()) continue;
    columns.push_back(std::move(column));
    ++added;
  }
  return added;
}

std::pair<bool, std::size_t> StoreMaster::window_of(std::size_t value, const StoreAbsence& absence) const {
  const std::size_t clean = model_.clean.size();
  if (value < clean) return {true, model_.clean[value].windows[absence.window]};
  return {false, std::size_t{model_.swaps.values[value - clean].first_window} + absence.window};
}

StorePrices StoreMaster::no_prices() const {
  const std::uint32_t parts = model_.swaps.parts();
  return {std::vector<double>(parts), std::vector<std::vector<double>>(model_.rates.size(), std::vector<double>(parts)),
          std::vector<std::vector<double>>(model_.stores.size(), std::vector<double>(parts))};
}

StorePrices StoreMaster::uniform(double room) const {
  StorePrices prices = no_prices();
  const auto crowded = static_cast<double>(room_rows_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!is_crowded(g)) continue;
    prices.room[2 * crowded_[g]] = prices.room[2 * crowded_[g] + 1] = 0.5 * room * dearest_ / crowded;
  }
  for (auto& rate : prices.rates) std::ranges::fill(rate, 1.0 / static_cast<double>(model_.rates.size()));
  return prices;
}

/// Begins with equal parts of all that values are known to do, and with prices that nothing contradicts.
void StoreMaster::set_start(SparseProgram& program) const {
  std::vector<double> left = program.right_side;
  const auto set = [&](std::size_t unknown, double x) {
    program.start[unknown] = x;
    for (std::size_t e = program.first[unknown]; e < program.first[unknown + 1]; ++e) {
      left[program.entries[e].row] -= program.entries[e].value * x;
    }
  };
  program.start.assign(program.unknowns(), 0.0);
  std::size_t unknown = 0;
  for (const Block& block : blocks_) {
    const double part = block.bytes * byte_ / std::max<double>(1, static_cast<double>(block.columns.size()));
    for (std::size_t c = 0; c < block.columns.size(); ++c) set(unknown++, part);
  }
  constexpr double least = 0.1;
  const auto single = [&](double x) { set(unknown++, std::max(x, 0.0) + least); };
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (is_crowded(g)) {
      const double room = left[room_row(g)];
      single(-room);
      single(room);
    }
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      if (!is_limited(s)) continue;
      const double space = left[space_row(s, g)];
      single(space);
      single(-space);
    }
    double stall = 0;
    for (std::size_t r = 0; r < model_.rates.size(); ++r) stall = std::max(stall, -left[rate_row(r, g, true)]);
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      single(left[rate_row(r, g, false)] + (stalls_apart_ ? 0.0 : stall));
      if (stalls_apart_) single(left[rate_row(r, g, true)] + stall);
    }
    single(stall);
  }
  program.start_prices.assign(program.right_side.size(), 0.0);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (is_crowded(g)) program.start_prices[room_row(g)] = 1;
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      if (is_limited(s)) program.start_prices[space_row(s, g)] = -0.1;
    }
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      for (const bool in_stall : {false, true}) {
        program.start_prices[rate_row(r, g, in_stall)] = -0.5 / static_cast<double>(model_.rates.size());
      }
    }
  }
}

/// Per row of room or space: that of the next group. A value is away in many groups one after another, so differences
/// of these rows have far fewer entries.
std::vector<std::uint32_t> StoreMaster::next_rows() const {
  std::vector<std::uint32_t> next(rows(), SparseProgram::no_row);
  const auto link = [&](std::size_t first, std::size_t end) {
    for (std::size_t row = first; row + 1 < end; ++row) next[row] = static_cast<std::uint32_t>(row + 1);
  };
  link(0, room_rows_);
  for (std::size_t s = 0; s < model_.stores.size(); ++s) {
    if (is_limited(s)) link(space_row(s, 0), space_row(s, groups_.size()));
  }
  return next;
}

MasterSolution StoreMaster::solve(double tolerance) const {
  constexpr std::uint32_t none = SparseProgram::no_block;
  SparseProgram program;
  program.right_side.assign(rows(), 0.0);
  const std::size_t groups = groups_.size();
  for (std::size_t g = 0; g < groups; ++g) {
    if (is_crowded(g)) program.right_side[room_row(g)] = excess_[g] * byte_;
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      if (is_limited(s)) program.right_side[space_row(s, g)] = *model_.stores[s].space * byte_;
    }
    for (std::size_t r = 0; r < model_.rates.size(); ++r)
      program.right_side[rate_row(r, g, false)] = duration_[g] / time_;
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    program.amounts.push_back(blocks_[b].columns.empty() ? 0.0 : blocks_[b].bytes * byte_);
    for (const Column& column : blocks_[b].columns) {
      program.entries.insert(program.entries.end(), column.entries.begin(), column.entries.end());
      // Of solutions that take as long, one without needless moves.
      constexpr double small = 1e-4;
      program.add_unknown(small * static_cast<double>(column.absences.size()), static_cast<std::uint32_t>(b));
    }
  }
  const auto single = [&](std::size_t row, double value, double cost) {
    program.entries.push_back({static_cast<std::uint32_t>(row), value});
    program.add_unknown(cost, none);
  };
  constexpr double missing_price = 50;
  std::vector<std::size_t> stalls;
  std::vector<std::size_t> missing;
  for (std::size_t g = 0; g < groups; ++g) {
    if (is_crowded(g)) {
      single(room_row(g), -1, 0);  // more away than necessary
      missing.push_back(program.unknowns());
      single(room_row(g), 1, missing_price);  // less than necessary
    }
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      if (!is_limited(s)) continue;
      single(space_row(s, g), 1, 0);  // free space
      missing.push_back(program.unknowns());
      single(space_row(s, g), -1, missing_price);  // too little
    }
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      single(rate_row(r, g, false), 1, 0);  // idle time
      if (stalls_apart_) single(rate_row(r, g, true), 1, 0);
    }
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      program.entries.push_back({static_cast<std::uint32_t>(rate_row(r, g, true)), -1.0});
    }
    stalls.push_back(program.unknowns());
    program.add_unknown(1, none);  // the stall, for all rates together
  }
  set_start(program);
  const std::vector<std::uint32_t> next = next_rows();
  subtract_previous(program, next);
  SparseSolution found = solve_program(program, tolerance, 60);
  add_next(found.prices, next);

  MasterSolution solution;
  solution.is_solved = found.is_solved;
  solution.prices = no_prices();
  for (std::size_t g = 0; g < groups; ++g) {
    const auto boundary = std::size_t{2} * crowded_[g];
    const auto at_crowded = [&](std::vector<double>& prices, double price) {
      prices[boundary] = prices[boundary + 1] = 0.5 * std::max(0.0, price) * dearest_;
    };
    if (groups_.members[g] == 0) continue;
    if (is_crowded(g)) at_crowded(solution.prices.room, found.prices[room_row(g)]);
    for (std::size_t s = 0; s < model_.stores.size(); ++s) {
      if (is_limited(s)) at_crowded(solution.prices.space[s], -found.prices[space_row(s, g)]);
    }
  }
  for (std::uint32_t i = 0; i < model_.swaps.operations; ++i) {
    for (std::size_t r = 0; r < model_.rates.size(); ++r) {
      for (const bool in_stall : {false, true}) {
        solution.prices.rates[r][2 * std::size_t{i} + (in_stall ? 1 : 0)] =
            std::max(0.0, -found.prices[rate_row(r, groups_.group_of[i], in_stall)]);
      }
    }
  }
  solution.time = model_.swaps.compute;
  for (const std::size_t unknown : stalls) {
    solution.stall.push_back(time_ * std::max(0.0, found.x[unknown]));
    solution.time += solution.stall.back();
  }
  for (const std::size_t unknown : missing) solution.time += missing_price * time_ * std::max(0.0, found.x[unknown]);
  solution.clean.assign(model_.swaps.clean.size(), std::vector<double>(model_.stores.size()));
  solution.dirty.assign(model_.swaps.dirty.size(), std::vector<double>(model_.stores.size()));
  std::size_t unknown = 0;
  for (const Block& block : blocks_) {
    std::vector<double>& shares = solution.shares.emplace_back();
    for (std::size_t c = 0; c < block.columns.size(); ++c) {
      shares.push_back(std::max(0.0, found.x[unknown++]) / (block.bytes * byte_));
    }
  }
  for (std::size_t v = 0; v < block_of_.size(); ++v) {
    if (block_of_[v] == SparseProgram::no_block) continue;
    const Block& block = blocks_[block_of_[v]];
    for (std::size_t c = 0; c < block.columns.size(); ++c) {
      const double part = solution.shares[block_of_[v]][c];
      for (const StoreAbsence& absence : block.columns[c].absences) {
        const auto [is_clean, window] = window_of(v, absence);
        (is_clean ? solution.clean : solution.dirty)[window][absence.store] += part;
      }
    }
  }
  return solution;
}

}  // namespace swapmm::v2::planning
