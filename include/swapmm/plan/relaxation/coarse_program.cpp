// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/coarse_program.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace swapmm::planning::relaxation {
namespace {

class ProgramMaker {
 public:
  ProgramMaker(const SwapModel& model, const SwapGrid& grid, const ProgramUnits& units, const PayingWindows& paying)
      : model_(model), grid_(grid), units_(units), paying_(paying) {}

  GridProgram make() {
    CoarseProgram& program = made_.program;
    program.half_duplex = model_.half_duplex;
    int crowded = 0;
    for (const PartGroup& group : grid_.groups) {
      program.starts_with_row.push_back(group.row_boundary == group.first_part());
      program.duration.push_back(group.duration / units_.time);
      program.excess.push_back(group.excess * units_.per_byte / units_.time);
      crowded_before_.push_back(crowded);
      if (group.excess > 0) ++crowded;
    }
    crowded_before_.push_back(crowded);
    for (std::uint32_t i = 0; i < model_.clean.size(); ++i) add_clean(model_.clean[i], BlockMember{true, i});
    for (std::size_t v = 0; v < model_.values.size(); ++v) add_value(v);
    for (const OptionBlock& block : blocks_) add_block(program, block);
    return std::move(made_);
  }

 private:
  using Key = std::tuple<int, int, int, int, int, int, int, double, double, double>;

  /// The number of rows with an excess in [first, last].
  int crowded_rows(int first, int last) const {
    if (first > last) return 0;
    const int k = grid_.size();
    const auto before = [&](int row) {
      return row / k * crowded_before_.back() + crowded_before_[static_cast<std::size_t>(row % k)];
    };
    return before(last + 1) - before(first);
  }

  /// Sets the rows at which the window may be away, and the groups in which it may return. Returns false if no row
  /// gains by it.
  bool set_window(const Window& window, OptionBlock& block) const {
    block.last_in = grid_.group(window.last_part);
    block.first_in = grid_.group(window.first_part());
    if (!window.is_empty()) {
      block.first_row = grid_.group(window.first_boundary);
      if (grid_.row_boundary(block.first_row) < window.first_boundary) ++block.first_row;
      block.last_row = block.last_in;
      if (grid_.row_boundary(block.last_row) > window.last_part) --block.last_row;
    }
    if (!window.is_arrival) block.first_in = std::max(block.first_in, block.first_row);
    return crowded_rows(block.first_row, block.last_row) > 0;
  }

  void add_clean(const Window& window, BlockMember member) {
    if (window.copy_in <= 0) return;
    OptionBlock block;
    block.amount = window.copy_in / units_.time;
    block.room = window.bytes * units_.per_byte / window.copy_in;
    block.is_clean = true;
    block.may_stay = !window.is_arrival;
    allow_again(window, block);
    if (!set_window(window, block) && !window.is_arrival) return;
    add(block, member);
  }

  void add_value(std::size_t v) {
    const WrittenValue& value = model_.values[v];
    const std::uint32_t main = main_of(value, paying_.main[v]);
    const bool others_are_free = !paying_.others_are_free.empty() && paying_.others_are_free[v];
    for (std::uint32_t i = 0; i < value.windows; ++i) {
      const bool is_saved = value.must_go || (others_are_free && main != i && main != no_window) ||
                            std::isfinite(model_.dirty[value.first_window + i].again);
      add_lingering(value, value.first_window + i, is_saved);
    }
    const bool has_main = main != no_window && add_main(value, main);
    if (!has_main && value.must_go) add_copy_out(value);
    if (!has_main) return;
    for (std::uint32_t i = 0; i < value.windows; ++i) {
      if (i != main) add_other(value, value.first_window + i, others_are_free);
    }
  }

  /// The window that pays for the copy out. A lingering value is no such window if the value has another one.
  std::uint32_t main_of(const WrittenValue& value, std::uint32_t chosen) const {
    if (chosen == no_window || !model_.dirty[value.first_window + chosen].lingers) return chosen;
    for (std::uint32_t i = 0; i < value.windows; ++i) {
      const Window& window = model_.dirty[value.first_window + i];
      if (!window.lingers && !window.is_empty()) return i;
    }
    return no_window;
  }

  /// A lingering value costs its copy to the host alone, and nothing if another window or the host's read pays for it,
  /// or if it may be lost. It is away until the window's end.
  void add_lingering(const WrittenValue& value, std::uint32_t id, bool is_saved) {
    const Window& window = model_.dirty[id];
    if (!window.lingers || window.is_empty() || value.copy_out <= 0) return;
    OptionBlock block;
    block.amount = value.copy_out / units_.time;
    block.room = window.bytes * units_.per_byte / value.copy_out;
    block.read = 0;
    block.write = is_saved ? 0 : 1;
    if (!set_window(window, block)) return;
    if (!is_saved) block.first_in = block.last_in;
    block.may_stay = true;
    block.is_clean = is_saved;
    set_copy_out(value, block);
    add(block, BlockMember{false, id});
  }

  bool add_main(const WrittenValue& value, std::uint32_t main) {
    const BlockMember member{false, value.first_window + main};
    const Window& window = model_.dirty[member.window];
    if (window.copy_in <= 0) return false;
    OptionBlock block = paying_block(value, window);
    if (!set_window(window, block)) return false;
    block.may_stay = !value.must_go;
    block.may_only_write = value.must_go;
    set_copy_out(value, block);
    add(block, member);
    return true;
  }

  /// Sets the groups in which the value may go, from its write on.
  void set_copy_out(const WrittenValue& value, OptionBlock& block) const {
    block.first_out = grid_.group(value.write_part);
    block.last_out = std::max(block.first_out, block.last_in);
    if (value.must_go) block.last_out = std::max(block.last_out, grid_.group(value.last_part));
    block.last_out = std::min(block.last_out, block.first_out + grid_.size() - 1);
  }

