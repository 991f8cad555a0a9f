// SPDX-License-Identifier: Apache-2.0
// Parts of a recording, as one profile.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "profile/segments.hpp"
#include "support/profile_examples.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using opencl::layer::add_segment;
using opencl::layer::joined;
using opencl::layer::Recorded;
using opencl::layer::Segment;
using opencl::layer::typical_iteration;
using std::chrono::nanoseconds;

Segment segment_at(std::int64_t start, Profile profile) {
  Segment segment;
  segment.profile = std::move(profile);
  segment.start = nanoseconds{start};
  for (const ProfileSpan& span : segment.profile.spans) segment.commands += span.lane == Lane::compute ? 1 : 0;
  return segment;
}

Recorded recorded_of(std::vector<Segment> segments) {
  Recorded recorded;
  for (Segment& segment : segments) add_segment(recorded, std::move(segment), 1000);
  return recorded;
}

Profile one_operation(const std::string& name, std::int64_t start, std::int64_t end) {
  Profile profile;
  profile.spans = {operation_span(name, start, end)};
  profile.levels = {level(0, 8)};
  profile.device = "a device";
  return profile;
}

}  // namespace

TEST_CASE("segments are joined by when they began") {
  Profile second = one_operation("b", 5, 10);
  second.levels = {level(0, 4), level(7, 9)};
  second.iteration_ends = {nanoseconds{10}};
  const Recorded recorded = recorded_of({segment_at(1000, two_iterations()), segment_at(3000, second)});
  const Profile whole = joined(recorded, nanoseconds{900});
  CHECK(whole.spans == std::vector{copy_span(Lane::h2d, "weights", 1000, 0, 200), operation_span("a", 200, 400),
                                   operation_span("b", 400, 700), operation_span("a", 700, 900),
                                   operation_span("b", 950, 1100), copy_span(Lane::d2h, "result", 300, 1000, 1300),
                                   operation_span("b", 2105, 2110)});
  CHECK(whole.levels == std::vector{level(100, 1000), level(950, 1500), level(2100, 4), level(2107, 9)});
  CHECK(whole.iteration_ends == std::vector{nanoseconds{700}, nanoseconds{1100}, nanoseconds{2110}});
  CHECK(whole.device == "a device");
}

TEST_CASE("a segment begins when the one before has ended, whatever the clocks say") {
  Profile second = one_operation("b", -3, 10);
  const Recorded recorded =
      recorded_of({segment_at(0, one_operation("a", 0, 100)), segment_at(50, second), segment_at(500, second)});
  CHECK(joined(recorded, nanoseconds{0}).spans ==
        std::vector{operation_span("a", 0, 100), operation_span("b", 100, 113), operation_span("b", 497, 510)});
}

TEST_CASE("there is one level for each time, and the last one holds") {
  Profile first = one_operation("a", 0, 100);
  first.levels = {level(0, 1), level(100, 2)};
  const Recorded recorded = recorded_of({segment_at(0, first), segment_at(100, one_operation("b", 0, 1))});
  CHECK(joined(recorded, nanoseconds{0}).levels == std::vector{level(0, 1), level(100, 8)});
}

TEST_CASE("the budget of joined segments is the largest") {
  Profile profiles[3];
  profiles[0].device_budget = Bytes{5};
  profiles[1].device_budget = Bytes{9};
  profiles[2].device_budget = Bytes{7};
  CHECK(joined(recorded_of({segment_at(0, profiles[0]), segment_at(1, profiles[1]), segment_at(2, profiles[2])}),
               nanoseconds{0})
            .device_budget == Bytes{9});
  CHECK(joined({}, nanoseconds{0}) == Profile{});
}

TEST_CASE("the oldest segments go as long as the others are enough") {
  Recorded recorded;
  for (std::int64_t i = 0; i < 10; ++i) {
    Profile profile = one_operation("operation", 0, 10);
    profile.spans.push_back(copy_span(Lane::h2d, "t", 5, 1, 2));
    add_segment(recorded, segment_at(100 * i, profile), 7);
  }
  // Four segments with two spans each: three are not enough.
  CHECK(recorded.segments.size() == 4);
  CHECK(recorded.segments.front().start == nanoseconds{600});
  CHECK(recorded.spans == 8);
  CHECK(recorded.commands == 4);
  CHECK(recorded.commands_lost == 6);

  Segment large = segment_at(2000, two_iterations());
  add_segment(recorded, large, 6);
  CHECK(recorded.segments.size() == 1);
  CHECK(recorded.spans == 6);
  CHECK(recorded.commands == 4);
  CHECK(recorded.commands_lost == 10);
  add_segment(recorded, std::move(large), 1000);
  CHECK(recorded.segments.size() == 2);
}

TEST_CASE("the typical iteration is the last one of the length that most commands belong to") {
  CHECK(!typical_iteration({}));
  Segment first = segment_at(0, two_iterations());
  Segment second = segment_at(5000, two_iterations());
  Segment third = segment_at(9000, one_operation("c", 0, 10));
  CHECK(!typical_iteration(recorded_of({first, second, third})));

  first.iterations = {{0, 7}};
  auto found = typical_iteration(recorded_of({first, second, third}));
  REQUIRE(found);
  CHECK(found->commands == 7);
  CHECK(found->profile == one_iteration(two_iterations(), 0));

  second.iterations = {{1, 7}};
  third.profile.iteration_ends = {nanoseconds{10}};
  third.iterations = {{0, 13}};
  found = typical_iteration(recorded_of({first, second, third}));
  REQUIRE(found);
  CHECK(found->commands == 7);  // 14 commands, against 13
  CHECK(found->profile == one_iteration(two_iterations(), 1));

  third.iterations = {{0, 15}};
  found = typical_iteration(recorded_of({first, second, third}));
  REQUIRE(found);
  CHECK(found->commands == 15);
  CHECK(found->profile == one_iteration(third.profile, 0));
}
