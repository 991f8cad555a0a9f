// SPDX-License-Identifier: Apache-2.0
// The checker of a simulated device: bounds, uses after release, unordered accesses. Everything is decided when a
// command is queued, so the result does not depend on the order in which the device then runs.

#include <string>

#include <swapmm/backend/testing/simulated/device.hpp>

namespace swapmm::simulated::detail {

namespace {

std::string range_text(std::uint64_t begin, std::uint64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

std::string agent_text(std::size_t agent, std::uint64_t clock) {
  if (agent >= queue_count) return "the host";
  return std::string(name_of(static_cast<QueueKind>(agent))) + " command " + std::to_string(clock - 1);
}

}  // namespace

/// Returns whether the place may be used, because its block still belongs to it. Reports a violation if not.
bool Device::check_place(const Place& place, std::uint64_t bytes, std::string_view who) {
  const DeviceBlock& block = heap_.block(place.block.number);
  const std::uint64_t offset = static_cast<std::uint64_t>(place.data - heap_.data(0));
  if (block.generation != place.block.generation || block.state != BlockState::live) {
    if (options_.check) {
      report([&] {
        return "use after release: '" + std::string(who) + "' uses device bytes " + range_text(offset, offset + bytes);
      });
    }
    return false;
  }
  if (bytes > place.size) {
    if (options_.check) {
      report([&] {
        return "out of bounds: '" + std::string(who) + "' uses " + std::to_string(bytes) + " bytes of a place of " +
               std::to_string(place.size);
      });
    }
    return false;
  }
  return true;
}

void Device::prepare_device_access(const Place& place, std::uint64_t bytes) {
  const auto begin = static_cast<std::uint64_t>(place.data - heap_.data(0));
  device_shadow_.prepare(begin, begin + bytes);
}

void Device::note_device_access(const Place& place, std::uint64_t bytes, bool write, std::size_t agent,
                                const VectorClock& known, std::string_view who) {
  const auto begin = static_cast<std::uint64_t>(place.data - heap_.data(0));
  device_shadow_.access({begin, begin + bytes, write, agent}, known, conflicts_);
  if (!conflicts_.empty()) report_conflicts(write, who, "device");
}

void Device::note_host_memory_access(HostBlock& block, std::uint64_t begin, std::uint64_t end, bool write,
                                     std::size_t agent, const VectorClock& known, std::string_view who) {
  block.shadow.access({begin, end, write, agent}, known, conflicts_);
  if (!conflicts_.empty()) report_conflicts(write, who, "host memory");
}

void Device::report_conflicts(bool write, std::string_view who, std::string_view where) {
  for (const Conflict& conflict : conflicts_) {
    report([&] {
      return "unordered: '" + std::string(who) + "' " + (write ? "writes " : "reads ") + std::string(where) +
             " bytes " + range_text(conflict.begin, conflict.end) + " that " +
             agent_text(conflict.agent, conflict.clock) + (conflict.was_write ? " writes" : " reads");
    });
  }
  conflicts_.clear();
}

/// Called when the host itself reads or writes host memory. This is not a call of an API, so no step happens in it.
void Device::note_host_access(BlockId host, Bytes offset, Bytes size, bool write) {
  if (!options_.check) return;
  HostBlock& block = host_heap_.block(host.number);
  if (offset.value > block.size || size.value > block.size - offset.value) {
    report([&] {
      return "out of bounds: the host uses bytes " + range_text(offset.value, offset.value + size.value) +
             " of a host memory of " + std::to_string(block.size);
    });
    return;
  }
  block.shadow.prepare(offset.value, offset.value + size.value);
  ++host_clock_.of[host_agent];
  note_host_memory_access(block, offset.value, offset.value + size.value, write, host_agent, host_clock_, "the host");
}

}  // namespace swapmm::simulated::detail
