// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::test::general {

/// Two to four devices, each with a random program of its own or the same, links to a host without limit that share
/// capacities, and sometimes a near memory that all of them can use.
struct DeviceCase {
  Trace trace;
  swapmm::v2::Machine machine;
};

[[nodiscard]] DeviceCase device_case(std::mt19937_64& random, std::size_t most_operations);

/// The programs in one trace, each on the engine gpu0, gpu1 and so on, in a random order that keeps each program's own.
[[nodiscard]] Trace joined(std::mt19937_64& random, const std::vector<Trace>& programs);

}  // namespace swapmm::test::general
