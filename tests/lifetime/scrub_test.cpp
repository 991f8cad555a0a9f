// SPDX-License-Identifier: Apache-2.0
// Options::scrub: what goes back to the driver or to the host's allocator is zero.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/small_program.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

/// What was seen of memory as it went back.
struct Released {
  std::size_t memories = 0;
  std::size_t bytes = 0;
  std::size_t not_zero = 0;

  [[nodiscard]] simulated::Options watch(simulated::Options options = {}) {
    options.at_release = [this](std::span<const std::byte> memory) {
      ++memories;
      bytes += memory.size();
      const auto zero = std::count(memory.begin(), memory.end(), std::byte{0});
      not_zero += memory.size() - static_cast<std::size_t>(zero);
    };
    return options;
  }
};

/// Values of which no byte is 0, on the device and on the host.
template <Backend B>
std::vector<Tensor<int, B>> secrets(MemoryManager<B>& manager) {
  std::vector<Tensor<int, B>> tensors;
  for (int i = 0; i < 6; ++i) {
    tensors.push_back(manager.template tensor<int>({length}, "secret" + std::to_string(i)));
    set(manager, tensors.back(), 0x5A5A5A5A + i);
  }
  for (int round = 0; round < 4; ++round) {
    const auto iteration = manager.iteration();
    for (auto& tensor : tensors) increase(manager, tensor, 1);
  }
  return tensors;
}

const Options scrubbed{.device_budget = 256_bytes, .scrub = true};

}  // namespace

TEST_CASE("without the option values lie in what goes back") {
  Released seen;
  {
    Simulated device(seen.watch());
    MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
    (void)secrets(manager);
  }
  CHECK(seen.not_zero > 256);
}

TEST_CASE("with it all device and host memory is zero when it goes, with work in flight, on demand and by a plan") {
  for (const std::uint64_t host_slab : {0U, 4096U}) {
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
      CAPTURE(host_slab);
      CAPTURE(seed);
      Released seen;
      simulated::Options options;
      options.order = simulated::Order::uniform;
      options.seed = seed;
      options.host_slab = Bytes{host_slab};
      Simulated device(seen.watch(options));
      {
        MemoryManager<Simulated> manager(device, scrubbed);
        auto tensors = secrets(manager);
        if (seed % 2 == 0) tensors.clear();
        set(manager, manager.tensor<int>({length}, "late"), 0x5A5A5A5A);
      }
      CHECK(seen.memories > 1);
      CHECK(seen.bytes > 256);
      CHECK(seen.not_zero == 0);
      check_clean(device);
    }
  }
}

TEST_CASE("it holds for arenas, for kept host memory that is given up, and for set_budget()") {
  Released seen;
  simulated::Options options;
  options.max_allocation = 96_bytes;
  Simulated device(seen.watch(options));
  {
    MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .host_budget = 1_KiB, .scrub = true});
    auto tensors = secrets(manager);
    const std::size_t before = seen.memories;
    manager.set_budget(192_bytes);
    CHECK(seen.memories > before);
    CHECK(seen.not_zero == 0);
    for (int i = 0; i < 6; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], 0x5A5A5A5A + i + 4));
    // Another size needs what is kept for reuse.
    const std::size_t held = seen.memories;
    tensors.clear();
    auto large = manager.tensor<int>({160}, "large");
    large.upload(std::vector<int>(160, 0x5A5A5A5A));
    CHECK(seen.memories > held);
    CHECK(seen.not_zero == 0);
  }
  CHECK(seen.not_zero == 0);
  check_clean(device);
}

TEST_CASE("it works beside check_access, and needs room for a block of zeros in the host budget") {
  Released seen;
  Simulated device(seen.watch());
  {
    MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes, .check_access = true, .scrub = true});
    (void)secrets(manager);
  }
  CHECK(seen.not_zero == 0);
  CHECK_THROWS_AS(
      MemoryManager<Simulated>(device, {.device_budget = 256_bytes, .host_budget = 255_bytes, .scrub = true}),
      OutOfMemory);
  check_clean(device);
}

TEST_CASE("where the device takes no copy any more, host memory is zero all the same, and nothing is thrown") {
  for (const FaultMode mode : {FaultMode::for_ever, FaultMode::device_lost, FaultMode::late}) {
    Released seen;
    Simulated inner(seen.watch());
    {
      FaultySimulated device(inner);
      MemoryManager<FaultySimulated> manager(device, scrubbed);
      auto tensors = secrets(manager);
      manager.synchronize();
      device.restart({FaultClass::copy_to_device, mode, 1});
    }
    CHECK(seen.not_zero <= 256);  // the device's
    check_clean(inner);
  }
}

TEST_CASE("where it cannot be done, set_budget() says so, and nothing has changed") {
  Simulated inner;
  FaultySimulated device(inner);
  {
    MemoryManager<FaultySimulated> manager(device, scrubbed);
    const auto tensors = secrets(manager);
    device.restart({FaultClass::copy_to_device, FaultMode::once, 1});
    (void)text_of<BackendError>([&] { manager.set_budget(192_bytes); });
    CHECK(manager.report().device_budget == 256_bytes);
    for (int i = 0; i < 6; ++i) CHECK(holds(tensors[static_cast<std::size_t>(i)], 0x5A5A5A5A + i + 4));
    CHECK(probe(manager));
  }
  check_clean(inner);
}
