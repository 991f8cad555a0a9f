// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <swapmm/ir/profile.hpp>

#include "support/profile_examples.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

namespace {

/// Operations of the given times, and no iteration.
Profile operations(const std::vector<std::pair<std::int64_t, std::int64_t>>& times) {
  Profile profile;
  for (const auto& [start, end] : times) profile.spans.push_back(operation_span("o", start, end));
  return profile;
}

}  // namespace

TEST_CASE("the parts of a span have shares of its bytes that add up") {
  const ProfileSpan copy = copy_span(Lane::h2d, "t", 10, -3, 4);
  CHECK(part_of(copy, nanoseconds{-3}, nanoseconds{4}) == copy);
  CHECK(part_of(copy, nanoseconds{-100}, nanoseconds{100}) == copy);
  // 10 bytes in 7 ns: 4.28 after 3 ns, 5.71 after 4 ns.
  CHECK(part_of(copy, nanoseconds{-3}, nanoseconds{0}) == copy_span(Lane::h2d, "t", 4, -3, 0));
  CHECK(part_of(copy, nanoseconds{0}, nanoseconds{1}) == copy_span(Lane::h2d, "t", 1, 0, 1));
  CHECK(part_of(copy, nanoseconds{1}, nanoseconds{9}) == copy_span(Lane::h2d, "t", 5, 1, 4));

  // Bytes times nanoseconds do not fit 64 bits.
  const std::int64_t hour = 3'600'000'000'000;
  const ProfileSpan large = copy_span(Lane::d2h, "t", std::uint64_t{1} << 60U, 0, hour);
  CHECK(part_of(large, nanoseconds{0}, nanoseconds{hour / 4}).bytes == Bytes{std::uint64_t{1} << 58U});

  const ProfileSpan at_once = copy_span(Lane::d2h, "t", 10, 5, 5);
  CHECK(part_of(at_once, nanoseconds{0}, nanoseconds{9}) == at_once);
  CHECK(part_of(at_once, nanoseconds{0}, nanoseconds{5}).bytes == Bytes{0});
  CHECK(part_of(at_once, nanoseconds{5}, nanoseconds{9}).bytes == Bytes{10});
}

TEST_CASE("one iteration begins where the one before ended, and what reaches into it is cut") {
  const Profile both = two_iterations();
  const Profile first = one_iteration(both, 0);
  CHECK(first.title == both.title);
  CHECK(first.spans == std::vector{copy_span(Lane::h2d, "weights", 500, 0, 100), operation_span("a", 100, 300),
                                   operation_span("b", 300, 600)});
  CHECK(first.levels == std::vector{level(0, 1000)});
  CHECK(first.iteration_ends == std::vector{nanoseconds{600}});

  const Profile second = one_iteration(both, 1);
  CHECK(second.spans == std::vector{operation_span("a", 0, 200), operation_span("b", 250, 400),
                                    copy_span(Lane::d2h, "result", 100, 300, 400)});
  CHECK(second.levels == std::vector{level(0, 1000), level(250, 1500)});
  CHECK(second.iteration_ends == std::vector{nanoseconds{400}});
}

TEST_CASE("an iteration has the level that holds at its beginning, and not the one that begins at its end") {
  Profile profile = two_iterations();
  profile.device = "a device";
  profile.device_budget = Bytes{7};
  profile.levels = {level(0, 1), level(599, 2), level(600, 3), level(1000, 4)};
  CHECK(one_iteration(profile, 0).levels == std::vector{level(0, 1), level(599, 2)});
  CHECK(one_iteration(profile, 1).levels == std::vector{level(0, 3)});
  CHECK(one_iteration(profile, 1).device == "a device");
  CHECK(one_iteration(profile, 1).device_budget == Bytes{7});
}

TEST_CASE("an iteration that is not there is empty, and has the names") {
  const Profile none = one_iteration(two_iterations(), 2);
  CHECK(none.title == "two iterations");
  CHECK(none.spans.empty());
  CHECK(none.levels.empty());
  CHECK(none.iteration_ends.empty());
  CHECK(one_iteration({}, 0) == Profile{});
}

