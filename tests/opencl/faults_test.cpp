// SPDX-License-Identifier: Apache-2.0
// Every call of the backend that can fail does, once in each way, in the programs of support/fault_programs.hpp on a
// real device. tests/faults does the same at length on the simulated device; here it is seen that nothing hangs,
// nothing is left in the API, and no value is wrong without a word.

#include <doctest/doctest.h>

#include <cstdint>

#include "opencl/support.hpp"
#include "support/effort.hpp"
#include "support/fault_runs.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

struct OnOpencl {
  using Device = Faulty<opencl::Backend>;
  static Device make(const FaultPlan& plan) { return Device(shared_backend(), plan); }
  static ApiObjects at_rest() { return objects_at_rest(); }
  // On a GPU with memory of its own a run takes ten times as long.
  static bool is_far() { return device_is_far(); }
  static std::uint64_t first() { return is_slow || is_far() ? 1 : 6; }
  static std::uint64_t stride() {
    if (is_slow) return 161;
    if (is_far()) return 199;
    if (device_is_slow()) return 61;
    return is_thorough() ? 9 : 41;
  }
};
using Runs = FaultRuns<OnOpencl>;

}  // namespace

TEST_CASE("without a fault the programs follow plans and come out right") { Runs::run_without_fault(); }
TEST_CASE("a call that fails once gives one error at most, and all values are right") {
  Runs::run_over_classes(FaultMode::once);
}
TEST_CASE("calls that fail for ever end no program in a hang or with a wrong value") {
  Runs::run_over_classes(FaultMode::for_ever);
}
TEST_CASE("a device lost at any call is told by every later one, and everything ends") {
  Runs::run_over_classes(FaultMode::device_lost);
}
TEST_CASE("a call that is done and fails all the same does no harm") { Runs::run_over_classes(FaultMode::blind); }
TEST_CASE("an object that fails at its first use does no harm") { Runs::run_over_classes(FaultMode::lazy); }
TEST_CASE("work that fails behind its call is told with the values that it took") {
  Runs::run_over_classes(FaultMode::late);
}
