// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/relaxation/swap_grid.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace swapmm::planning::relaxation {

SwapGrid make_exact_grid(const SwapModel& model) {
  SwapGrid grid;
  grid.is_exact = true;
  for (std::uint32_t part = 0; part < model.parts(); ++part) {
    const std::uint32_t operation = part / 2;
    const bool computes = part % 2 == 0;
    grid.groups.push_back(
        {computes ? model.duration[operation] : 0, model.excess[operation], part, operation, computes ? 1U : 0U});
    grid.group_of_part.push_back(part);
  }
  return grid;
}

SwapGrid make_coarse_grid(const SwapModel& model, const GridCuts& cuts) {
  SwapGrid grid;
  auto cut = cuts.operations.begin();
  auto stall = cuts.stalls.begin();
  const auto open = [&](std::uint32_t operation, std::uint32_t boundary) {
    grid.groups.push_back({0, 0, boundary, operation, 0});
  };
  bool is_open = false;
  for (std::uint32_t i = 0; i < model.operations; ++i) {
    const bool is_cut = cut != cuts.operations.end() && *cut == i;
    if (is_cut) ++cut;
    if (is_cut || !is_open) open(i, 2 * i);
    is_open = true;
    PartGroup& group = grid.groups.back();
    group.duration += model.duration[i];
    if (group.operations == 0 || model.excess[i] > group.excess) {
      group.excess = model.excess[i];
      group.row_boundary = 2 * i;
    }
    ++group.operations;
    grid.group_of_part.push_back(static_cast<std::uint32_t>(grid.groups.size() - 1));
    if (stall != cuts.stalls.end() && *stall == i) {
      ++stall;
      open(i, 2 * i + 1);
      is_open = false;
    }
    grid.group_of_part.push_back(static_cast<std::uint32_t>(grid.groups.size() - 1));
  }
  return grid;
}

namespace {

/// The stalls in which the arrivals of the largest inputs may begin. They cannot begin earlier.
std::vector<std::uint32_t> stalls_before_inputs(const SwapModel& model, std::size_t most) {
  std::map<std::uint32_t, double> copies;
  for (const Window& window : model.clean) {
    if (window.is_arrival) copies[((window.first_boundary - 1) % model.parts()) / 2] += window.copy_in;
  }
  std::vector<std::pair<double, std::uint32_t>> longest;
  longest.reserve(copies.size());
  for (const auto& [operation, time] : copies) longest.emplace_back(-time, operation);
  std::sort(longest.begin(), longest.end());
  longest.resize(std::min(longest.size(), most));
  std::vector<std::uint32_t> stalls;
  stalls.reserve(longest.size());
  for (const auto& [time, operation] : longest) stalls.push_back(operation);
  std::sort(stalls.begin(), stalls.end());
  return stalls;
}

}  // namespace

GridCuts first_cuts(const SwapModel& model, std::size_t groups, std::size_t stalls) {
  GridCuts cuts;
  cuts.stalls = stalls_before_inputs(model, stalls);
  const double compute = std::max(model.compute, 1.0);
  double before = 0;
  double next = 0;
  const auto count = static_cast<double>(std::min<std::size_t>(std::max<std::size_t>(groups, 1), model.operations));
  for (std::uint32_t i = 0; i < model.operations; ++i) {
    const double position = (before / compute + static_cast<double>(i) / model.operations) / 2 * count;
    if (i == 0 || position >= next) {
      cuts.operations.push_back(i);
      while (next <= position) next += 1;
    }
    before += model.duration[i];
  }
  return cuts;
}

}  // namespace swapmm::planning::relaxation
