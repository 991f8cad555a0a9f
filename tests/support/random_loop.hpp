// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random loops of operations that take their time and compute nothing: for tests of time.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated/options.hpp>
#include <swapmm/base/bytes.hpp>
#include <swapmm/ir/trace.hpp>
#include <swapmm/options.hpp>

namespace swapmm::test {

using std::chrono::nanoseconds;

/// An operation: idles for its duration.
struct LoopStep {
  nanoseconds duration{0};
  std::vector<std::pair<std::size_t, Access>> bundle;  // tensors
  Bytes scratch;
  bool host_reads = false;  // the first tensor of the bundle, behind the operation
};

/// The same steps again and again, on a device and with options of its own.
struct Loop {
  std::vector<Bytes> tensors;
  std::vector<std::size_t> inputs;  // uploaded at the start of each iteration
  std::vector<LoopStep> steps;
  simulated::Options device;
  Options manager;
  SchedulerOptions scheduler;
};

/// Plans are made of one observed iteration, by one of the planners, for the links that the device has.
[[nodiscard]] Loop random_loop(std::uint64_t seed);

}  // namespace swapmm::test
