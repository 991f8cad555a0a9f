// SPDX-License-Identifier: Apache-2.0
//
// A recorded profile is what the device did, and recording it changes nothing: on random loops in virtual time, each
// span is one of the device's own log, to the nanosecond, iterations end when the simulator says, and the bytes that
// are taken never exceed the budget. In a plan's steady state its levels are those of the plan.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/ir/profile.hpp>
#include <swapmm/plan/predicted_profile.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/random_loop.hpp"
#include "support/running_loop.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

constexpr std::size_t iterations = 9;

std::optional<Lane> lane_of(simulated::CommandKind kind) {
  switch (kind) {
    case simulated::CommandKind::kernel: return Lane::compute;
    case simulated::CommandKind::copy_to_device: return Lane::h2d;
    case simulated::CommandKind::copy_to_host: return Lane::d2h;
    default: return std::nullopt;
  }
}

/// What the device's own log has since that entry, from `origin` on.
std::vector<ProfileSpan> spans_of_log(const simulated::Backend& device, std::size_t entry, nanoseconds origin) {
  std::vector<ProfileSpan> spans;
  for (; entry < device.log().size(); ++entry) {
    const simulated::LogEntry& logged = device.log()[entry];
    if (const auto lane = lane_of(logged.kind)) {
      spans.push_back({*lane, {}, logged.bytes, logged.start - origin, logged.end - origin});
    }
  }
  return spans;
}

std::vector<ProfileSpan> without_names(std::vector<ProfileSpan> spans) {
  for (ProfileSpan& span : spans) span.name.clear();
  return spans;
}

void in_one_order(std::vector<ProfileSpan>& spans) {
  std::sort(spans.begin(), spans.end(), [](const ProfileSpan& a, const ProfileSpan& b) {
    return std::tie(a.start, a.end, a.lane, a.bytes) < std::tie(b.start, b.end, b.lane, b.bytes);
  });
}

struct Seen {
  Profile profile;
  std::vector<ProfileSpan> log;
  std::vector<nanoseconds> ends;
  Bytes used_at_end;
};

Seen record(RunningLoop& run) {
  run.manager.start_profile();
  const std::size_t entry = run.device.log().size();
  const nanoseconds origin = run.device.now();
  for (std::size_t i = 0; i < iterations; ++i) run.iterate();
  Seen seen{run.manager.stop_profile(), spans_of_log(run.device, entry, origin), run.ends_since(entry), {}};
  for (nanoseconds& end : seen.ends) end -= origin;
  seen.used_at_end = run.manager.report().device_used;
  return seen;
}

/// Where both directions share an engine, a copy counts from when its queue came to it: the wait for the engine is in
/// it.
void check_against_device(Seen seen, const Loop& loop, Bytes budget) {
  std::vector<ProfileSpan> spans = without_names(seen.profile.spans);
  CHECK(std::is_sorted(spans.begin(), spans.end(),
                       [](const ProfileSpan& a, const ProfileSpan& b) { return a.start < b.start; }));
  for (std::vector<ProfileSpan>* const each : {&spans, &seen.log}) {
    for (ProfileSpan& span : *each) {
      if (loop.device.half_duplex && span.lane != Lane::compute) span.start = span.end;
    }
    in_one_order(*each);
  }
  CHECK(spans == seen.log);
  CHECK(seen.profile.iteration_ends == seen.ends);
  CHECK(seen.profile.device_budget == budget);
  CHECK(peak_used(seen.profile) <= budget);
  REQUIRE(!seen.profile.levels.empty());
  CHECK(seen.profile.levels.front().time == nanoseconds{0});
  CHECK(seen.profile.levels.back().used == seen.used_at_end);
}

}  // namespace

TEST_CASE("a profile of followed iterations is what the device did, and changes no time") {
  std::size_t followed = 0;
  std::size_t steady = 0;
  const std::uint64_t loops = test::effort(800, 10);
  for (std::uint64_t seed = 1; seed <= loops; ++seed) {
    const Loop loop = random_loop(seed);
    RunningLoop plain(loop);
    RunningLoop run(loop);
    for (RunningLoop* const each : {&plain, &run}) {
      for (int i = 0; i < 3; ++i) each->iterate();
      each->manager.synchronize();
    }
    if (run.manager.scheduler().plan("loop") == nullptr || run.manager.report().iterations_followed == 0) continue;
    INFO("seed " << seed);
    const nanoseconds origin = plain.device.now();
    const std::size_t entry = plain.device.log().size();
    for (std::size_t i = 0; i < iterations; ++i) plain.iterate();
    plain.manager.synchronize();
    std::vector<nanoseconds> ends = plain.ends_since(entry);
    for (nanoseconds& end : ends) end -= origin;

    const Seen seen = record(run);
    check_against_device(seen, loop, run.manager.report().device_budget);
    CHECK(seen.ends == ends);
    ++followed;

    const Plan plan = *run.manager.scheduler().plan("loop");
    const Trace trace = *run.manager.scheduler().trace("loop");
    const Profile last = one_iteration(seen.profile, iterations - 2);
    const Profile before = one_iteration(seen.profile, iterations - 3);
    // The same from iteration to iteration, and long enough to be seen.
    if (last.iteration_ends.back() > nanoseconds{0} && last.spans == before.spans && last.levels == before.levels) {
      CHECK(last.levels == predicted_profile(trace, plan).levels);
      CHECK(peak_used(last) == plan.predicted.peak);
      ++steady;
    }
  }
  MESSAGE(followed << " loops followed a plan, " << steady << " of them in a steady state of one iteration");
  CHECK(followed > loops / 2);
  CHECK(steady > loops / 2);
}

TEST_CASE("a profile of iterations on demand is what the device did, and never above the budget") {
  const std::uint64_t loops = test::effort(400, 10);
  for (std::uint64_t seed = 1; seed <= loops; ++seed) {
    Loop loop = random_loop(seed);
    loop.scheduler.observe = seed % 2 == 0 ? 0 : 100;  // with times for the recorder, and without
    RunningLoop run(loop);
    run.iterate();
    INFO("seed " << seed);
    check_against_device(record(run), loop, run.manager.report().device_budget);
  }
}
