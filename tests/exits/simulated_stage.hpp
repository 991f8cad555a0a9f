// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the ways to exit need of the simulated backend.

#include <chrono>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

namespace swapmm::test::stage {

using Device = simulated::Backend;

inline constexpr std::size_t elements = 64;  // of a tensor

/// Every device that was made. Whatever is made after the first call goes before them.
inline std::vector<Device>& devices() {
  static std::vector<Device> all;
  return all;
}

/// Steps come in any order, and some inside calls; most of what is queued stays so until somebody waits.
inline Device make_device() {
  simulated::Options options;
  options.order = simulated::Order::uniform;
  options.pieces = 4;
  devices().emplace_back(options);
  return devices().back();
}

/// Every element becomes `value`.
template <class Operation, class Target>
void queue_set(Operation& op, const Target& target, int value) {
  const auto out = op[target];
  op.queue().launch("set", std::chrono::nanoseconds{1000}, {simulated::Touch::write(out)}, [out, value] {
    for (int& element : out) element = value;
  });
}

/// What is left of objects, or was done wrong; empty: nothing.
inline std::string left_over() {
  std::ostringstream text;
  for (const Device& device : devices()) {
    const simulated::Counters& counters = device.counters();
    if (counters.device_memories.live != 0) text << counters.device_memories.live << " device memories are left; ";
    if (counters.host_memories.live != 0) text << counters.host_memories.live << " host memories are left; ";
    if (counters.addresses.live != 0) text << counters.addresses.live << " addresses are left; ";
    if (counters.events.live != 0) text << counters.events.live << " events are left; ";
    for (const std::string& violation : device.violations()) text << violation << "; ";
  }
  return text.str();
}

/// There is none.
inline void end_driver() {}

/// What a child of fork() does with a manager that it got so is what its parent would have done.
inline constexpr bool child_has_device = true;

}  // namespace swapmm::test::stage
