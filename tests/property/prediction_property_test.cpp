// SPDX-License-Identifier: Apache-2.0
//
// The time predicted for a plan is the virtual time of running it. From a drained device, the ends of all followed
// iterations are those that iteration_ends() gives, to the nanosecond, counted from the moment at which the moves that
// make the plan's start have ended.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/swapmm.hpp>

#include "support/effort.hpp"
#include "support/random_loop.hpp"
#include "support/running_loop.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

/// When the moves that make the start of a plan have ended: the first copies behind that entry of the log, as many
/// bytes as the report says.
nanoseconds start_of_plan(const RunningLoop& run, std::size_t entry, nanoseconds drained) {
  const Report report = run.manager.report();
  Bytes in = report.start_h2d;
  Bytes out = report.start_d2h;
  nanoseconds end = drained;
  for (; (in.value != 0 || out.value != 0) && entry < run.device.log().size(); ++entry) {
    const simulated::LogEntry& copy = run.device.log()[entry];
    if (copy.kind == simulated::CommandKind::copy_to_device) in -= copy.bytes;
    if (copy.kind == simulated::CommandKind::copy_to_host) out -= copy.bytes;
    end = std::max(end, copy.end);
  }
  return end;
}

constexpr std::size_t followed_iterations = 9;

/// Nothing where no plan was followed.
std::optional<bool> prediction_holds(const Loop& loop) {
  RunningLoop run(loop);
  run.iterate();  // the first one has the values that all tensors start with as inputs
  run.iterate();
  run.manager.synchronize();
  const std::size_t entry = run.device.log().size();
  const nanoseconds drained = run.device.now();
  for (std::size_t i = 0; i < followed_iterations; ++i) run.iterate();
  const std::shared_ptr<const Plan> plan = run.manager.scheduler().plan("loop");
  if (plan == nullptr) return std::nullopt;
  const std::optional<Trace> trace = run.manager.scheduler().trace("loop");
  REQUIRE(trace.has_value());
  REQUIRE(digest(*trace) == plan->trace_digest);
  CHECK(run.manager.report().iterations_followed == followed_iterations);
  for (std::size_t i = 0; i < loop.steps.size(); ++i) CHECK(trace->operations[i].duration == loop.steps[i].duration);

  const std::vector<nanoseconds> predicted = iteration_ends(*trace, *plan, followed_iterations);
  const std::vector<nanoseconds> seen = run.ends_since(entry);
  REQUIRE(seen.size() == followed_iterations);
  const nanoseconds start = start_of_plan(run, entry, drained);
  bool same = true;
  for (std::size_t i = 0; i < followed_iterations; ++i) same = same && seen[i] - start == predicted[i];
  if (same) return true;
  std::string text = "start " + std::to_string(start.count()) + " (drained at " + std::to_string(drained.count()) + ")";
  for (std::size_t i = 0; i < followed_iterations; ++i) {
    text += "\n" + std::to_string((seen[i] - start).count()) + " predicted " + std::to_string(predicted[i].count());
  }
  MESSAGE(text);
  return false;
}

}  // namespace

TEST_CASE("from a drained device, followed iterations end when the simulator says, to the nanosecond") {
  std::size_t followed = 0;
  const std::uint64_t loops = test::effort(2000, 10);
  for (std::uint64_t seed = 1; seed <= loops; ++seed) {
    const std::optional<bool> holds = prediction_holds(random_loop(seed));
    if (!holds) continue;
    ++followed;
    REQUIRE_MESSAGE(*holds, "seed " << seed);
  }
  CHECK(followed > loops * 3 / 4);
}
