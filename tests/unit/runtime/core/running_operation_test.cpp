// SPDX-License-Identifier: Apache-2.0
// Operations on backends that have what the simulated one has not: scopes, events that may be empty, aligned views.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <swapmm/backend/testing/simulated.hpp>
#include <swapmm/swapmm.hpp>

#include "support/faulty_simulated.hpp"
#include "support/null_backend.hpp"
#include "support/small_program.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

class ScopedBackend : public NullBackend {
 public:
  struct Told {
    bool scopes_fail = false;
    bool adopts_fail = false;
    bool next_record_fails = false;
    std::uint64_t annotations_of_waits = 0;
    std::uint64_t times_asked = 0;
    std::vector<Bytes> addresses;  ///< their sizes
  };
  struct NativeEvent {
    bool there = false;
    explicit operator bool() const { return there; }
  };
  class OperationScope {
   public:
    OperationScope(ScopedBackend& backend, std::string_view) : told_(backend.told_) {}
    void check() {
      if (told_->scopes_fail) throw BackendError(BackendError::Kind::failed, 77, "seen by the scope");
    }

   private:
    std::shared_ptr<Told> told_;
  };

  ScopedBackend() : capabilities_(NullBackend::capabilities()) {
    capabilities_.view_alignment = 16_bytes;
    capabilities_.host_shares_memory = true;
    capabilities_.copy_engines = 1;
  }
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }
  [[nodiscard]] Told& told() { return *told_; }
  [[nodiscard]] Address address(DeviceMemory& memory, Bytes offset, Bytes size) {
    told_->addresses.push_back(size);
    return NullBackend::address(memory, offset, size);
  }
  void adopt(Event& event, NativeEvent) {
    if (told_->adopts_fail) throw BackendError(BackendError::Kind::failed, 78, "not adopted");
    NullBackend::adopt(event, {});
  }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> elapsed(const Event& from, const Event& to) {
    ++told_->times_asked;
    return NullBackend::elapsed(from, to);
  }
  void record(QueueKind queue, Event& event) {
    if (std::exchange(told_->next_record_fails, false)) {
      throw BackendError(BackendError::Kind::failed, 79, "not recorded");
    }
    NullBackend::record(queue, event);
  }

 private:
  Capabilities capabilities_;
  std::shared_ptr<Told> told_ = std::make_shared<Told>();
};
static_assert(Backend<ScopedBackend>);

struct ScopedDesk {
  explicit ScopedDesk(SchedulerOptions options = {.observe = 0})
      : manager(device, {.device_budget = 256_bytes}, Scheduler(std::move(options))) {
    for (int i = 0; i < 6; ++i) {
      tensors.push_back(manager.tensor<int>({length}, "t" + std::to_string(i)));
      tensors.back().upload(std::vector<int>(length, i));
    }
  }
  void plain(std::size_t which) {
    manager.run("plain", updates(tensors[which]), [](auto&) {});
  }
  void with_event(std::size_t which, bool there) {
    manager.run("with event", updates(tensors[which]),
                [&](auto&, ScopedBackend::WaitList) { return ScopedBackend::NativeEvent{there}; });
  }
  void iterate(int times, bool events = false) {
    for (int i = 0; i < times; ++i) {
      const auto iteration = manager.iteration("train");
      for (std::size_t k = 0; k < tensors.size(); ++k) events ? with_event(k, true) : plain(k);
    }
  }
  [[nodiscard]] const runtime::SessionState<ScopedBackend>& state() { return *tensors[0].ref().core->session_state(); }

  ScopedBackend device;
  MemoryManager<ScopedBackend> manager;
  std::vector<Tensor<int, ScopedBackend>> tensors;
};

}  // namespace

TEST_CASE("what the backend's scope sees behind a callable is an error of the operation, in both forms") {
  ScopedDesk desk;
  desk.device.told().scopes_fail = true;
  CHECK(text_of<BackendError>([&] { desk.plain(0); }) == "operation \"plain\": seen by the scope");
  CHECK(text_of<BackendError>([&] { desk.with_event(1, true); }) == "operation \"with event\": seen by the scope");
  desk.device.told().scopes_fail = false;
  CHECK_THROWS_AS((void)desk.tensors[0].download(), WorkFailed);
  CHECK_THROWS_AS((void)desk.tensors[1].download(), WorkFailed);
  desk.plain(2);
}

