// SPDX-License-Identifier: Apache-2.0
// Every call of the backend that can fail does, once in each way, in the programs of support/fault_programs.hpp on a
// CUDA device: the runs of tests/opencl/faults_test.cpp.

#include <doctest/doctest.h>

#include <cstdint>

#include "cuda/support.hpp"
#include "support/fault_runs.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

struct OnCuda {
  using Device = Faulty<cuda::Backend>;
  static Device make(const FaultPlan& plan) {
    // Never destroyed: the driver may be gone before it.
    static const auto& backend = *new cuda::Backend(cuda_backend({.measure = false}));
    return Device(backend, plan);
  }
  /// Nobody counts the API's objects, but it must not hold an error for whoever asks next.
  static cudaError_t at_rest() { return cudaPeekAtLastError(); }
  // A run takes about 70 ms on an H200: most of it is page-locked memory and streams that are made and go.
  static std::uint64_t first() { return 1; }
  static std::uint64_t stride() { return 199; }
};
using Runs = FaultRuns<OnCuda>;

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
// Not FaultMode::late: work that fails on a CUDA device takes the device with it (Capabilities::failures_stick), so
// that the runtime looks at the last event alone. An adaptor that fails one piece of work and lets the next ones pass
// shows what no CUDA device does.
