// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <swapmm/ir/liveness.hpp>
#include <swapmm/plan/explain.hpp>
#include <swapmm/plan/planners.hpp>
#include <swapmm/plan/predicted_profile.hpp>
#include <swapmm/plan/stalls.hpp>
#include <swapmm/plan/v2/explain.hpp>
#include <swapmm/plan/v2/predicted_profile.hpp>
#include <swapmm/plan/v2/simulate.hpp>
#include <swapmm/plan/v2/validate.hpp>

#include "support/effort.hpp"
#include "support/random_trace.hpp"
#include "support/seeds.hpp"
#include "support/v2/random_case.hpp"

namespace swapmm::v2::profile_property_test {

using std::chrono::nanoseconds;
using test::effort;
using test::Seeds;

/// A random plan, half of them with operations that run again, encoded values and pieces, as far as they are valid.
test::general::Case random_case(std::mt19937_64& random) {
  test::general::Case one = test::general::random_case(random);
  for (int change = 0; change < 6; ++change) {
    test::general::Case other = one;
    test::general::mutate(random, other);
    if (v2::validate(other.trace, other.plan).empty()) one = std::move(other);
  }
  return one;
}

void check_rows(const Trace& trace, const Plan& plan, const Profile& profile, const Simulation& simulation) {
  const auto iterations = profile.iteration_ends.size();
  const nanoseconds end = profile.iteration_ends.back();
  std::vector<nanoseconds> busy_until(profile.rows.size(), nanoseconds{0});
  std::map<std::string, Bytes> bytes;
  std::size_t operations = 0;
  nanoseconds computed{0};
  for (const ProfileSpan& span : profile.spans) {
    CHECK(span.start >= busy_until[span.row]);
    CHECK(span.end >= span.start);
    CHECK(span.end <= end);
    busy_until[span.row] = span.end;
    if (profile.rows[span.row].kind != ProfileRow::Kind::engine) bytes[profile.rows[span.row].name] += span.bytes;
    if (span.kind != SpanKind::operation) continue;
    ++operations;
    computed += span.end - span.start;
  }
  CHECK(operations == iterations * trace.operations.size());
  nanoseconds durations{0};
  for (const TraceOperation& operation : trace.operations) durations += operation.duration;
  CHECK(computed == durations * static_cast<nanoseconds::rep>(iterations));
  for (std::size_t l = 0; l < plan.machine.links.size(); ++l) {
    CHECK(bytes[plan.machine.links[l].name] == Bytes{simulation.links[l].value * iterations});
  }
}

void check_memories(const Plan& plan, const Profile& profile, const Simulation& simulation) {
  std::size_t at = 0;
  for (std::size_t m = 0; m < plan.machine.memories.size(); ++m) {
    if (!plan.machine.memories[m].bytes) continue;
    const ProfileMemory& memory = profile.memories[at++];
    CHECK(memory.name == plan.machine.memories[m].name);
    REQUIRE(!memory.levels.empty());
    Bytes peak;
    for (const ProfileLevel& level : memory.levels) peak = std::max(peak, level.used);
    CHECK(peak == simulation.peaks[m]);
    CHECK(memory.levels.front().time == nanoseconds{0});
  }
  CHECK(at == profile.memories.size());
}

void check_explanation(const Plan& plan, const Explanation& explanation, const Simulation& simulation) {
  CHECK(explanation.iteration == simulation.iteration);
  CHECK(explanation.compute == simulation.compute);
  for (std::size_t l = 0; l < plan.machine.links.size(); ++l) {
    CHECK(explanation.links[l].bytes == simulation.links[l]);
    CHECK(explanation.links[l].slowed <= explanation.links[l].busy);
  }
  std::vector<nanoseconds> waits(explanation.engines.size(), nanoseconds{0});
  for (const Stall& stall : explanation.stalls) waits[index(stall.engine)] += stall.time;
  for (std::size_t e = 0; e < explanation.engines.size(); ++e) {
    const EngineUse& use = explanation.engines[e];
    const nanoseconds sum = use.operations + use.again + use.coding + use.copies + use.waits + use.done;
    CHECK((sum == explanation.examined || sum == nanoseconds{0}));
    CHECK(use.waits == waits[e]);
  }
  for (std::size_t m = 0; m < plan.machine.memories.size(); ++m) {
    CHECK(explanation.memories[m].peak == simulation.peaks[m]);
  }
  CHECK(std::ranges::is_sorted(explanation.stalls, [](const Stall& a, const Stall& b) { return a.time > b.time; }));
}

TEST_CASE("v2: a predicted profile and an explanation say what the simulator says") {
  const Seeds seeds = test::seeds(effort(3000, 20));
  int again = 0;
  int coding = 0;
  std::size_t explained = 0;
  std::size_t unexplained = 0;
  std::size_t shared = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const test::general::Case one = random_case(random);
    const Simulation simulation = v2::simulate(one.trace, one.plan);
    const Profile profile = v2::predicted_profile(one.trace, one.plan);
    const Explanation explanation = v2::explain(one.trace, one.plan);
    REQUIRE(!profile.iteration_ends.empty());
    check_explanation(one.plan, explanation, simulation);
    for (const Stall& stall : explanation.stalls) {
      CHECK(!describe(stall, one.trace, one.plan).empty());
      ++(stall.cause ? explained : unexplained);
    }
    for (const LinkUse& link : explanation.links) shared += link.slowed > nanoseconds{0} ? 1 : 0;
    // Nothing can be turned into a circle of no time.
    const nanoseconds end = profile.iteration_ends.back();
    if (end == nanoseconds{0}) continue;
    const auto iterations = static_cast<nanoseconds::rep>(profile.iteration_ends.size());
    // Where nothing repeats, the profile is one iteration of many that differ.
    const bool repeats = (end + nanoseconds{iterations / 2}) / iterations == simulation.iteration;
    if (!repeats) continue;
    check_memories(one.plan, profile, simulation);
    check_rows(one.trace, one.plan, profile, simulation);
    again += std::ranges::count(profile.spans, SpanKind::again, &ProfileSpan::kind) != 0 ? 1 : 0;
    coding += std::ranges::count(profile.spans, SpanKind::coding, &ProfileSpan::kind) != 0 ? 1 : 0;
  }
  MESSAGE(again, " with operations that run again, ", coding, " with encoded values");
  MESSAGE(explained, " stalls with a cause, ", unexplained, " without; ", shared, " links that share a capacity");
  CHECK(unexplained == 0);
  if (seeds.count < 1000) return;
  CHECK(again > 0);
  CHECK(coding > 0);
  CHECK(shared > 0);
}

