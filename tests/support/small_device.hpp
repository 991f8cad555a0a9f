// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated device with little on it, for tests of the device itself.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/error.hpp>

namespace swapmm::test {

using SimulatedEvents = std::vector<const simulated::Event*>;

[[nodiscard]] inline simulated::Options ordered(simulated::Order order, std::uint64_t seed = 1) {
  simulated::Options options;
  options.order = order;
  options.seed = seed;
  return options;
}

/// Two places of `size` bytes, two host memories of as many, and four events.
struct SmallDevice {
  static constexpr std::size_t size = 1000;

  explicit SmallDevice(const simulated::Options& options) : b(options) {
    for (int i = 0; i < 4; ++i) event.push_back(b.make_event());
  }

  void upload(int place, std::size_t slot, const SimulatedEvents& waits = {}) {
    b.copy_to_device(place == 0 ? first : second, host, Bytes{0}, Bytes{size}, waits, event[slot]);
  }
  void download(int place, std::size_t slot, const SimulatedEvents& waits = {}) {
    b.copy_to_host(other_host, Bytes{0}, place == 0 ? first : second, Bytes{size}, waits, event[slot]);
  }
  void launch(std::chrono::nanoseconds duration) {
    b.queue().launch("idle", duration, {}, [] {});
  }
  [[nodiscard]] std::span<std::byte> bytes() { return {host.data(), size}; }
  [[nodiscard]] bool reported(std::string_view text) const {
    return std::any_of(b.violations().begin(), b.violations().end(),
                       [&](const std::string& violation) { return violation.find(text) != std::string::npos; });
  }

  simulated::Backend b;
  simulated::DeviceMemory memory = b.allocate(Bytes{2048});
  simulated::Address first = b.address(memory, Bytes{0}, Bytes{size});
  simulated::Address second = b.address(memory, Bytes{1024}, Bytes{size});
  simulated::HostMemory host = b.allocate_host(Bytes{size}, HostKind::pinned);
  simulated::HostMemory other_host = b.allocate_host(Bytes{size}, HostKind::pinned);
  std::vector<simulated::Event> event;
};

/// The kind of the BackendError that `call` throws; device_lost where it throws none.
template <class Call>
[[nodiscard]] BackendError::Kind kind_of_error(Call&& call) {
  try {
    call();
  } catch (const BackendError& error) {
    return error.kind;
  }
  return BackendError::Kind::device_lost;
}

}  // namespace swapmm::test
