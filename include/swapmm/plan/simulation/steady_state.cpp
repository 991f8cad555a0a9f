// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/simulation/steady_state.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace swapmm::simulation {
namespace {

constexpr std::size_t most_iterations = 1000;

Bytes rounded_size(const Trace& trace, const Plan& plan, TensorId id) {
  return round_up(trace.tensors[index(id)].bytes, plan.machine.alignment);
}

/// The period of the last `iterations` iterations; `times` are those of all iterations.
Period last_of(const std::vector<std::int64_t>& times, std::size_t iterations, bool exact) {
  __extension__ using Wide = __int128;
  const Wide sum = std::accumulate(times.end() - static_cast<std::ptrdiff_t>(iterations), times.end(), Wide{0});
  const auto count = static_cast<Wide>(iterations);
  const bool fits = sum < Dataflow::end_of_time;
  return {iterations, fits ? static_cast<std::int64_t>(sum) : Dataflow::end_of_time,
          static_cast<std::int64_t>((sum + count / 2) / count), exact && fits};
}

}  // namespace

// Brent's cycle detection: the state for comparison moves on at powers of two, so only one state is kept, and the first
// equal state is a whole period away.
Period run_until_periodic(Dataflow& flow) {
  std::vector<std::int64_t> kept;
  std::vector<std::int64_t> state;
  std::vector<std::int64_t> times;  // of the iterations
  std::size_t kept_at = 0;
  for (std::size_t iteration = 1; iteration <= most_iterations; ++iteration) {
    flow.wind_back();
    flow.advance();
    if (flow.clock_ended()) return {1, Dataflow::end_of_time, Dataflow::end_of_time, false};
    times.push_back(flow.iteration_end() - flow.iteration_end_before());
    flow.carried(state);
    if (iteration > 1 && state == kept) return last_of(times, iteration - kept_at, true);
    if ((iteration & (iteration - 1)) == 0) {
      std::swap(kept, state);
      kept_at = iteration;
    }
  }
  // Copies that run ever further ahead of the operations, or behind them, never repeat. Only a mean is known.
  return last_of(times, most_iterations / 2, false);
}

OccupationCircle::OccupationCircle(const Trace& trace, const Plan& plan) : trace_(trace), plan_(plan) {
  for (const Resident& resident : plan.initial) at_origin_ += rounded_size(trace, plan, resident.tensor);
}

void OccupationCircle::add_iteration(const Turn& turn, const Dataflow& flow) {
  changes_.reserve(changes_.size() + plan_.commands.size());
  for (std::size_t j = 0; j < plan_.commands.size(); ++j) {
    const Command& command = plan_.commands[j];
    if (command.kind == CommandKind::swap_out) continue;
    const Bytes size = rounded_size(trace_, plan_, command.tensor);
    // Intermediate sums may wrap below zero, which is well-defined for unsigned numbers.
    add(turn, flow.start(flow.command_step(j)) - turn.origin,
        command.kind == CommandKind::release ? Bytes{0} - size : size);
  }
}

void OccupationCircle::add(const Turn& turn, std::int64_t time, Bytes bytes) {
  if (turn.time > 0) {
    std::int64_t turns = time / turn.time;
    time %= turn.time;
    if (time < 0) {
      time += turn.time;
      --turns;
    }
    // A command that runs some turns early has happened that often before the origin; a late one has not happened yet.
    at_origin_ -= Bytes{bytes.value * static_cast<std::uint64_t>(turns)};
  }
  changes_.push_back({time, bytes});
}

std::vector<ProfileLevel> OccupationCircle::levels() && {
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
  std::vector<ProfileLevel> levels;
  Bytes occupied = at_origin_;
  if (changes_.empty() || changes_.front().time > 0) levels.push_back({std::chrono::nanoseconds{0}, occupied});
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    occupied += changes_[i].bytes;
    // Occupation is half-open: a level counts after everything at the same time has happened.
    if (i + 1 < changes_.size() && changes_[i + 1].time == changes_[i].time) continue;
    levels.push_back({std::chrono::nanoseconds{changes_[i].time}, occupied});
  }
  return levels;
}

}  // namespace swapmm::simulation
