// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/ways/checkpoints.hpp>

#include <algorithm>

namespace swapmm::planning {

CheckpointChoice::CheckpointChoice(const Trace& trace, const ValueHistory& history, const PlanningCase& planning,
                                   std::size_t most_kept)
    : trace_(trace), history_(history), maps_(find_feature_maps(trace, history, planning)) {
  if (maps_.size() > most_maps) maps_.clear();
  count_ = maps_.size();
  most_kept_ = std::min(most_kept, count_);
  until_.assign(count_ + 1, 0.0);
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    until_[i + 1] = until_[i];
    for (; next <= maps_[i].giver; ++next) {
      const TraceOperation& operation = trace.operations[next];
      if (operation.replayable) until_[i + 1] += static_cast<double>(operation.duration.count());
    }
  }
  divisions_.resize((most_kept_ + 1) * (count_ + 1) * (count_ + 2));
  for (std::size_t length = 2; length <= count_ + 1; ++length) {
    for (std::size_t first = 0; first + length <= count_ + 1; ++first) {
      for (std::size_t kept = 0; kept <= most_kept_; ++kept) divide(kept, first, first + length);
    }
  }
  program_.resize((most_kept_ + 1) * (count_ + 1));
  for (std::size_t kept = 0; kept <= most_kept_; ++kept) {
    for (std::size_t first = 0; first < count_; ++first) divide_program(kept, first);
  }
}

void CheckpointChoice::divide(std::size_t kept, std::size_t first, std::size_t end) {
  // The last value is needed at once, and takes none of the room.
  Division best{until_[end - 1] - until_[first] + at(kept, first, end - 1).time, end - 1};
  for (std::size_t middle = first + 1; kept > 0 && middle + 1 < end; ++middle) {
    const double time = until_[middle] - until_[first] + at(kept - 1, middle, end).time + at(kept, first, middle).time;
    if (time < best.time) best = {time, middle};
  }
  at(kept, first, end) = best;
}

void CheckpointChoice::divide_program(std::size_t kept, std::size_t first) {
  Division best{at(kept, first, count_).time, count_};  // the last value is there
  for (std::size_t middle = first + 1; kept > 0 && middle < count_; ++middle) {
    const double time = program_[from(kept - 1, middle)].time + at(kept, first, middle).time;
    if (time < best.time) best = {time, middle};
  }
  program_[from(kept, first)] = best;
}

std::vector<Replay> CheckpointChoice::choose(std::size_t kept) const {
  std::vector<Replay> replays;
  for (std::size_t first = 0; first < count_;) {
    const std::size_t middle = program_[from(kept, first)].middle;
    add_run(kept, first, middle, replays);
    if (middle == count_) break;
    first = middle;
    --kept;
  }
  return replays;
}

void CheckpointChoice::add_run(std::size_t kept, std::size_t first, std::size_t end,
                               std::vector<Replay>& replays) const {
  if (end - first < 2) return;
  const std::size_t middle = at(kept, first, end).middle;
  const FeatureMap& map = maps_[middle - 1];
  const std::uint32_t before = maps_[end - 2].needed;
  if (map.last < before && history_.may_run_again(map.giver, before)) {
    add_chain(trace_, history_, map.giver, first == 0 ? 0 : maps_[first - 1].giver + 1, before, replays);
  }
  add_run(middle + 1 == end ? kept : kept - 1, middle, end, replays);
  add_run(kept, first, middle, replays);
}

}  // namespace swapmm::planning
