// SPDX-License-Identifier: Apache-2.0
#include "support/program/scale.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace swapmm::test {
namespace {

/// Padded to `factor` times the alignment it is `factor` times as large as the padded size before.
std::uint32_t scaled(std::uint32_t bytes, std::uint32_t factor) {
  if (bytes % 8 == 0 || factor == 1) return bytes * factor;
  return bytes * factor - (bytes * 2'654'435'761U % factor | 1U);  // less by another number for each size
}

void scale(Bytes& budget, std::uint32_t factor) {
  if (budget.value != std::numeric_limits<std::uint64_t>::max()) budget.value *= factor;
}

}  // namespace

bool limits_memory(const TestProgram& program) {
  return program.device.host_bytes || program.device.pinned_bytes || program.device.max_allocation;
}

TestProgram scaled_to(Bytes alignment, TestProgram program) {
  const auto factor = static_cast<std::uint32_t>(
      std::max<std::uint64_t>(alignment.value / std::max<std::uint64_t>(program.device.alignment.value, 1), 1));
  program.device.alignment = alignment;
  program.device.host_bytes.reset();
  program.device.pinned_bytes.reset();
  program.device.max_allocation.reset();
  scale(program.device.device_bytes, factor);
  scale(program.manager.device_budget, factor);
  scale(program.manager.pinned_budget, factor);
  scale(program.manager.host_budget, factor);
  if (program.file) scale(program.file->capacity, factor);
  for (NeighbourSetup& neighbour : program.neighbours) {
    scale(neighbour.capacity, factor);
    scale(neighbour.largest_allocation, factor);
  }
  program.manager.device_budget = std::max(program.manager.device_budget, alignment);
  for (Action& action : program.actions) {
    if (action.bytes != 0) action.bytes = scaled(action.bytes, factor);
  }
  return program;
}

}  // namespace swapmm::test
