// SPDX-License-Identifier: Apache-2.0
#include <swapmm/backend/testing/faulty.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/error.hpp>

#include "support/memory_file.hpp"
#include "support/small_device.hpp"

using namespace swapmm;
using namespace std::chrono_literals;
using simulated::Order;
using simulated::Touch;

namespace {

using F = Faulty<simulated::Backend>;
using Events = std::vector<const F::Event*>;
static_assert(Backend<F>);

/// One object of each kind on a faulty backend that does nothing wrong yet.
struct Fixture {
  static constexpr std::size_t size = 64;

  explicit Fixture(Order order = Order::virtual_time, std::uint64_t seed = 1)
      : f(simulated::Backend(test::ordered(order, seed))) {
    for (int i = 0; i < 4; ++i) event.push_back(f.make_event());
    std::fill_n(host.data(), size, std::byte{5});
    std::fill_n(other_host.data(), size, std::byte{0});
    file.reserve(Bytes{size});
  }

  void upload(std::size_t slot = 0, const Events& waits = {}) {
    f.copy_to_device(place, host, Bytes{0}, Bytes{size}, waits, event[slot]);
  }
  void download(std::size_t slot = 1, const Events& waits = {}) {
    f.copy_to_host(other_host, Bytes{0}, place, Bytes{size}, waits, event[slot]);
  }

  /// One call of the class.
  void act(FaultClass fault_class) {
    switch (fault_class) {
      case FaultClass::device_allocation: (void)f.allocate(Bytes{16}); break;
      case FaultClass::pinned_allocation: (void)f.allocate_host(Bytes{16}, HostKind::pinned); break;
      case FaultClass::pageable_allocation: (void)f.allocate_host(Bytes{16}, HostKind::pageable); break;
      case FaultClass::address_creation: (void)f.address(memory, Bytes{0}, Bytes{16}); break;
      case FaultClass::event_creation: (void)f.make_event(); break;
      case FaultClass::copy_to_device: upload(); break;
      case FaultClass::copy_to_host: download(); break;
      case FaultClass::read_file: f.read_file(file, Bytes{0}, other_host, Bytes{0}, Bytes{16}, {}, event[2]); break;
      case FaultClass::write_file: f.write_file(file, Bytes{0}, host, Bytes{0}, Bytes{16}, {}, event[2]); break;
      case FaultClass::record: f.record(QueueKind::compute, event[2]); break;
      case FaultClass::barrier_wait: f.wait(QueueKind::compute, Events{&event[0]}); break;
      case FaultClass::host_wait: f.wait(event[3]); break;
      case FaultClass::status_query: (void)f.status(event[3]); break;
      case FaultClass::finish: f.finish(); break;
      case FaultClass::flush: f.flush(QueueKind::h2d); break;
      case FaultClass::queue_access: (void)f.queue(); break;
      case FaultClass::adopt: f.adopt(event[3], {}); break;
      case FaultClass::timing: f.set_timing(false); break;
      case FaultClass::launch: f.launch([&] { f.inner().queue().launch("one", 1ns, {}, [] {}); }); break;
      case FaultClass::user_callback: f.fault_point(); break;
    }
  }
  /// What the call throws.
  std::optional<BackendError> error_of(auto&& call) {
    try {
      call();
    } catch (const BackendError& error) {
      return error;
    }
    return std::nullopt;
  }
  std::optional<BackendError> error_of_act(FaultClass fault_class) {
    return error_of([&] { act(fault_class); });
  }
  /// A round trip through every kind of call brings the right bytes.
  bool works() {
    auto probe_memory = f.allocate(Bytes{size});
    auto probe = f.address(probe_memory, Bytes{0}, Bytes{size});
    auto up = f.make_event();
    auto down = f.make_event();
    std::fill_n(other_host.data(), size, std::byte{0});
    f.copy_to_device(probe, host, Bytes{0}, Bytes{size}, {}, up);
    f.wait(QueueKind::compute, Events{&up});
    const F::View<std::byte> view(probe, size);
    f.queue().launch("add", 1ns, {Touch::write(view)}, [view] { view[0] = std::byte{6}; });
    f.record(QueueKind::compute, event[2]);
    f.copy_to_host(other_host, Bytes{0}, probe, Bytes{size}, Events{&event[2]}, down);
    f.wait(down);
    return f.status(down) == EventStatus::complete && other_host.data()[0] == std::byte{6} &&
           other_host.data()[1] == std::byte{5};
  }

