// SPDX-License-Identifier: Apache-2.0
// Options that no type can refuse.
#include <doctest/doctest.h>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/error_desk.hpp"
#include "support/small_program.hpp"

using namespace swapmm::literals;

namespace swapmm::test::options_test {

TEST_CASE("options that are none of their kind are refused") {
  Simulated device;
  CHECK(text_of<UsageError>([&] {
          MemoryManager manager(device, {.device_budget = 1_KiB, .demand_mode = static_cast<DemandMode>(7)});
        }) == "Options::demand_mode is none of DemandMode");
  CHECK(text_of<UsageError>([] { Scheduler scheduler({.planning = static_cast<Planning>(2)}); }) ==
        "SchedulerOptions::planning is none of Planning");
  CHECK(text_of<UsageError>([] { Scheduler scheduler({.drops = static_cast<DropRule>(3)}); }) ==
        "SchedulerOptions::drops is none of DropRule");
}

}  // namespace swapmm::test::options_test
