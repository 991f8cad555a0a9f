// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/predicted_profile.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/simulation/dataflow.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"

using namespace swapmm;
using simulation::Dataflow;
using std::chrono::nanoseconds;
using test::one_of;

namespace {

const int predicted_profile_rounds = test::effort(600, 20);

Trace random_trace_of(std::mt19937_64& random) {
  test::RandomTraceOptions options;
  options.operations = 1 + one_of(random, one_of(random, 4) == 0 ? 30 : 8);
  options.tensors = 1 + one_of(random, one_of(random, 4) == 0 ? 20 : 7);
  options.max_bundle = 1 + one_of(random, 4);
  options.max_bytes = 1 + one_of(random, 200);
  options.max_duration = static_cast<std::int64_t>(one_of(random, 200));
  return test::random_trace(random, options);
}

/// The bytes taken over one iteration far from the start, from all that ran by then and a few iterations more: time by
/// time, with no wrapping around.
std::map<std::int64_t, std::uint64_t> taken_in_steady_iteration(const Trace& trace, const Plan& plan) {
  constexpr std::size_t before = 300;
  constexpr std::size_t behind = 20;
  Dataflow flow(trace, plan);
  std::map<std::int64_t, std::uint64_t> changes;  // below zero by the rules of unsigned arithmetic
  std::int64_t begin = 0;
  std::int64_t end = 0;
  for (std::size_t iteration = 1; iteration <= before + 1 + behind; ++iteration) {
    flow.advance();
    if (iteration == before) begin = flow.iteration_end();
    if (iteration == before + 1) end = flow.iteration_end();
    for (std::size_t j = 0; j < plan.commands.size(); ++j) {
      const Command& command = plan.commands[j];
      if (command.kind == CommandKind::swap_out) continue;
      const Bytes size = round_up(trace.tensors[index(command.tensor)].bytes, plan.machine.alignment);
      changes[flow.start(flow.command_step(j))] +=
          command.kind == CommandKind::release ? std::uint64_t{0} - size.value : size.value;
    }
  }
  std::uint64_t taken = 0;
  for (const Resident& resident : plan.initial) {
    taken += round_up(trace.tensors[index(resident.tensor)].bytes, plan.machine.alignment).value;
  }
  std::map<std::int64_t, std::uint64_t> result;
  for (const auto& [time, change] : changes) {
    taken += change;
    if (time < begin) result[0] = taken;
    if (time >= begin && time < end) result[time - begin] = taken;
  }
  if (changes.empty() || changes.begin()->first >= end) result[0] = taken;
  return result;
}

/// Without the times at which nothing changes.
std::vector<ProfileLevel> changes_of(const std::vector<ProfileLevel>& levels) {
  std::vector<ProfileLevel> result;
  for (const ProfileLevel& level : levels) {
    if (result.empty() || result.back().used != level.used) result.push_back(level);
  }
  return result;
}

std::vector<ProfileLevel> changes_of(const std::map<std::int64_t, std::uint64_t>& taken) {
  std::vector<ProfileLevel> levels;
  for (const auto& [time, used] : taken) levels.push_back({nanoseconds{time}, Bytes{used}});
  return changes_of(levels);
}

struct LaneSum {
  std::size_t spans = 0;
  Bytes bytes;
  nanoseconds busy{0};
};

LaneSum sum_of(const Profile& profile, Lane lane) {
  LaneSum sum;
  nanoseconds busy_until{0};
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane != lane) continue;
    CHECK(span.start >= busy_until);
    CHECK(span.end >= span.start);
    CHECK(span.end <= profile_end(profile));
    busy_until = span.end;
    ++sum.spans;
    sum.bytes += span.bytes;
    sum.busy += span.end - span.start;
  }
  return sum;
}

void check_lanes(const Profile& profile, const Trace& trace, const Simulation& simulation) {
  const std::size_t iterations = profile.iteration_ends.size();
  const auto turns = static_cast<nanoseconds::rep>(iterations);
  const nanoseconds end = profile.iteration_ends.back();
  CHECK(profile_end(profile) == end);
  CHECK((end + nanoseconds{turns / 2}) / turns == simulation.iteration);
  const LaneSum compute = sum_of(profile, Lane::compute);
  CHECK(compute.spans == iterations * trace.operations.size());
  CHECK(compute.busy == turns * simulation.compute);
  CHECK(idle_time(profile) == end - compute.busy);
  CHECK(sum_of(profile, Lane::h2d).bytes == Bytes{iterations * simulation.h2d.value});
  CHECK(sum_of(profile, Lane::d2h).bytes == Bytes{iterations * simulation.d2h.value});
  std::size_t operation = 0;
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane != Lane::compute) continue;
    const TraceOperation& expected = trace.operations[operation++ % trace.operations.size()];
    CHECK(span.name == expected.name);
    CHECK(span.end - span.start == expected.duration);
  }
}

nanoseconds copy_times(const Simulation& simulation, const Plan& plan, CommandKind kind) {
  nanoseconds sum{0};
  for (std::size_t j = 0; j < plan.commands.size(); ++j) {
    if (plan.commands[j].kind == kind) sum += simulation.commands[j].end - simulation.commands[j].start;
  }
  return sum;
}

}  // namespace

TEST_CASE("a predicted profile says what the simulator says, for every planner") {
  std::mt19937_64 random(30);
  int compared = 0;
  for (int round = 0; round < predicted_profile_rounds; ++round) {
    const Trace trace = random_trace_of(random);
    const Machine machine = test::random_machine_for(trace, random, 100);
    for (const NamedPlanner& planner : planners()) {
      CAPTURE(round);
      CAPTURE(planner.name);
      const Result<Plan> plan = planner.make(trace, machine, {});
      REQUIRE(plan);
      const Simulation simulation = simulate(trace, *plan);
      const Profile profile = predicted_profile(trace, *plan);
      REQUIRE(!profile.iteration_ends.empty());
      CHECK(peak_used(profile) == plan->predicted.peak);
      CHECK(peak_used(profile) <= profile.device_budget);
      REQUIRE(!profile.levels.empty());
      // Nothing can be turned into a circle of no time.
      if (profile.iteration_ends.back() == nanoseconds{0}) continue;
      CHECK(profile.levels.front().time == nanoseconds{0});
      check_lanes(profile, trace, simulation);
      if (profile.iteration_ends.size() > 1) continue;
      ++compared;
      CHECK(sum_of(profile, Lane::h2d).busy == copy_times(simulation, *plan, CommandKind::swap_in));
      CHECK(sum_of(profile, Lane::d2h).busy == copy_times(simulation, *plan, CommandKind::swap_out));
      CHECK(changes_of(profile.levels) == changes_of(taken_in_steady_iteration(trace, *plan)));
    }
  }
  CHECK(compared > 3 * predicted_profile_rounds);
}
