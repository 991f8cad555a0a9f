// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/plan/predicted_profile.hpp>
#include <swapmm/plan/simulate.hpp>
#include <swapmm/plan/validate.hpp>

#include "support/plan_text.hpp"
#include "support/profile_examples.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

namespace {

Profile run(const Trace& trace, const Plan& plan) {
  for (const Violation& violation : validate(trace, plan)) FAIL_CHECK(violation.message);
  Profile profile = predicted_profile(trace, plan);
  CHECK(peak_used(profile) == simulate(trace, plan).peak);
  return profile;
}

/// a of 30 bytes is updated for 10 ns, b of 50 bytes read.
Trace two_tensors(std::int64_t second) {
  Trace trace;
  trace.name = "two tensors";
  trace.tensors = {tensor("a", 30, TensorKind::persistent), tensor("b", 50, TensorKind::persistent)};
  trace.operations = {operation("update a", 10, {}, {}, {0}), operation("read b", second, {1})};
  return trace;
}

/// a comes and goes beside b, which stays.
Plan swap_a(const Trace& trace) {
  return plan(trace, machine(80), {resident(1, 30, true)},
              {swap_in(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})});
}

std::vector<nanoseconds> times(std::vector<std::int64_t> numbers) {
  std::vector<nanoseconds> result;
  for (const std::int64_t number : numbers) result.emplace_back(number);
  return result;
}

}  // namespace

TEST_CASE("a copy that runs in the iteration before is shown where it runs in this one") {
  const Trace trace = two_tensors(100);
  const Profile profile = run(trace, swap_a(trace));
  CHECK(profile.title == "two tensors, by hand, predicted");
  CHECK(profile.device == "test");
  CHECK(profile.device_budget == Bytes{80});
  // In at -70 to -40, out at 10 to 40.
  CHECK(profile.spans == std::vector{operation_span("update a", 0, 10), operation_span("read b", 10, 110),
                                     copy_span(Lane::d2h, "a", 30, 10, 40), copy_span(Lane::h2d, "a", 30, 40, 70)});
  // a is released at 40, and comes back at once.
  CHECK(profile.levels == std::vector{level(0, 80), level(40, 80)});
  CHECK(profile.iteration_ends == times({110}));
}

TEST_CASE("a copy that crosses the border of the iteration is shown in two parts") {
  const Trace trace = two_tensors(20);
  const Profile profile = run(trace, swap_a(trace));
  // In at 10 to 40, the operations at 40 to 70, out at 50 to 80.
  CHECK(profile.spans == std::vector{copy_span(Lane::d2h, "a", 10, 0, 10), copy_span(Lane::h2d, "a", 30, 10, 40),
                                     operation_span("update a", 40, 50), operation_span("read b", 50, 70),
                                     copy_span(Lane::d2h, "a", 20, 50, 70)});
  CHECK(profile.levels == std::vector{level(0, 80), level(10, 80)});
  CHECK(profile.iteration_ends == times({70}));
  CHECK(idle_time(profile) == nanoseconds{40});
}

TEST_CASE("bytes are taken from the start of an allocate to the end of a release, sizes rounded up") {
  Trace trace;
  trace.tensors = {tensor("weights", 10, TensorKind::persistent), tensor("scratch", 5, TensorKind::transient)};
  trace.operations = {operation("a", 10, {0}), operation("b", 20, {}, {1}), operation("c", 30, {0})};
  const Plan with_scratch = plan(trace, machine(64, 16), {resident(0, 0, true)},
                                 {allocate(1, 16, {op(0), previous_cmd(1)}, 1), release(1, {op(1)})});
  const Profile profile = run(trace, with_scratch);
  CHECK(profile.spans ==
        std::vector{operation_span("a", 0, 10), operation_span("b", 10, 30), operation_span("c", 30, 60)});
  CHECK(profile.levels == std::vector{level(0, 16), level(10, 32), level(30, 16)});
}

TEST_CASE("iterations that alternate are shown until they repeat") {
  Trace trace;
  trace.tensors = {tensor("a", 17, TensorKind::persistent), tensor("b", 16, TensorKind::persistent)};
  trace.operations = {operation("read b", 1, {1}), operation("read a", 1, {0})};
  const Plan alternating = plan(trace, machine(33), {resident(0, 0, true), resident(1, 17, true)},
                                {swap_out(0, {op(-1)}), release(1, {op(0)}), swap_in(1, 17, {cmd(0), cmd(1)}, 2)});
  const Profile profile = run(trace, alternating);
  REQUIRE(profile.iteration_ends.size() == 2);
  CHECK(profile.iteration_ends[1] == nanoseconds{35});  // 17 and 18, in one order or the other
  std::size_t operations = 0;
  Bytes in;
  Bytes out;
  for (const ProfileSpan& span : profile.spans) {
    if (span.lane == Lane::compute) ++operations;
    (span.lane == Lane::h2d ? in : out) += span.bytes;
    CHECK(span.start >= nanoseconds{0});
    CHECK(span.end <= nanoseconds{35});
  }
  CHECK(operations == 4);
  CHECK(in == Bytes{32});
  CHECK(out == Bytes{34});
  CHECK(idle_time(profile) == nanoseconds{35 - 4});
}

TEST_CASE("a copy that nothing waits for and that is as long as an iteration, or longer, runs all the time") {
  for (const std::uint64_t bytes : {10U, 15U, 1000U}) {
    CAPTURE(bytes);
    Trace trace;
    trace.tensors = {tensor("a", bytes, TensorKind::persistent)};
    trace.operations = {operation("read a", 10, {0})};
    const Profile profile = run(trace, plan(trace, machine(bytes), {resident(0, 0, true)}, {swap_out(0, {op(-1)})}));
    CHECK(profile.spans == std::vector{operation_span("read a", 0, 10), copy_span(Lane::d2h, "a", bytes, 0, 10)});
    CHECK(profile.levels == std::vector{level(0, bytes)});
    CHECK(profile.iteration_ends == times({10}));
  }
}

TEST_CASE("iterations that take no time have a profile too") {
  Trace trace;
  trace.tensors = {tensor("scratch", 5, TensorKind::transient)};
  trace.operations = {operation("write", 0, {}, {0}), operation("nothing", 0, {})};
  const Profile profile =
      run(trace, plan(trace, machine(5), {}, {allocate(0, 0, {previous_cmd(1)}, 0), release(0, {op(0)})}));
  CHECK(profile.spans == std::vector{operation_span("write", 0, 0), operation_span("nothing", 0, 0)});
  CHECK(profile.iteration_ends == times({0}));

  const Profile copying = run(
      trace,
      plan(trace, machine(5), {}, {allocate(0, 0, {previous_cmd(2)}, 0), swap_out(0, {op(0)}), release(0, {cmd(1)})}));
  CHECK(copying.iteration_ends == times({5}));
}