  test::MemoryFile file{Bytes{size}, Bytes{1}};
  F f;
  F::DeviceMemory memory = f.allocate(Bytes{256});
  F::Address place = f.address(memory, Bytes{0}, Bytes{size});
  F::HostMemory host = f.allocate_host(Bytes{size}, HostKind::pinned);
  F::HostMemory other_host = f.allocate_host(Bytes{size}, HostKind::pinned);
  std::vector<F::Event> event;
};

void for_each_class(FaultMode mode, auto&& visit) {
  for (std::size_t i = 0; i < fault_class_count; ++i) {
    const auto fault_class = static_cast<FaultClass>(i);
    if (!applicable(fault_class, mode) || fault_class == FaultClass::user_callback) continue;
    CAPTURE(std::string(to_string(fault_class)));
    visit(fault_class);
  }
}

BackendError::Kind kind_for(FaultClass fault_class) {
  if (fault_class == FaultClass::device_allocation) return BackendError::Kind::out_of_device_memory;
  const bool host = fault_class == FaultClass::pinned_allocation || fault_class == FaultClass::pageable_allocation;
  return host ? BackendError::Kind::out_of_host_memory : BackendError::Kind::failed;
}

}  // namespace

TEST_CASE("once: the n-th call of the class throws, does nothing, and the backend works on") {
  for_each_class(FaultMode::once, [](FaultClass fault_class) {
    Fixture fixture;
    fixture.f.restart({fault_class, FaultMode::once, 2});
    CHECK_FALSE(fixture.error_of_act(fault_class).has_value());
    CHECK(fixture.f.fired() == 0);
    const auto made_before = fixture.f.inner().counters();
    const auto error = fixture.error_of_act(fault_class);
    REQUIRE(error.has_value());
    CHECK(error->kind == kind_for(fault_class));
    CHECK(error->code == injected_code);
    CHECK(error->what() == "injected fault: " + std::string(to_string(fault_class)) + " 2, once");
    const auto& made = fixture.f.inner().counters();
    CHECK(made.device_memories.made == made_before.device_memories.made);
    CHECK(made.host_memories.made == made_before.host_memories.made);
    CHECK(made.addresses.made == made_before.addresses.made);
    CHECK(made.events.made == made_before.events.made);
    for (std::size_t i = 0; i < simulated::command_kind_count; ++i) CHECK(made.queued[i] == made_before.queued[i]);
    CHECK(fixture.f.fired() == 1);
    CHECK(fixture.f.calls(fault_class) == 2);
    CHECK_FALSE(fixture.error_of_act(fault_class).has_value());
    CHECK(fixture.works());
    CHECK(fixture.f.fired() == 1);
  });
}

TEST_CASE("for ever: the n-th call and all later ones of the class throw, others work") {
  for_each_class(FaultMode::for_ever, [](FaultClass fault_class) {
    Fixture fixture;
    fixture.f.restart({fault_class, FaultMode::for_ever, 2});
    CHECK_FALSE(fixture.error_of_act(fault_class).has_value());
    for (int i = 0; i < 3; ++i) CHECK(fixture.error_of_act(fault_class).has_value());
    CHECK(fixture.f.fired() == 3);
    for_each_class(FaultMode::for_ever, [&](FaultClass other) {
      if (other != fault_class) CHECK_FALSE(fixture.error_of_act(other).has_value());
    });
    fixture.f.restart({});
    CHECK(fixture.works());
  });
}

