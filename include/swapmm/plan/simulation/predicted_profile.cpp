// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/predicted_profile.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/plan/simulation/steady_state.hpp>

namespace swapmm {
namespace {

using simulation::Dataflow;
using simulation::OccupationCircle;
using simulation::Turn;
using std::chrono::nanoseconds;

/// Adds a span at its time in this turn, in two parts if it crosses the turn's end.
void add_turned(std::vector<ProfileSpan>& spans, ProfileSpan span, nanoseconds turn) {
  const nanoseconds length = span.end - span.start;
  if (length >= turn) {
    // One of its runs is always under way. Nothing waits for it, otherwise its next run would not start so early.
    span.start = nanoseconds{0};
    span.end = turn;
    spans.push_back(std::move(span));
    return;
  }
  span.start %= turn;
  if (span.start.count() < 0) span.start += turn;
  span.end = span.start + length;
  if (span.end <= turn) {
    spans.push_back(std::move(span));
    return;
  }
  ProfileSpan rest = part_of(span, turn, span.end);
  rest.start -= turn;
  rest.end -= turn;
  spans.push_back(part_of(span, span.start, turn));
  spans.push_back(std::move(rest));
}

void add_iteration(Profile& profile, const Trace& trace, const Plan& plan, const Turn& turn, const Dataflow& flow) {
  const auto time = [&](std::int64_t of_flow) { return nanoseconds{of_flow - turn.origin}; };
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    profile.spans.push_back(
        {Lane::compute, trace.operations[i].name, Bytes{0}, time(flow.start(i)), time(flow.end(i))});
  }
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    const Command& command = plan.commands[j];
    if (command.kind != CommandKind::swap_in && command.kind != CommandKind::swap_out) continue;
    const TraceTensor& tensor = trace.tensors[index(command.tensor)];
    const std::size_t step = flow.command_step(j);
    add_turned(profile.spans,
               {command.kind == CommandKind::swap_in ? Lane::h2d : Lane::d2h, tensor.name, tensor.bytes,
                time(flow.start(step)), time(flow.end(step))},
               nanoseconds{turn.time});
  }
  profile.iteration_ends.push_back(time(flow.iteration_end()));
}

}  // namespace

Profile predicted_profile(const Trace& trace, const Plan& plan) {
  Profile profile;
  profile.title = trace.name + ", " + plan.planner + ", predicted";
  profile.device = plan.machine.name;
  profile.device_budget = plan.machine.device_budget;

  Dataflow flow(trace, plan);
  OccupationCircle circle(trace, plan);
  simulation::for_each_iteration_of_turn(flow, simulation::run_until_periodic(flow),
                                         [&](const Turn& turn, const Dataflow& iteration) {
                                           add_iteration(profile, trace, plan, turn, iteration);
                                           circle.add_iteration(turn, iteration);
                                         });
  profile.levels = std::move(circle).levels();
  std::stable_sort(profile.spans.begin(), profile.spans.end(),
                   [](const ProfileSpan& a, const ProfileSpan& b) { return a.start < b.start; });
  return profile;
}

}  // namespace swapmm
