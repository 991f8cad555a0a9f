// SPDX-License-Identifier: Apache-2.0
// Simulated devices on one clock, whose copies share capacities.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/error.hpp>
#include <swapmm/measure_shared_links.hpp>

namespace swapmm::test::shared_clock_test {

using namespace std::chrono_literals;
using simulated::SharedClock;
using Sim = simulated::Backend;
using Events = std::span<const Sim::Event* const>;

constexpr Bytes size{1000};
constexpr std::uint64_t speed = 1'000'000'000;  // a byte each nanosecond

simulated::Options on(const std::shared_ptr<SharedClock>& clock) {
  simulated::Options options;
  options.h2d.bytes_per_second = options.d2h.bytes_per_second = speed;
  options.clock = clock;
  options.log = true;
  return options;
}

/// A device with a place and host memory.
struct Device {
  explicit Device(const simulated::Options& options)
      : backend(options),
        memory(backend.allocate(size)),
        host(backend.allocate_host(size, HostKind::pinned)),
        out(backend.allocate_host(size, HostKind::pinned)),
        place(backend.address(memory, Bytes{}, size)),
        event(backend.make_event()) {
    for (std::size_t i = 0; i < size.value; ++i) host.data()[i] = static_cast<std::byte>(i);
  }
  void copy_in(Events waits = {}) { backend.copy_to_device(place, host, Bytes{}, size, waits, event); }
  void copy_out(Events waits = {}) { backend.copy_to_host(out, Bytes{}, place, size, waits, event); }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> last() const {
    return {backend.log().back().start.count(), backend.log().back().end.count()};
  }