  void add_copy_out(const WrittenValue& value) {
    if (value.copy_out <= 0) return;
    OptionBlock block;
    block.amount = value.copy_out / units_.time;
    block.write = 1;
    block.may_only_write = true;
    block.first_out = grid_.group(value.write_part);
    block.last_out = std::min(grid_.group(value.last_part), block.first_out + grid_.size() - 1);
    add(block, std::nullopt);
  }

  void add_other(const WrittenValue& value, std::uint32_t id, bool is_free) {
    const Window& window = model_.dirty[id];
    if (window.is_empty()) return;
    const BlockMember member{false, id};
    if (is_free || value.must_go) return add_clean(window, member);
    if (window.copy_in <= 0) return;
    OptionBlock block = paying_block(value, window);
    if (!set_window(window, block)) return;
    block.may_stay = true;
    // The position of this copy out matters little, because it is an additional one anyway.
    block.first_out = std::max(grid_.group(value.write_part), block.first_row - grid_.size() / 2);
    block.last_out = std::max(block.first_out, block.last_in);
    add(block, member);
  }

  OptionBlock paying_block(const WrittenValue& value, const Window& window) const {
    OptionBlock block;
    block.amount = window.copy_in / units_.time;
    block.room = window.bytes * units_.per_byte / window.copy_in;
    block.write = value.copy_out / window.copy_in;
    if (!value.must_go) allow_again(window, block);
    return block;
  }

  /// `amount` is the time of the copies in.
  static void allow_again(const Window& window, OptionBlock& block) {
    if (!std::isfinite(window.again)) return;
    block.may_run_again = true;
    block.again = window.again / window.copy_in;
  }

  /// Adds the window to the block with the same groups. In an exact grid all their properties must be equal.
  void add(OptionBlock block, std::optional<BlockMember> member) {
    const int first = block.is_clean ? block.first_in : block.first_out;
    const int turns = first / grid_.size() * grid_.size();
    for (int* const group : {&block.first_row, &block.last_row, &block.first_in, &block.last_in}) *group -= turns;
    if (!block.is_clean) {
      block.first_out -= turns;
      block.last_out -= turns;
    }
    const int kind = (block.may_stay ? 1 : 0) + (block.may_only_write ? 2 : 0) + (block.is_clean ? 4 : 0) +
                     (block.read > 0 ? 8 : 0) + (block.may_run_again ? 16 : 0);
    const Key key(block.first_out, block.last_out, block.first_row, block.last_row, block.first_in, block.last_in, kind,
                  grid_.is_exact ? block.room : 0.0, grid_.is_exact ? block.write : 0.0,
                  grid_.is_exact ? block.again : 0.0);
    const auto [known, is_new] = block_of_.try_emplace(key, blocks_.size());
    if (is_new) {
      blocks_.push_back(block);
      made_.members.emplace_back();
    } else {
      OptionBlock& joined = blocks_[known->second];
      const double sum = joined.amount + block.amount;
      joined.room = (joined.room * joined.amount + block.room * block.amount) / sum;
      joined.write = (joined.write * joined.amount + block.write * block.amount) / sum;
      joined.again = (joined.again * joined.amount + block.again * block.amount) / sum;
      joined.amount = sum;
    }
    if (member) made_.members[known->second].push_back(*member);
  }

  const SwapModel& model_;
  const SwapGrid& grid_;
  const ProgramUnits& units_;
  const PayingWindows& paying_;
  GridProgram made_;
  std::vector<OptionBlock> blocks_;
  std::vector<int> crowded_before_;  ///< per group: number of crowded rows before it; then the number of all
  std::map<Key, std::size_t> block_of_;
};

}  // namespace

PayingWindows first_paying_windows(const SwapModel& model) {
  const std::uint32_t n = model.operations;
  std::vector<double> excess(2 * std::size_t{n} + 1, 0.0);
  for (std::uint32_t i = 0; i < 2 * n; ++i) excess[i + 1] = excess[i] + std::max(0.0, model.excess[i % n]);
  PayingWindows paying;
  for (const WrittenValue& value : model.values) {
    std::uint32_t main = no_window;
    double most = -1;
    for (std::uint32_t i = 0; i < value.windows; ++i) {
      const Window& window = model.dirty[value.first_window + i];
      if (window.is_empty()) continue;
      const double over = excess[(window.last_part + 1) / 2] - excess[window.first_boundary / 2];
      if (over <= most) continue;
      most = over;
      main = i;
    }
    paying.main.push_back(main);
  }
  return paying;
}

ProgramUnits find_units(const SwapModel& model) {
  double copies = 0;
  double bytes = 0;
  for (const std::vector<Window>* const windows : {&model.clean, &model.dirty}) {
    for (const Window& window : *windows) {
      copies += window.copy_in;
      bytes += window.bytes;
    }
  }
  double writes = 0;
  for (const WrittenValue& value : model.values) writes += value.copy_out;
  ProgramUnits units;
  // Numbers are scaled by the iteration's time. If copies take much longer than computing, they determine that time.
  units.time = std::max({model.compute, (copies + writes) / 20, 1.0});
  if (copies > 0 && bytes > 0) units.per_byte = copies / bytes;
  return units;
}

GridProgram make_grid_program(const SwapModel& model, const SwapGrid& grid, const ProgramUnits& units,
                              const PayingWindows& paying) {
  return ProgramMaker(model, grid, units, paying).make();
}

}  // namespace swapmm::planning::relaxation