TEST_CASE("device lost: every later call throws, events report failed, and nothing runs any more") {
  for_each_class(FaultMode::device_lost, [](FaultClass fault_class) {
    Fixture fixture(Order::uniform);
    fixture.upload();
    fixture.f.restart({fault_class, FaultMode::device_lost, 1});
    for_each_class(FaultMode::device_lost, [&](FaultClass other) {
      if (other == FaultClass::status_query && fixture.f.fired() > 0) return;
      if (other < fault_class) return;  // those before it still work
      const auto error = fixture.error_of_act(other);
      REQUIRE(error.has_value());
      CHECK(error->kind == BackendError::Kind::device_lost);
    });
    CHECK(fixture.f.fired() == 1);
    for (std::size_t i = 0; i < simulated::command_kind_count; ++i) {
      CHECK(fixture.f.inner().counters().queued[i] == (i == 1 ? 1 : 0));  // the upload before the loss
    }
    CHECK(fixture.f.inner().step() == 0);
    CHECK(fixture.f.status(fixture.event[0]) == EventStatus::failed);
    CHECK(fixture.f.status(fixture.event[3]) == EventStatus::failed);
    CHECK_FALSE(fixture.f.capabilities().device_name.empty());
  });
}

TEST_CASE("blind: the call is done and throws all the same") {
  for_each_class(FaultMode::blind, [](FaultClass fault_class) {
    Fixture fixture;
    fixture.f.restart({fault_class, FaultMode::blind, 1});
    const auto before = fixture.f.inner().counters();
    const auto error = fixture.error_of_act(fault_class);
    REQUIRE(error.has_value());
    CHECK(error->kind == kind_for(fault_class));
    const auto& counters = fixture.f.inner().counters();
    const auto made = [](const simulated::Counters& c) {
      std::uint64_t sum = c.device_memories.made + c.host_memories.made + c.addresses.made + c.events.made +
                          c.host_waits + c.status_queries + c.flushes;
      for (const std::uint64_t queued : c.queued) sum += queued;
      return sum;
    };
    const bool leaves_no_count = fault_class == FaultClass::queue_access || fault_class == FaultClass::adopt ||
                                 fault_class == FaultClass::timing;
    CHECK(made(counters) == made(before) + (leaves_no_count ? 0 : 1));
    CHECK(counters.device_memories.live == before.device_memories.live);
    CHECK(counters.host_memories.live == before.host_memories.live);
    CHECK(counters.addresses.live == before.addresses.live);
    CHECK(counters.events.live == before.events.live);
    CHECK(fixture.works());
  });
}

TEST_CASE("late: a copy is accepted and not done, and its event tells when it would have ended") {
  for (const bool up : {true, false}) {
    Fixture fixture;
    const auto fault_class = up ? FaultClass::copy_to_device : FaultClass::copy_to_host;
    fixture.f.restart({fault_class, FaultMode::late, 1});
    const F::View<std::byte> view(fixture.place, Fixture::size);
    fixture.f.queue().launch("first", 9ns, {Touch::write(view)}, [view] { view[0] = std::byte{1}; });
    fixture.f.record(QueueKind::compute, fixture.event[2]);
    if (up) {
      fixture.upload(0, {&fixture.event[2]});
    } else {
      fixture.download(0, {&fixture.event[2]});
    }
    CHECK(fixture.f.fired() == 1);
    CHECK(fixture.f.status(fixture.event[0]) == EventStatus::running);
    const auto error = fixture.error_of([&] { fixture.f.wait(fixture.event[0]); });
    REQUIRE(error.has_value());
    CHECK(error->what() == "injected fault: " + std::string(to_string(fault_class)) + " 1, late");
    CHECK(fixture.f.status(fixture.event[0]) == EventStatus::failed);
    CHECK(view[0] == std::byte{1});
    CHECK(fixture.other_host.data()[0] == std::byte{0});
    CHECK(fixture.works());
    fixture.upload(0);  // the slot is as good as new
    fixture.f.finish();
    CHECK(fixture.f.status(fixture.event[0]) == EventStatus::complete);
  }
}

