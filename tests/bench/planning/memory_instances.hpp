// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/ir/trace.hpp>
#include <swapmm/plan/v2/machine.hpp>

namespace swapmm::bench {

/// What a program does; see memory_instances.cpp for the generators.
enum class Shape : std::uint8_t {
  step,       ///< a training step with weights, moments and an input
  stack,      ///< layers forward and backward, of very different sizes; no optimizer
  random,     ///< operations that read what any of the earlier ones wrote
  inference,  ///< weights that nothing changes, and values that live briefly
  recorded,   ///< one of tests/data/traces/g10
};
[[nodiscard]] std::string_view to_string(Shape shape);

/// The memory next to the device.
enum class Near : std::uint8_t {
  neighbour,  ///< spare memory of another device, on a link of its own; the program's data is in the disk's memory
  pinned,     ///< the program's host memory; its link and the disk's share the device's PCIe
};

/// An instance with three memories: the device, a near memory with a limit, and a disk.
struct MemoryInstance {
  Shape shape = Shape::step;
  std::uint32_t size = 0;     ///< layers, or operations; of recorded ones, which
  std::uint64_t seed = 0;     ///< of the generator
  double oversubscribed = 2;  ///< k: peak of live bytes / device budget
  Near near = Near::neighbour;
  double link_ratio = 4;    ///< of the near memory's link to the disk's
  double near_share = 0.3;  ///< capacity of the near memory / (peak of live bytes - device budget)
  /// Seconds in which the disk's link would copy peak - budget, both ways at once, / seconds of computation.
  double pressure = 1;
};

/// The fixed list: 48 instances.
[[nodiscard]] const std::vector<MemoryInstance>& memory_instances();

[[nodiscard]] std::string name_of(const MemoryInstance& instance);
[[nodiscard]] Trace trace_of(const MemoryInstance& instance);
/// The machine for that trace.
[[nodiscard]] v2::Machine machine_of(const MemoryInstance& instance, const Trace& trace);
/// The same machine, but the disk is linked to the near memory, and not to the device.
[[nodiscard]] v2::Machine with_disk_behind(v2::Machine machine);

}  // namespace swapmm::bench
