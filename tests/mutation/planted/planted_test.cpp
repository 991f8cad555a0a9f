// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "counter.hpp"
#include "mutation/reached_cases.hpp"

using namespace planted;

TEST_CASE("a counter is full, once something was counted") {
  Counter<int> counter(5);
  CHECK(!counter.full());
  counter.add(3);
  CHECK(!counter.full());
  counter.add(2);
  CHECK(counter.full());
  CHECK(counter.shown() == 5);
  counter.add(2);
  CHECK(counter.shown() == 5);
  CHECK(Counter<int>(0).shown() == 0);
}

TEST_CASE("steps and lengths") {
  const Counter<int> counter(5);
  CHECK(counter.steps(3) == 3);
  CHECK(counter.lengths({1, 4, {}, 2}) == 4 + 7);
  CHECK(both({1}, {2}).value == 3);
  CHECK(twice(counter.steps(2)) == 4);
}
