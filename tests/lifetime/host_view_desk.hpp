// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

namespace swapmm::test {

/// The smallest blocks that a view may have, and a tensor of a few of them.
inline constexpr HostViewOptions small_blocks{.block = Bytes{64U << 10U}};
inline constexpr std::size_t block_length = (64U << 10U) / sizeof(int);
inline constexpr std::size_t view_blocks = 8;
inline constexpr std::size_t view_length = view_blocks * block_length;

[[nodiscard]] inline simulated::Backend host_view_device(Bytes bytes) {
  simulated::Options options;
  options.device_bytes = bytes;
  return simulated::Backend(options);
}

struct HostViewDesk {
  explicit HostViewDesk(Bytes budget = Bytes{4U << 20U}, const SchedulerOptions& scheduler = {})
      : manager(device, {.device_budget = budget}, Scheduler(scheduler)) {}
  HostViewDesk(const HostViewDesk&) = delete;
  HostViewDesk& operator=(const HostViewDesk&) = delete;
  ~HostViewDesk() {
    for (const std::string& violation : device.violations()) FAIL_CHECK(violation);
  }
  simulated::Backend device = host_view_device(Bytes{8U << 20U});
  MemoryManager<simulated::Backend> manager;
};

}  // namespace swapmm::test