TEST_CASE("late: what waits for failed work fails too, and what does not goes on") {
  Fixture fixture;
  fixture.f.restart({FaultClass::copy_to_device, FaultMode::late, 1});
  fixture.upload(0);
  fixture.f.wait(QueueKind::compute, Events{&fixture.event[0]});
  fixture.f.record(QueueKind::compute, fixture.event[1]);
  fixture.download(2, {&fixture.event[1]});
  fixture.f.record(QueueKind::compute, fixture.event[3]);
  fixture.f.finish();
  CHECK(fixture.f.status(fixture.event[1]) == EventStatus::failed);
  CHECK(fixture.f.status(fixture.event[2]) == EventStatus::failed);
  CHECK(fixture.other_host.data()[0] == std::byte{0});
  CHECK(fixture.f.status(fixture.event[3]) == EventStatus::complete);
}

TEST_CASE("late: a record and an adopted launch report that they failed") {
  Fixture fixture;
  fixture.f.restart({FaultClass::record, FaultMode::late, 1});
  fixture.f.record(QueueKind::d2h, fixture.event[0]);
  CHECK(fixture.error_of([&] { fixture.f.wait(fixture.event[0]); }).has_value());
  CHECK(fixture.works());

  fixture.f.restart({FaultClass::adopt, FaultMode::late, 1});
  auto native = fixture.f.queue().launch("second form", 1ns, {}, fixture.f.wait_list({}), [] {});
  fixture.f.adopt(fixture.event[1], native);
  CHECK(fixture.error_of([&] { fixture.f.wait(fixture.event[1]); }).has_value());
  CHECK(fixture.f.status(fixture.event[1]) == EventStatus::failed);
  CHECK(fixture.works());
}

TEST_CASE("late: a launch does not run, and the next event tells") {
  Fixture fixture;
  bool ran = false;
  fixture.f.restart({FaultClass::launch, FaultMode::late, 1});
  fixture.f.launch([&] { fixture.f.queue().launch("late", 1ns, {}, [&ran] { ran = true; }); });
  fixture.f.record(QueueKind::compute, fixture.event[2]);
  CHECK(fixture.error_of([&] { fixture.f.wait(fixture.event[2]); }).has_value());
  CHECK_FALSE(ran);
  CHECK(fixture.works());
}

TEST_CASE("a chooser is asked before each call, with the place that makes it") {
  Fixture fixture;
  std::vector<std::string> files;
  fixture.f.choose_by([&](FaultClass fault_class, const CallSite& where) -> std::optional<FaultPlan> {
    files.emplace_back(where.file);
    if (fault_class != FaultClass::flush) return std::nullopt;
    return FaultPlan{fault_class, FaultMode::once, 7};
  });
  CHECK_FALSE(fixture.error_of_act(FaultClass::record).has_value());
  const auto error = fixture.error_of_act(FaultClass::flush);
  REQUIRE(error.has_value());
  CHECK(std::string(error->what()) == "injected fault: flush 7, once");
  CHECK(files == std::vector<std::string>(2, __FILE__));
  fixture.f.restart({});
  CHECK_FALSE(fixture.error_of_act(FaultClass::flush).has_value());
}

