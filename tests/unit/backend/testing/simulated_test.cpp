// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/simulated.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include <swapmm/backend/testing/simulated/pattern.hpp>
#include <swapmm/error.hpp>

#include "support/failing_new.hpp"
#include "support/small_device.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace std::chrono_literals;
using simulated::Order;
using simulated::Touch;

namespace {

using B = simulated::Backend;
using ByteView = simulated::View<std::byte>;

}  // namespace

TEST_CASE("the virtual clock follows queues, events, bandwidths and the host") {
  auto options = ordered(Order::virtual_time);
  options.h2d = {1'000'000'000, 100ns};
  options.d2h = {3'000'000'000, 0ns};
  options.log = true;
  SmallDevice small(options);
  small.upload(0, 0);                                                  // 0 .. 1100
  small.upload(1, 1);                                                  // 1100 .. 2200
  small.b.wait(QueueKind::compute, SimulatedEvents{&small.event[0]});  // ends at 1100
  small.launch(500ns);                                                 // 1100 .. 1600
  small.b.record(QueueKind::compute, small.event[2]);                  // 1600
  small.download(0, 3, {&small.event[2]});                             // 1600 .. 1600 + 333.3 rounded up
  CHECK(small.b.now() == 0ns);
  CHECK(small.b.status(small.event[0]) == EventStatus::running);

  small.b.wait(small.event[0]);
  CHECK(small.b.now() == 1100ns);
  CHECK(small.b.status(small.event[0]) == EventStatus::complete);
  CHECK(small.b.status(small.event[1]) == EventStatus::running);
  small.b.wait(small.event[3]);
  CHECK(small.b.now() == 1934ns);
  CHECK(small.b.status(small.event[2]) == EventStatus::complete);
  CHECK(small.b.status(small.event[1]) == EventStatus::running);

  small.launch(7ns);  // queued at 1934: 1934 .. 1941
  small.b.finish();
  CHECK(small.b.now() == 2200ns);
  small.b.wait(small.event[0]);
  CHECK(small.b.now() == 2200ns);

  const auto& log = small.b.log();
  REQUIRE(log.size() == 7);
  const std::array<std::pair<int, int>, 7> times{
      {{0, 1100}, {1100, 2200}, {1100, 1100}, {1100, 1600}, {1600, 1600}, {1600, 1934}, {1934, 1941}}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    CHECK(log[i].start == std::chrono::nanoseconds{times[i].first});
    CHECK(log[i].end == std::chrono::nanoseconds{times[i].second});
  }
  CHECK(log[3].name == "idle");
  CHECK(log[5].bytes == Bytes{1000});
}

TEST_CASE("with half duplex both directions share one engine in the order of issue") {
  for (const bool half : {false, true}) {
    auto options = ordered(Order::virtual_time);
    options.half_duplex = half;
    SmallDevice small(options);
    CHECK(small.b.capabilities().copy_engines == (half ? 1 : 2));
    small.launch(300ns);
    small.b.record(QueueKind::compute, small.event[0]);
    small.download(1, 1, {&small.event[0]});  // 300 .. 1300
    small.upload(0, 2);                       // 0 .. 1000, or 1300 .. 2300 behind the download
    small.b.wait(small.event[2]);
    CHECK(small.b.now() == (half ? 2300ns : 1000ns));
  }
}

TEST_CASE("copies take exact times, rounded up, beyond 64 bits in between") {
  auto options = ordered(Order::virtual_time);
  options.device_bytes = Bytes{std::uint64_t{64} << 20U};
  options.h2d = {3, 5ns};
  B b(options);
  auto memory = b.allocate(Bytes{20'000'000});
  auto place = b.address(memory, Bytes{0}, Bytes{20'000'000});
  auto host = b.allocate_host(Bytes{20'000'000}, HostKind::pinned);
  auto event = b.make_event();
  b.copy_to_device(place, host, Bytes{0}, Bytes{1}, {}, event);
  b.wait(event);
  CHECK(b.now() == 333'333'339ns);
  b.copy_to_device(place, host, Bytes{0}, Bytes{20'000'000}, {}, event);
  b.wait(event);
  CHECK(b.now() == 333'333'339ns + 6'666'666'666'666'672ns);
}

TEST_CASE("timed events know the time between them") {
  SmallDevice small(ordered(Order::virtual_time));
  small.b.set_timing(true);
  small.b.record(QueueKind::compute, small.event[0]);
  small.launch(123ns);
  small.b.record(QueueKind::compute, small.event[1]);
  CHECK(small.b.elapsed(small.event[0], small.event[1]) == std::nullopt);
  small.b.finish();
  CHECK(small.b.elapsed(small.event[0], small.event[1]) == 123ns);
}

TEST_CASE("a kernel that throws fails its event, what waits for it, and nothing else") {
  for (const Order order : {Order::virtual_time, Order::uniform}) {
    SmallDevice small(ordered(order, 3));
    bool ran = false;
    small.b.queue().launch("bad", 1ns, {}, [] { throw std::runtime_error("no such thing"); });
    small.b.queue().launch("behind it", 1ns, {}, [&] { ran = true; });
    small.b.record(QueueKind::compute, small.event[0]);
    small.upload(0, 1, {&small.event[0]});
    small.upload(1, 2);
    small.launch(1ns);
    small.b.record(QueueKind::compute, small.event[3]);
    small.b.finish();
    CHECK(small.b.status(small.event[0]) == EventStatus::failed);
    CHECK(small.b.status(small.event[1]) == EventStatus::failed);
    CHECK(small.b.status(small.event[2]) == EventStatus::complete);
    CHECK(small.b.status(small.event[3]) == EventStatus::complete);
    CHECK_FALSE(ran);
    CHECK(small.first.data()[0] == simulated::fresh_byte);
    CHECK_THROWS_WITH_AS(small.b.wait(small.event[1]), "simulated device: work failed: no such thing", BackendError);
    small.b.wait(small.event[2]);
  }
}

TEST_CASE("a kernel may not call the device it runs on") {
  SmallDevice small(ordered(Order::virtual_time));
  small.b.queue().launch("nested", 1ns, {}, [&] { small.b.finish(); });
  small.b.record(QueueKind::compute, small.event[0]);
  CHECK(kind_of_error([&] { small.b.wait(small.event[0]); }) == BackendError::Kind::failed);
}

TEST_CASE("memory released under queued work stays until that work has ended") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto options = ordered(Order::uniform, seed);
    options.device_bytes = Bytes{4096};
    SmallDevice small(options);
    simulated::fill(small.bytes(), 3, 3);
    auto memory = std::optional(small.b.allocate(Bytes{2048}));
    const auto place = small.b.address(*memory, Bytes{0}, Bytes{SmallDevice::size});
    small.b.copy_to_device(place, small.host, Bytes{0}, Bytes{SmallDevice::size}, {}, small.event[0]);
    small.b.copy_to_host(small.other_host, Bytes{0}, place, Bytes{SmallDevice::size}, SimulatedEvents{&small.event[0]},
                         small.event[1]);
    memory.reset();
    const auto again = small.b.allocate(Bytes{2048});  // the device is full until the copies have ended
    small.b.finish();
    CHECK(simulated::check(std::span<const std::byte>(small.other_host.data(), SmallDevice::size), 3, 3).found ==
          simulated::Found::exact);
    CHECK(small.b.violation_count() == 0);
    CHECK(small.b.counters().device_bytes == Bytes{4096});
  }
}

TEST_CASE("limits of device and host memory hold, and leave the device usable") {
  auto options = ordered(Order::virtual_time);
  options.device_bytes = Bytes{256};
  options.alignment = Bytes{64};
  options.max_allocation = Bytes{128};
  options.host_bytes = Bytes{100};
  options.pinned_bytes = Bytes{60};
  B b(options);
  const auto device = BackendError::Kind::out_of_device_memory;
  const auto host = BackendError::Kind::out_of_host_memory;
  CHECK(kind_of_error([&] { (void)b.allocate(Bytes{129}); }) == device);
  auto first = b.allocate(Bytes{128});
  auto second = b.allocate(Bytes{65});  // occupies 128
  CHECK(kind_of_error([&] { (void)b.allocate(Bytes{1}); }) == device);
  CHECK(kind_of_error([&] { (void)b.address(second, Bytes{32}, Bytes{1}); }) == BackendError::Kind::failed);
  CHECK(kind_of_error([&] { (void)b.address(second, Bytes{64}, Bytes{2}); }) == BackendError::Kind::failed);
  auto pinned = b.allocate_host(Bytes{60}, HostKind::pinned);
  CHECK(kind_of_error([&] { (void)b.allocate_host(Bytes{1}, HostKind::pinned); }) == host);
  auto pageable = std::optional(b.allocate_host(Bytes{40}, HostKind::pageable));
  CHECK(kind_of_error([&] { (void)b.allocate_host(Bytes{1}, HostKind::pageable); }) == host);
  pageable.reset();
  pageable = b.allocate_host(Bytes{40}, HostKind::pageable);
  CHECK(b.counters().peak_device_bytes == Bytes{193});
  CHECK(b.counters().peak_host_bytes == Bytes{100});
  CHECK(b.counters().pinned_bytes == Bytes{60});
}

TEST_CASE("counters tell what lives and what was queued") {
  std::optional<SmallDevice> small(ordered(Order::virtual_time));
  B b = small->b;
  small->upload(0, 0);
  b.wait(QueueKind::compute, SimulatedEvents{&small->event[0], &small->event[1]});
  small->launch(1ns);
  small->b.wait(small->event[0]);
  small->b.wait(small->event[0]);
  const auto& counters = b.counters();
  CHECK(counters.device_memories.live == 1);
  CHECK(counters.addresses.live == 2);
  CHECK(counters.host_memories.live == 2);
  CHECK(counters.events.live == 4);
  CHECK(counters.count(simulated::CommandKind::copy_to_device) == 1);
  CHECK(counters.count(simulated::CommandKind::kernel) == 1);
  CHECK(counters.count(simulated::CommandKind::wait) == 1);
  CHECK(counters.waited_events == 2);
  CHECK(counters.host_waits == 2);
  CHECK(counters.host_waits_blocked == 1);
  b.finish();
  small.reset();
  CHECK(counters.device_memories.live == 0);
  CHECK(counters.addresses.live == 0);
  CHECK(counters.host_memories.live == 0);
  CHECK(counters.events.live == 0);
  CHECK(counters.device_bytes == Bytes{0});
  CHECK(counters.host_bytes == Bytes{0});
  CHECK(counters.events.made == 4);
}

TEST_CASE("what is queued when the last handle goes is discarded with what it holds") {
  auto held = std::make_shared<int>(1);
  {
    SmallDevice small(ordered(Order::virtual_time));
    small.b.queue().launch("holder", 1ns, {}, [held] { FAIL("it ran"); });
    std::array<char, 500> large{};
    small.b.queue().launch("large holder", 1ns, {}, [held, large] { FAIL(large.size()); });
    CHECK(held.use_count() == 3);
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("the steady state allocates nothing") {
  auto options = ordered(Order::uniform);
  options.pieces = 4;
  SmallDevice small(options);
  const auto iteration = [&] {
    small.upload(0, 0, {&small.event[1]});
    const std::array<const simulated::Event*, 1> waits{&small.event[0]};
    small.b.wait(QueueKind::compute, waits);
    const ByteView view(small.first, SmallDevice::size);
    small.b.queue().launch("add", 1ns, {Touch::write(view)}, [view] { view[0] = std::byte{1}; });
    small.b.adopt(small.event[2], small.b.queue().launch("second form", 1ns, {Touch::write(view)},
                                                         small.b.wait_list(waits), [view] { view[1] = std::byte{1}; }));
    small.b.record(QueueKind::compute, small.event[1]);
    small.b.flush(QueueKind::compute);
    small.b.wait(small.event[1]);
  };
  for (int i = 0; i < 50; ++i) iteration();
  const std::uint64_t before = allocations();
  for (int i = 0; i < 50; ++i) iteration();
  const std::uint64_t vectors_of_this_test = 50;
  CHECK(allocations() - before == vectors_of_this_test);
  CHECK(small.b.violation_count() == 0);
}

TEST_CASE("a launch that runs out of host memory has queued nothing") {
  std::uint64_t failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    SmallDevice small(ordered(Order::virtual_time));
    const ByteView view(small.first, SmallDevice::size);
    bool fired = false;
    {
      const FailingNew failing(n);
      try {
        for (int i = 0; i < 40; ++i) {
          small.b.queue().launch("add", 1ns, {Touch::write(view)}, [] {});
          small.b.record(QueueKind::compute, small.event[0]);
          small.b.copy_to_device(small.second, small.host, Bytes{0}, Bytes{5}, {}, small.event[1]);
        }
      } catch (const std::bad_alloc&) {
        fired = failing.fired();
      }
    }
    if (!fired) break;
    ++failures;
    small.upload(0, 0, {&small.event[0]});
    small.b.wait(small.event[0]);
    small.b.finish();
    CHECK(small.b.violation_count() == 0);
    CHECK(small.first.data()[0] == small.host.data()[0]);
  }
  CHECK(failures > 3);
}

TEST_CASE("holes of freed memories join, and the one freed last is used first") {
  auto options = ordered(Order::virtual_time);
  options.device_bytes = Bytes{256};
  options.alignment = Bytes{64};
  B b(options);
  std::vector<std::optional<simulated::DeviceMemory>> memories(4);
  for (auto& memory : memories) memory = b.allocate(Bytes{64});
  const auto place_of = [&](simulated::DeviceMemory& memory) { return b.address(memory, Bytes{0}, Bytes{1}).data(); };
  const auto* const third = place_of(*memories[2]);
  memories[0].reset();
  memories[2].reset();
  memories[2] = b.allocate(Bytes{64});
  CHECK(place_of(*memories[2]) == third);

  const auto* const second = place_of(*memories[1]);
  for (const bool left_first : {true, false}) {
    memories[left_first ? 1 : 2].reset();
    memories[left_first ? 2 : 1].reset();
    if (!memories[0]) memories[0] = b.allocate(Bytes{64});
    CHECK(kind_of_error([&] { (void)b.allocate(Bytes{129}); }) == BackendError::Kind::out_of_device_memory);
    std::optional<simulated::DeviceMemory> both = b.allocate(Bytes{128});
    CHECK(place_of(*both) == second);
    both.reset();
    memories[1] = b.allocate(Bytes{64});
    memories[2] = b.allocate(Bytes{64});
  }
}

TEST_CASE("a command that is refused leaves no wait behind") {
  auto options = ordered(Order::copies_first);
  options.steps_in_calls = false;
  SmallDevice small(options);
  small.launch(1ns);
  small.b.record(QueueKind::compute, small.event[0]);
  const SimulatedEvents first{&small.event[0]};
  CHECK(kind_of_error([&] {
          small.b.copy_to_device(small.first, small.host, Bytes{1}, Bytes{SmallDevice::size}, first, small.event[2]);
        }) == BackendError::Kind::failed);
  small.launch(1ns);
  small.b.record(QueueKind::compute, small.event[1]);
  small.upload(0, 2, {&small.event[1]});
  small.b.step(3);
  CHECK(small.b.status(small.event[0]) == EventStatus::complete);
  CHECK(small.b.status(small.event[1]) == EventStatus::running);
  CHECK(small.b.status(small.event[2]) == EventStatus::running);
  small.b.finish();
  CHECK(small.b.status(small.event[2]) == EventStatus::complete);
}