TEST_CASE("parts of a tensor have addresses of their own size, and begin where the device can address them") {
  ScopedDesk desk;
  const auto& t = desk.tensors[0];
  desk.manager.run("parts", updates(t), [&](auto& op) {
    const int* const whole = op[t].data();
    desk.device.told().addresses.clear();
    CHECK(op[t].data() == whole);
    CHECK(desk.device.told().addresses.empty());
    CHECK(op[t.slice(0, 4)].data() == whole);
    CHECK(op[t.slice(8, 8)].data() == whole + 8);
    CHECK(desk.device.told().addresses == std::vector<Bytes>{16_bytes, 32_bytes});
    CHECK(
        says(text_of<UsageError>([&] { (void)op[t.slice(1, 4)]; }), {"\"parts\"", "\"t0\"", "begins at byte 4", "16"}));
    CHECK(desk.device.told().addresses.size() == 2);
  });
}

TEST_CASE("an operation waits once for the copies of its bundle, in both forms, and is counted so") {
  for (const bool there : {false, true}) {
    ScopedDesk desk;
    const auto grown_by = [&](auto&& call) {
      const std::uint64_t barriers = desk.device.counters().barriers;
      const std::uint64_t waits = desk.manager.report().queue_waits;
      call();
      return std::pair(desk.device.counters().barriers - barriers, desk.manager.report().queue_waits - waits);
    };
    using Growth = std::pair<std::uint64_t, std::uint64_t>;
    CHECK(grown_by([&] { desk.plain(0); }) == Growth(1U, 1U));
    CHECK(grown_by([&] { desk.plain(0); }) == Growth(0U, 0U));
    // The queue waits where the callable has given no event; else its work has the list.
    CHECK(grown_by([&] { desk.with_event(1, there); }) == Growth(there ? 0U : 1U, 1U));
    CHECK(grown_by([&] { desk.with_event(1, there); }) == Growth(0U, 0U));
  }
}

TEST_CASE("an event that is not adopted leaves the work unknown, and an empty one does not") {
  for (const bool there : {false, true}) {
    ScopedDesk desk;
    desk.device.told().adopts_fail = true;
    desk.with_event(0, there);
    desk.device.told().adopts_fail = false;
    if (there) {
      CHECK(says(text_of<WorkFailed>([&] { desk.manager.synchronize(); }), {"\"with event\"", "may have failed"}));
      CHECK_THROWS_AS((void)desk.tensors[0].download(), WorkFailed);
    } else {
      CHECK(says(text_of<BackendError>([&] { desk.manager.synchronize(); }), {"\"with event\"", "not adopted"}));
      (void)desk.tensors[0].download();
    }
  }
}

TEST_CASE("the plan is left where the end of an operation is not recorded") {
  ScopedDesk desk({.sample_every = 0, .trial_iterations = 0});
  desk.iterate(6);
  REQUIRE(desk.state().executor.active());
  bool told = false;
  {
    const auto iteration = desk.manager.iteration("train");
    desk.device.told().next_record_fails = true;
    for (std::size_t k = 0; k < desk.tensors.size() && !told; ++k) {
      try {
        desk.plain(k);
      } catch (const BackendError&) {
        told = true;
      }
    }
    CHECK(told);
    CHECK(!desk.state().executor.active());
  }
  CHECK(desk.manager.report().divergences == 1);
  CHECK(desk.manager.report().last_divergence == "an event could not be recorded");
  desk.iterate(1);
}

TEST_CASE("the plan is left where the end of its round is not recorded") {
  ScopedDesk desk({.trial_iterations = 20});
  desk.iterate(6);
  REQUIRE(desk.state().executor.active());
  {
    const auto iteration = desk.manager.iteration("train");
    for (std::size_t k = 0; k < desk.tensors.size(); ++k) desk.plain(k);
    desk.device.told().next_record_fails = true;
  }
  CHECK(!desk.device.told().next_record_fails);
  CHECK(desk.manager.report().divergences == 1);
  CHECK(desk.manager.report().last_divergence == "its end failed");
  CHECK(says(text_of<BackendError>([&] { desk.manager.synchronize(); }), {"ending iteration \"train\""}));
}

TEST_CASE("only observed operations are timed, each by one event more") {
  for (const std::size_t observe : {0U, 9U}) {
    ScopedDesk desk({.observe = observe});
    const auto iteration = desk.manager.iteration("train");
    desk.plain(0);
    const std::uint64_t before = desk.device.counters().records;
    desk.plain(0);
    CHECK(desk.device.counters().records - before == (observe == 0 ? 1 : 2));
    desk.manager.synchronize();
    CHECK(desk.device.told().times_asked == (observe == 0 ? 0 : 3));  // two operations and a copy
  }
}

