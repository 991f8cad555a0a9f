// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/simulate.hpp>

#include <algorithm>
#include <utility>

#include <swapmm/plan/simulation/steady_state.hpp>

namespace swapmm {
namespace {

using simulation::Dataflow;
using std::chrono::nanoseconds;

Bytes peak_of(const Trace& trace, const Plan& plan, Dataflow& flow, const simulation::Period& period) {
  simulation::OccupationCircle circle(trace, plan);
  for_each_iteration_of_turn(flow, period, [&](const simulation::Turn& turn, const Dataflow& iteration) {
    circle.add_iteration(turn, iteration);
  });
  Bytes peak;
  for (const ProfileLevel& level : std::move(circle).levels()) peak = std::max(peak, level.used);
  return peak;
}

}  // namespace

Simulation simulate(const Trace& trace, const Plan& plan) { return simulate(trace, plan, step_times(trace, plan)); }

Simulation simulate(const Trace& trace, const Plan& plan, const StepTimes& times) {
  Dataflow flow(trace, plan, times);
  const simulation::Period period = run_until_periodic(flow);
  Simulation result;
  result.iteration = nanoseconds{period.mean};
  for (const nanoseconds time : times.operations) result.compute += time;
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::swap_in) result.h2d += copied_bytes(trace.tensors[index(command.tensor)]);
    if (command.kind == CommandKind::swap_out) result.d2h += copied_bytes(trace.tensors[index(command.tensor)]);
  }
  result.peak = peak_of(trace, plan, flow, period);

  const std::int64_t origin = flow.iteration_end_before();
  const auto span = [&](std::size_t step) {
    return Span{nanoseconds{flow.start(step) - origin}, nanoseconds{flow.end(step) - origin}};
  };
  result.operations.reserve(trace.operations.size());
  result.commands.reserve(plan.commands.size());
  for (std::size_t i = 0; i < trace.operations.size(); ++i) result.operations.push_back(span(i));
  for (std::size_t j = 0; j < plan.commands.size(); ++j) result.commands.push_back(span(flow.command_step(j)));
  return result;
}

std::vector<nanoseconds> iteration_ends(const Trace& trace, const Plan& plan, std::size_t iterations) {
  Dataflow flow(trace, plan);
  std::vector<nanoseconds> ends;
  ends.reserve(iterations);
  std::int64_t end = 0;
  for (std::size_t i = 0; i < iterations; ++i) {
    flow.wind_back();
    flow.advance();
    end = std::min(end + flow.iteration_end() - flow.iteration_end_before(), Dataflow::end_of_time);
    ends.push_back(nanoseconds{end});
  }
  return ends;
}

}  // namespace swapmm