  Sim backend;
  Sim::DeviceMemory memory;
  Sim::HostMemory host;
  Sim::HostMemory out;
  Sim::Address place;
  Sim::Event event;
};

using Times = std::pair<std::int64_t, std::int64_t>;

TEST_CASE("copies of two devices share a capacity") {
  SUBCASE("in equal parts") {
    const auto clock = std::make_shared<SharedClock>(LinkCapacities{.to_devices = speed});
    Device a(on(clock));
    Device b(on(clock));
    a.copy_in();
    b.copy_in();
    CHECK(a.backend.status(a.event) == EventStatus::running);
    a.backend.wait(a.event);
    CHECK(clock->now() == 2000ns);
    CHECK(b.backend.status(b.event) == EventStatus::complete);
    CHECK(a.last() == Times{0, 2000});
    CHECK(b.last() == Times{0, 2000});
  }
  SUBCASE("what one does not take is left to the other") {
    const auto clock = std::make_shared<SharedClock>(LinkCapacities{.from_devices = speed});
    simulated::Options slow = on(clock);
    slow.d2h.bytes_per_second = speed / 4;
    Device a(slow);
    Device b(on(clock));
    a.copy_in();
    b.copy_in();
    a.backend.finish();
    b.backend.finish();
    REQUIRE(clock->now() == 1000ns);  // nothing is shared on the way in
    a.copy_out();
    b.copy_out();
    b.backend.wait(b.event);
    CHECK(b.last() == Times{1000, 2334});  // three quarters of the speed: 1333.3 ns
    a.backend.wait(a.event);
    CHECK(a.last() == Times{1000, 5000});  // a quarter, all the time
  }
  SUBCASE("both ways") {
    const auto clock = std::make_shared<SharedClock>(LinkCapacities{.both_ways = speed});
    Device a(on(clock));
    Device b(on(clock));
    a.copy_in();
    a.backend.finish();
    a.copy_out();
    b.copy_in();
    b.backend.wait(b.event);
    CHECK(b.last() == Times{1000, 3000});
    CHECK(a.last() == Times{1000, 3000});
  }
  SUBCASE("a copy that comes later slows down the one that is under way") {
    const auto clock = std::make_shared<SharedClock>(LinkCapacities{.to_devices = speed});
    simulated::Options late = on(clock);
    late.h2d.latency = 500ns;
    Device a(on(clock));
    Device b(late);
    a.copy_in();
    b.copy_in();
    a.backend.wait(a.event);
    CHECK(a.last() == Times{0, 1500});
    b.backend.wait(b.event);
    CHECK(b.last() == Times{0, 2000});
  }
  SUBCASE("and nothing else") {
    const auto clock = std::make_shared<SharedClock>();
    Device a(on(clock));
    Device b(on(clock));
    a.copy_in();
    b.copy_in();
    b.backend.wait(b.event);
    CHECK(clock->now() == 1000ns);
  }
}

TEST_CASE("a queue waits for another device on the same clock") {
  const auto clock = std::make_shared<SharedClock>();
  Device a(on(clock));
  Device b(on(clock));
  CHECK(a.backend.can_wait_for(b.backend));
  a.copy_in();
  const Sim::Event* const wait = &a.event;
  b.copy_in({&wait, 1});
  b.backend.wait(b.event);
  CHECK(b.last() == Times{1000, 2000});
  CHECK(std::equal(b.host.data(), b.host.data() + size.value, a.host.data()));
  CHECK(b.backend.violations().empty());

  SUBCASE("whose work fails: what waits for it fails, too") {
    a.backend.fail(QueueKind::h2d);
    a.copy_in();
    b.copy_in({&wait, 1});
    CHECK_THROWS_AS(b.backend.wait(b.event), BackendError);
    CHECK(b.backend.status(b.event) == EventStatus::failed);
  }
  SUBCASE("that is gone: nothing is left to wait for") {
    {
      std::optional<Device> c(std::in_place, on(clock));
      c->copy_in();
      const Sim::Event* const last = &c->event;
      b.copy_in({&last, 1});
    }
    b.backend.wait(b.event);
    CHECK(b.last() == Times{2000, 3000});
  }
}

TEST_CASE("devices without the same clock do not wait for each other") {
  Device a(on(std::make_shared<SharedClock>()));
  Device b(on(std::make_shared<SharedClock>()));
  Device c(on(nullptr));
  CHECK(!a.backend.can_wait_for(b.backend));
  CHECK(!a.backend.can_wait_for(c.backend));
  CHECK(!c.backend.can_wait_for(c.backend));
  a.copy_in();
  const Sim::Event* const wait = &a.event;
  CHECK_THROWS_AS(b.copy_in({&wait, 1}), BackendError);
}

TEST_CASE("time passes while the host waits or computes, and is the same for all") {
  const auto clock = std::make_shared<SharedClock>(LinkCapacities{.to_devices = speed});
  Device a(on(clock));
  Device b(on(clock));
  a.backend.set_timing(true);
  Sim::Event begin = a.backend.make_event();
  a.backend.record(QueueKind::h2d, begin);
  a.copy_in();
  b.copy_in();
  a.backend.pass_time(700ns);
  CHECK(b.backend.now() == 700ns);
  CHECK(a.backend.status(a.event) == EventStatus::running);
  a.backend.pass_time(5000ns);
  CHECK(a.backend.status(a.event) == EventStatus::complete);
  CHECK(a.last() == Times{0, 2000});
  CHECK(a.backend.elapsed(begin, a.event) == 2000ns);
  CHECK(clock->now() == 5000ns);
  b.copy_in();
  a.backend.finish();  // has nothing to wait for
  CHECK(clock->now() == 5000ns);
  CHECK(b.backend.status(b.event) == EventStatus::running);
}

TEST_CASE("a shared clock needs virtual time and both copy engines") {
  simulated::Options options = on(std::make_shared<SharedClock>());
  options.order = simulated::Order::uniform;
  CHECK_THROWS_AS(Sim{options}, BackendError);
  options.order = simulated::Order::virtual_time;
  options.half_duplex = true;
  CHECK_THROWS_AS(Sim{options}, BackendError);
}

TEST_CASE("measured: what devices share") {
  const auto measured = [](const LinkCapacities& capacities, std::size_t count, std::uint64_t first_speed = speed) {
    const auto clock = std::make_shared<SharedClock>(capacities);
    simulated::Options options = on(clock);
    options.device_bytes = Bytes{1U << 16U};
    std::vector<Sim> devices;
    for (std::size_t i = 0; i < count; ++i) {
      options.h2d.bytes_per_second = first_speed;
      if (i > 0) options.h2d.bytes_per_second = speed;
      devices.emplace_back(options);
    }
    return measure_shared_links(std::span(devices), Bytes{10'000});
  };
  const auto is_near = [](std::uint64_t seen, double expected) {
    return static_cast<double>(seen) > 0.99 * expected && static_cast<double>(seen) < 1.01 * expected;
  };
  CHECK(measured({}, 2).empty());
  CHECK(measured({.to_devices = speed, .from_devices = speed}, 1).empty());
  const LinkCapacities ways = measured({.to_devices = speed, .from_devices = 3 * speed / 2}, 2);
  CHECK(is_near(ways.to_devices, 1e9));
  CHECK(is_near(ways.from_devices, 1.5e9));
  CHECK(ways.both_ways == 0);
  CHECK(measured({}, 3, speed / 5).empty());
  CHECK(is_near(measured({.to_devices = speed}, 2, speed / 4).to_devices, 1e9));
  const LinkCapacities both = measured({.both_ways = speed}, 3);
  CHECK(is_near(both.both_ways, 1e9));
}

}  // namespace swapmm::test::shared_clock_test