TEST_CASE("lazy: an object is made, its first use throws, and later ones work") {
  for_each_class(FaultMode::lazy, [](FaultClass fault_class) {
    Fixture fixture;
    fixture.f.restart({fault_class, FaultMode::lazy, 1});
    auto memory = fixture.f.allocate(Bytes{Fixture::size});
    auto place = fixture.f.address(memory, Bytes{0}, Bytes{Fixture::size});
    auto pinned = fixture.f.allocate_host(Bytes{Fixture::size}, HostKind::pinned);
    auto pageable = fixture.f.allocate_host(Bytes{Fixture::size}, HostKind::pageable);
    auto event = fixture.f.make_event();
    CHECK(fixture.f.fired() == 1);
    const auto use = [&] {
      fixture.f.copy_to_device(place, pinned, Bytes{0}, Bytes{Fixture::size}, {}, event);
      fixture.f.copy_to_device(place, pageable, Bytes{0}, Bytes{Fixture::size}, {}, event);
    };
    const auto error = fixture.error_of(use);
    REQUIRE(error.has_value());
    CHECK(error->kind == kind_for(fault_class));
    CHECK_FALSE(fixture.error_of(use).has_value());
    CHECK(fixture.works());
  });
}

TEST_CASE("lazy: what a kernel sees of an address can be its first use") {
  Fixture fixture;
  fixture.f.restart({FaultClass::device_allocation, FaultMode::lazy, 1});
  auto memory = fixture.f.allocate(Bytes{16});
  const auto place = fixture.f.address(memory, Bytes{0}, Bytes{16});
  CHECK(fixture.error_of([&] { const F::View<float> view(place, 4); }).has_value());
  CHECK(F::View<float>(place, 4).size() == 4);
}

TEST_CASE("slow: the work is done after everything else that is queued") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Fixture fixture(Order::uniform, seed);
    fixture.f.restart({FaultClass::copy_to_device, FaultMode::slow, 1});
    fixture.upload(0);
    const F::View<std::byte> view(fixture.place, 1);
    for (int i = 0; i < 10; ++i) fixture.f.queue().launch("other", 1ns, {}, [] {});
    fixture.f.record(QueueKind::compute, fixture.event[1]);
    fixture.f.wait(fixture.event[1]);
    CHECK(fixture.f.status(fixture.event[0]) == EventStatus::running);
    fixture.f.wait(fixture.event[0]);
    CHECK(view[0] == std::byte{5});
    CHECK(fixture.f.fired() == 1);
  }
}

TEST_CASE("thrown: the user's callback throws what the library does not know") {
  Fixture fixture;
  fixture.f.restart({FaultClass::user_callback, FaultMode::thrown, 2});
  fixture.f.fault_point();
  CHECK_THROWS_WITH_AS(fixture.f.fault_point(), "injected fault: user_callback 2, thrown", CallbackFault);
  fixture.f.fault_point();
  CHECK(fixture.f.calls(FaultClass::user_callback) == 3);
  CHECK(fixture.works());
}

TEST_CASE("a plan that is not applicable never fires") {
  std::size_t applicable_pairs = 0;
  for (std::size_t c = 0; c < fault_class_count; ++c) {
    for (std::size_t m = 0; m < fault_mode_count; ++m) {
      const auto fault_class = static_cast<FaultClass>(c);
      const auto mode = static_cast<FaultMode>(m);
      if (applicable(fault_class, mode)) {
        ++applicable_pairs;
        continue;
      }
      Fixture fixture;
      fixture.f.restart({fault_class, mode, 1});
      fixture.act(fault_class);
      CHECK(fixture.works());
      CHECK(fixture.f.fired() == 0);
    }
  }
  CHECK(applicable_pairs == 18 * 3 + 19 + 7 + 5 + 8 + 1);
}

TEST_CASE("copies of a handle share the plan, and objects outlive it") {
  Fixture fixture;
  F copy = fixture.f;
  copy.restart({FaultClass::flush, FaultMode::once, 1});
  CHECK(fixture.error_of_act(FaultClass::flush).has_value());
  CHECK(copy.fired() == 1);
  std::optional<F> other(simulated::Backend{});
  const auto event = other->make_event();
  const auto memory = other->allocate(Bytes{8});
  other.reset();
}