TEST_CASE("a profile ends with its last iteration, or with what ran last") {
  CHECK(compute_end({}) == nanoseconds{0});
  CHECK(profile_end({}) == nanoseconds{0});
  CHECK(compute_end(two_iterations()) == nanoseconds{1000});
  CHECK(profile_end(two_iterations()) == nanoseconds{1200});  // of a copy

  Profile unfinished = two_iterations();
  unfinished.iteration_ends.clear();
  unfinished.spans.pop_back();
  unfinished.spans.push_back(copy_span(Lane::d2h, "result", 300, 1000, 1100));
  CHECK(compute_end(unfinished) == nanoseconds{1000});  // operations alone
  unfinished.levels.push_back(level(5000, 0));
  CHECK(profile_end(unfinished) == nanoseconds{5000});
}

TEST_CASE("idle is the time without an operation up to the last iteration's end") {
  CHECK(idle_time({}) == nanoseconds{0});
  CHECK(idle_time(two_iterations()) == nanoseconds{150});  // 0 to 100 and 800 to 850; copies do not count
  CHECK(idle_time(one_iteration(two_iterations(), 0)) == nanoseconds{100});
  CHECK(idle_time(one_iteration(two_iterations(), 1)) == nanoseconds{50});
  CHECK(idle_time(one_layer_swapped()) == nanoseconds{1'000'000});

  CHECK(idle_time(operations({{0, 10}})) == nanoseconds{0});
  CHECK(idle_time(operations({{2, 3}, {3, 4}, {6, 7}})) == nanoseconds{4});
  CHECK(idle_time(operations({{-5, 3}, {4, 6}})) == nanoseconds{1});           // began before the profile
  CHECK(idle_time(operations({{0, 9}, {2, 3}, {10, 11}})) == nanoseconds{1});  // one within another

  Profile profile = operations({{1, 2}, {20, 30}});
  profile.iteration_ends = {nanoseconds{10}};
  CHECK(idle_time(profile) == nanoseconds{9});  // what runs behind the last iteration is none of it
  profile.iteration_ends = {nanoseconds{25}};
  CHECK(idle_time(profile) == nanoseconds{19});
  profile.spans.clear();
  CHECK(idle_time(profile) == nanoseconds{25});
}

TEST_CASE("the peak is the highest level, wherever it is") {
  CHECK(peak_used({}) == Bytes{0});
  CHECK(peak_used(two_iterations()) == Bytes{1500});
  Profile profile;
  profile.levels = {level(0, 9), level(1, 3)};
  CHECK(peak_used(profile) == Bytes{9});
  profile.levels = {level(0, 3), level(1, 9), level(2, 0)};
  CHECK(peak_used(profile) == Bytes{9});
}

TEST_CASE("a line for a person has all figures, those that are compared in one unit") {
  CHECK(describe(one_layer_swapped()) ==
        "iteration 12.000 ms \xC2\xB7 idle 1.000 ms (8.3 %) \xC2\xB7 32.00 MiB in, 32.00 MiB out \xC2\xB7 "
        "peak 96.00 MiB of a budget of 96.00 MiB");
  CHECK(
      describe(two_iterations()) ==
      "2 iterations of 500 ns on average \xC2\xB7 idle 150 ns (15.0 %) \xC2\xB7 1000 B in, 300 B out, in all \xC2\xB7 "
      "peak 1.46 KiB");
  Profile profile = two_iterations();
  profile.device_budget = Bytes{std::uint64_t{1} << 20U};
  profile.spans.push_back(copy_span(Lane::d2h, "large", 2048, 1200, 1300));
  profile.iteration_ends.clear();
  CHECK(
      describe(profile) ==
      "1.000 us without a whole iteration \xC2\xB7 idle 0.150 us (15.0 %) \xC2\xB7 0.98 KiB in, 2.29 KiB out \xC2\xB7 "
      "peak 0.00 MiB of a budget of 1.00 MiB");
  CHECK(describe({}) == "nothing ran \xC2\xB7 idle 0 ns (0.0 %) \xC2\xB7 0 B in, 0 B out \xC2\xB7 peak 0 B");
}

TEST_CASE("bytes copied are those of one lane") {
  CHECK(bytes_copied(two_iterations(), Lane::h2d) == Bytes{1000});
  CHECK(bytes_copied(two_iterations(), Lane::d2h) == Bytes{300});
  CHECK(bytes_copied({}, Lane::h2d) == Bytes{0});
}
