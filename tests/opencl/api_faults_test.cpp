// SPDX-License-Identifier: Apache-2.0
// The calls of the API itself fail, each in turn, under a manager; and the device is lost at any of them.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "opencl/support.hpp"
#include "support/effort.hpp"
#include "support/fault_programs.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using World = FaultWorld<opencl::Backend>;

/// From one call that fails to the next one.
std::uint64_t stride() {
  if (is_slow) return 31;
  if (device_is_far()) return 199;  // each run takes ten times as long
  if (device_is_slow()) return 97;
  return is_thorough() ? 7 : 23;
}
/// The first calls, which no stride leaves out.
std::uint64_t always() { return device_is_far() ? 2 : 5; }

/// Runs a scenario in which something of the API goes wrong as long as `fault` lives. True if it did. The fault ends
/// before the judgement, or with everything else.
template <class Fault>
bool run_with_fault(const std::string& text, void (*scenario)(World&), const FaultRules& rules, cl_int status,
                    bool fault_ends_first, Fault&& make_fault, std::uint64_t n) {
  const ApiObjects at_rest = objects_at_rest();
  bool happened = false;
  {
    World world(shared_backend(), rules);
    {
      auto fault = make_fault();
      scenario(world);
      happened = fault->happened();
      if (fault_ends_first) fault.reset();
      if (happened || fault_ends_first) world.probe();
      world.tear_down(n % 2 == 0);
    }
    if (!rules.loses_device && world.errors().size() > 1) {
      FAIL_CHECK(text << ": one fault, two errors: " << world.errors()[0] << " | " << world.errors()[1]);
    }
    for (const std::string& problem : world.problems()) {
      FAIL_CHECK(text << ": " << problem
                      << (world.errors().empty() ? "" : " [first error: " + world.errors().front() + "]"));
    }
    const std::string number = "(" + std::to_string(status) + ")";
    for (const std::string& error : world.errors()) {
      if (error.find(number) == std::string::npos) FAIL_CHECK(text << ": another error than the API's: " << error);
    }
  }
  CHECK_MESSAGE(api_objects() == at_rest, text);
  return happened;
}

constexpr void (*scenarios[])(World&) = {
    [](World& world) { steady_loop(world, Form::with_event); },
    [](World& world) { wandering(world); },
};

}  // namespace

TEST_CASE("any call of the API that fails once gives one error at most, and all values are right") {
  for (const std::string function :
       {"clCreateBuffer", "clCreateSubBuffer", "clCreateCommandQueue", "clEnqueueMapBuffer", "clEnqueueFillBuffer",
        "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer", "clEnqueueReadBuffer", "clEnqueueMarkerWithWaitList",
        "clEnqueueBarrierWithWaitList", "clFinish", "clFlush", "clWaitForEvents", "clGetEventInfo",
        "clGetEventProfilingInfo"}) {
    // A device that is fast enough is never waited for.
    const auto late = function == "clWaitForEvents" ? std::make_unique<LateNews>() : nullptr;
    std::size_t failed = 0;
    for (const auto& scenario : scenarios) {
      for (std::uint64_t n = 1;; n += n < always() ? 1 : stride()) {
        const auto fault = [&] { return std::make_unique<FailingCall>(function.c_str(), CL_OUT_OF_RESOURCES, n); };
        if (!run_with_fault(function + " " + std::to_string(n), scenario, {}, CL_OUT_OF_RESOURCES, true, fault, n)) {
          break;
        }
        ++failed;
      }
    }
    CHECK_MESSAGE(failed > 0, function);
  }
}

TEST_CASE("a device lost at any call of the API is told by every later one, and everything ends") {
  FaultRules rules;
  rules.loses_device = true;
  std::size_t lost = 0;
  for (const auto& scenario : scenarios) {
    for (std::uint64_t n = 1;; n += n < always() ? 1 : stride()) {
      const cl_int status = n % 3 == 0 ? CL_INVALID_COMMAND_QUEUE : n % 3 == 1 ? CL_DEVICE_NOT_AVAILABLE : -9999;
      const auto fault = [&] { return std::make_unique<LosingDevice>(status, n); };
      if (!run_with_fault("lost at call " + std::to_string(n), scenario, rules, status, false, fault, n)) break;
      ++lost;
    }
  }
  CHECK(lost * stride() > 600);  // the programs make more calls than that
}
