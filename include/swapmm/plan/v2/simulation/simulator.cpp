// SPDX-License-Identifier: Apache-2.0
#include <swapmm/plan/v2/simulate.hpp>

#include <algorithm>
#include <cstdint>

#include <swapmm/plan/v2/simulation/elements.hpp>
#include <swapmm/plan/v2/simulation/event_run.hpp>
#include <swapmm/plan/v2/simulation/parts.hpp>
#include <swapmm/plan/v2/simulation/steady_state.hpp>

namespace swapmm::v2 {
namespace {

using simulation::Element;
using simulation::EventRun;
using simulation::longest;
using simulation::Time;
using std::chrono::nanoseconds;

nanoseconds saturated(Time time) { return nanoseconds{static_cast<std::int64_t>(std::clamp(time, -longest, longest))}; }

nanoseconds largest_compute(const Machine& machine, const std::vector<Element>& elements, std::size_t operations) {
  std::vector<nanoseconds> sums(engine_count(machine), nanoseconds{0});
  for (std::size_t i = 0; i < operations; ++i) sums[index(*elements[i].engine)] += nanoseconds{elements[i].time};
  return *std::ranges::max_element(sums);
}

std::vector<Bytes> link_bytes(const Machine& machine, const std::vector<Element>& elements) {
  std::vector<Bytes> bytes(machine.links.size());
  for (const Element& element : elements) {
    if (element.link) bytes[index(*element.link)] += element.flow;
  }
  return bytes;
}

/// Runs on until each element has been through one further iteration. If copies are so far behind that this would take
/// more than 1,000 iterations, they keep the times of the last iteration that they have been through.
std::vector<Span> one_more_iteration(EventRun& run) {
  constexpr std::size_t most_behind = 1000;
  const std::size_t iteration = run.next_new_iteration();
  const std::size_t most = iteration + most_behind;
  run.record_up_to(iteration);
  const std::vector<Time>& ends = run.iteration_ends();
  while (!run.recorded_all() && ends.size() < most && run.step(most)) {
  }

  std::vector<Span> spans;
  spans.reserve(run.records().size());
  for (const EventRun::Record& record : run.records()) {
    if (record.iterations == 0) {
      spans.push_back({saturated(longest), saturated(longest)});
      continue;
    }
    const std::size_t before = std::min(record.iterations - 1, ends.size());
    const Time origin = before == 0 ? Time{0} : ends[before - 1];
    spans.push_back({saturated(record.start - origin), saturated(record.end - origin)});
  }
  return spans;
}

}  // namespace

Simulation simulate(const Trace& trace, const Plan& plan) {
  const simulation::Parts parts(trace, plan);
  const std::vector<Element> elements = elements_of(trace, plan, parts);
  EventRun run(trace, plan, parts, elements);
  Simulation result;
  result.iteration = nanoseconds{run_until_periodic(run).mean};
  result.compute = largest_compute(plan.machine, elements, trace.operations.size());
  result.links = link_bytes(plan.machine, elements);
  result.peaks = run.occupation().peaks();
  result.operations = one_more_iteration(run);
  const auto first_command = result.operations.begin() + static_cast<std::ptrdiff_t>(trace.operations.size());
  result.commands.assign(first_command, result.operations.end() - 1);  // the last element is the iteration's end
  result.operations.erase(first_command, result.operations.end());
  return result;
}

std::vector<nanoseconds> iteration_ends(const Trace& trace, const Plan& plan, std::size_t iterations) {
  const simulation::Parts parts(trace, plan);
  const std::vector<Element> elements = elements_of(trace, plan, parts);
  EventRun run(trace, plan, parts, elements);
  while (run.iteration_ends().size() < iterations && run.step(iterations)) {
  }
  std::vector<nanoseconds> ends;
  ends.reserve(iterations);
  for (const Time end : run.iteration_ends()) ends.push_back(saturated(end));
  ends.resize(iterations, saturated(longest));
  return ends;
}

}  // namespace swapmm::v2
