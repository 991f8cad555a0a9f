// SPDX-License-Identifier: Apache-2.0
// How long commands are held back, by what steps take.
#include <doctest/doctest.h>

#include <chrono>
#include <initializer_list>

#include "iterations/patience.hpp"

namespace {

using swapmm::opencl::layer::Patience;
using namespace std::chrono_literals;

/// Steps that take so long, one after the other.
class Steps {
 public:
  explicit Steps(bool waits_for_values) : patience(waits_for_values) {}
  void run(std::initializer_list<Patience::Clock::duration> steps) {
    for (const auto step : steps) patience.iteration_ended(now_ += step);
  }
  void do_something_else(Patience::Clock::duration time) {
    patience.interrupted();
    now_ += time;
  }
  Patience patience;

 private:
  Patience::Clock::time_point now_;
};

}  // namespace

TEST_CASE("without the option commands are held back for a moment, however long steps take") {
  Steps steps(false);
  steps.run({1s, 50s, 50s});
  CHECK(steps.patience.pause() == 100ms);
  CHECK(steps.patience.time() == 2s);
}

TEST_CASE("waits for values: as long as a step may take") {
  Steps steps(true);
  CHECK(steps.patience.pause() == 3s);
  CHECK(steps.patience.time() == 30s);
  SUBCASE("short steps") {
    steps.run({1s, 1s, 1500ms});
    CHECK(steps.patience.pause() == 3s);
    CHECK(steps.patience.time() == 30s);
  }
  SUBCASE("the longest of the last four counts") {
    steps.run({1s, 10s, 4s, 4s, 4s});
    CHECK(steps.patience.pause() == 20s);
    CHECK(steps.patience.time() == 40s);
    steps.run({4s});
    CHECK(steps.patience.pause() == 8s);
    CHECK(steps.patience.time() == 30s);
  }
  SUBCASE("it is bounded") {
    steps.run({1s, 100s});
    CHECK(steps.patience.pause() == 60s);
    CHECK(steps.patience.time() == 120s);
  }
  SUBCASE("the first end tells nothing, nor does one behind something else") {
    steps.run({20s});
    CHECK(steps.patience.pause() == 3s);
    steps.do_something_else(20s);
    steps.run({1s, 2s});
    CHECK(steps.patience.pause() == 4s);
  }
}