/// The spans of a row, without its name.
using Spans = std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::string>>;

/// Stalls and absences of a plan of version 1, explained in both versions.
void check_same_explanation(const Trace& trace, const swapmm::Plan& plan) {
  const Explanation explanation = v2::explain(trace, v2::from_version_1(plan));
  using Times = std::vector<std::pair<std::uint32_t, std::int64_t>>;
  Times old_stalls;
  Times stalls;
  for (const swapmm::Stall& stall : find_stalls(trace, plan))
    old_stalls.emplace_back(index(stall.operation), stall.time.count());
  for (const Stall& stall : explanation.stalls) stalls.emplace_back(stall.step.index, stall.time.count());
  std::ranges::sort(old_stalls);
  std::ranges::sort(stalls);
  CHECK(stalls == old_stalls);
  using Absences =
      std::vector<std::tuple<std::size_t, std::size_t, std::size_t, std::int64_t, std::size_t, std::size_t>>;
  Absences old_absences;
  Absences absences;
  for (const swapmm::PlannedAbsence& absence : swapmm::find_absences(trace, plan)) {
    if (absence.time == nanoseconds{0} || !absence.last_use || !absence.next_use) continue;
    old_absences.emplace_back(index(absence.tensor), index(absence.release), index(absence.swap_in),
                              absence.time.count(), index(*absence.last_use), index(*absence.next_use));
  }
  for (const PlannedAbsence& absence : explanation.absences) {
    if (absence.time == nanoseconds{0} || !absence.last_use || !absence.next_use) continue;
    absences.emplace_back(index(absence.tensor), index(absence.release), index(absence.back), absence.time.count(),
                          index(*absence.last_use), index(*absence.next_use));
  }
  std::ranges::sort(old_absences);
  std::ranges::sort(absences);
  CHECK(absences == old_absences);
}

TEST_CASE("v2: a plan of version 1 has the same profile, stalls and absences in both versions") {
  const Seeds seeds = test::seeds(effort(300, 10));
  int compared = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    test::RandomTraceOptions options;
    options.operations = 1 + test::one_of(random, 8);
    options.tensors = 1 + test::one_of(random, 6);
    const Trace trace = test::random_trace(random, options);
    const swapmm::Machine machine = test::random_machine_for(trace, random, 60);
    const NamedPlanner& planner = planners()[test::one_of(random, planners().size() - 1)];
    const Result<swapmm::Plan> plan = planner.make(trace, machine, {});
    REQUIRE(plan);
    const swapmm::Profile old = swapmm::predicted_profile(trace, *plan);
    const Profile profile = v2::predicted_profile(trace, v2::from_version_1(*plan));
    if (old.iteration_ends.size() != profile.iteration_ends.size() ||
        old.iteration_ends.back() != profile.iteration_ends.back())
      continue;  // where a period begins may differ
    if (old.iteration_ends.size() > 1 || old.iteration_ends.back() == nanoseconds{0}) continue;
    ++compared;
    std::map<std::string, Spans> old_rows;
    std::map<std::string, Spans> rows;
    constexpr const char* lanes[] = {"compute", "h2d", "d2h"};
    bool is_endless = false;  // a copy that is always under way: one span in version 1, two in version 2
    for (const swapmm::ProfileSpan& span : old.spans) {
      if (span.start == span.end) continue;
      const bool is_whole = span.start == nanoseconds{0} && span.end == old.iteration_ends.back();
      is_endless = is_endless || (span.lane != Lane::compute && is_whole);
      old_rows[lanes[static_cast<std::size_t>(span.lane)]].push_back(
          {{span.start.count(), span.end.count()}, span.name + ' ' + std::to_string(span.bytes.value)});
    }
    for (const ProfileSpan& span : profile.spans) {
      if (span.start == span.end) continue;
      rows[profile.rows[span.row].name].push_back(
          {{span.start.count(), span.end.count()}, span.name + ' ' + std::to_string(span.bytes.value)});
    }
    for (auto& [name, spans] : old_rows) std::ranges::sort(spans);
    for (auto& [name, spans] : rows) std::ranges::sort(spans);
    if (!is_endless) CHECK(rows == old_rows);
    std::vector<ProfileLevel> levels = old.levels;
    const auto same = [](const ProfileLevel& a, const ProfileLevel& b) { return a.used == b.used; };
    levels.erase(std::unique(levels.begin(), levels.end(), same), levels.end());
    CHECK(profile.memories.front().levels == levels);
    check_same_explanation(trace, *plan);
  }
  CHECK(compared > static_cast<int>(seeds.count) / 3);
}

}  // namespace swapmm::v2::profile_property_test