TEST_CASE("operations that give an event are profiled and sampled as others are") {
  ScopedDesk desk({.sample_every = 1, .trial_iterations = 0});
  desk.iterate(8, true);
  CHECK(desk.manager.report().sampled_rounds > 2);
  desk.manager.start_profile();
  desk.iterate(1, true);
  const Profile profile = desk.manager.stop_profile();
  std::size_t operations = 0;
  for (const ProfileSpan& span : profile.spans) operations += span.name == "with event" ? 1 : 0;
  CHECK(operations == desk.tensors.size());
}

TEST_CASE("an iteration on demand in which a callable threw is not learned from") {
  ScopedDesk desk({.observe = 9});
  const auto iteration = desk.manager.iteration("train");
  desk.plain(0);
  CHECK(!desk.state().recorder.broken());
  CHECK_THROWS_AS(desk.manager.run("throws", writes(desk.tensors[0]), [](auto&) { throw 7; }), int);
  CHECK(desk.state().recorder.broken());
}

TEST_CASE("the machine that plans are made for has the device's own limits") {
  Machine given;
  given.max_allocation = 64_bytes;
  given.h2d.bytes_per_second = given.d2h.bytes_per_second = 1'000'000'000;
  ScopedDesk desk({.machine = given});
  CHECK(!desk.manager.machine().max_allocation);
  ScopedDesk own;
  CHECK(own.manager.machine().duplex == Duplex::half);
  CHECK(own.manager.report().host_shares_memory);
}

TEST_CASE("work of a followed plan that failed leaves the plan, and its iteration is not learned from") {
  using Device = FaultySimulated;
  Device device{Simulated()};
  MemoryManager<Device> manager(device, {.device_budget = 256_bytes});
  auto weights = uploaded_tensors(manager, 6);
  const auto iterate = [&] {
    const auto iteration = manager.iteration("train");
    for (auto& weight : weights) increase(manager, weight, 1);
  };
  for (int i = 0; i < 6; ++i) iterate();
  const auto& state = *weights[0].ref().core->session_state();
  REQUIRE(state.executor.active());
  device.restart({FaultClass::copy_to_host, FaultMode::late, 1});
  CHECK_THROWS_AS(
      [&] {
        iterate();
        manager.synchronize();
      }(),
      WorkFailed);
  CHECK(device.fired() == 1);
  CHECK(!state.executor.active());
  CHECK(state.recorder.broken());
  CHECK(manager.report().last_divergence == "queued work failed");
}

TEST_CASE("an iteration on demand of which work failed is not learned from") {
  using Device = FaultySimulated;
  Device device{Simulated()};
  MemoryManager<Device> manager(device, {.device_budget = 256_bytes}, Scheduler({.observe = 9}));
  auto weights = uploaded_tensors(manager, 6);
  const auto& state = *weights[0].ref().core->session_state();
  const auto iteration = manager.iteration("train");
  increase(manager, weights[0], 1);
  CHECK(!state.recorder.broken());
  device.restart({FaultClass::copy_to_host, FaultMode::late, 1});
  CHECK_THROWS_AS((void)weights[0].download(), WorkFailed);
  CHECK(state.recorder.broken());
}

TEST_CASE("nothing more is asked of a device that is lost when its manager ends") {
  using Device = FaultySimulated;
  Device device{Simulated()};
  {
    MemoryManager<Device> manager(device, {.device_budget = 256_bytes, .scrub = true});
    auto weights = uploaded_tensors(manager, 6);
    for (auto& weight : weights) increase(manager, weight, 1);
    device.restart({FaultClass::host_wait, FaultMode::device_lost, 1});
    CHECK_THROWS_AS(manager.synchronize(), DeviceLost);
    weights.clear();
    device.restart({});
  }
  CHECK(device.calls(FaultClass::finish) == 0);
  CHECK(device.calls(FaultClass::copy_to_device) == 0);
}

TEST_CASE("several tensors destroyed by other threads while the manager is busy are all given back") {
  Simulated device;
  MemoryManager<Simulated> manager(device, {.device_budget = 256_bytes});
  auto stays = manager.tensor<int>({length}, "stays");
  auto tensors = uploaded_tensors(manager, 3);
  for (auto& tensor : tensors) increase(manager, tensor, 1);
  manager.run("long", writes(stays), [&](auto&) {
    std::thread other([&] { tensors.clear(); });
    other.join();
  });
  manager.synchronize();
  CHECK(manager.report().tensors == 1);
  CHECK(manager.report().device_used == tensor_bytes);
}
