// SPDX-License-Identifier: Apache-2.0
// Events, wait lists and times of the backend, and what they cost at the API.

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "opencl/support.hpp"

using namespace swapmm;
using namespace swapmm::test;
using std::chrono::nanoseconds;

namespace {

using EventPointers = std::vector<const opencl::Event*>;

constexpr QueueKind every_queue[] = {QueueKind::h2d, QueueKind::compute, QueueKind::d2h};

/// An event of the program's own that has ended with that status, with the caller's reference.
cl_event ended_event(cl_int status = CL_COMPLETE) {
  cl_int made = CL_SUCCESS;
  const cl_event event = clCreateUserEvent(first_backend().context(), &made);
  REQUIRE(made == CL_SUCCESS);
  REQUIRE(clSetUserEventStatus(event, status) == CL_SUCCESS);
  return event;
}

opencl::Handle<cl_command_queue> queue_without_times() {
  cl_int status = CL_SUCCESS;
  opencl::Handle<cl_command_queue> queue(
      clCreateCommandQueue(first_backend().context(), first_backend().device(), 0, &status));
  REQUIRE(status == CL_SUCCESS);
  return queue;
}

opencl::Event recorded_event(opencl::Backend& backend) {
  opencl::Event event = backend.make_event();
  backend.record(QueueKind::compute, event);
  return event;
}

/// The time between two events whose commands ended at these times, as the device tells.
std::optional<nanoseconds> between(opencl::Backend& backend, const opencl::Event& from, const opencl::Event& to,
                                   cl_ulong start, cl_ulong end) {
  const PretendedTimes told({start, end});
  return backend.elapsed(from, to);
}

}  // namespace

TEST_CASE("a wait list has the API's events in order, however many, and none for a slot that was never recorded") {
  opencl::Backend backend = shared_backend();
  const opencl::Event never = backend.make_event();
  for (std::size_t count = 0; count <= 20; ++count) {
    CAPTURE(count);
    std::vector<cl_event> natives;
    std::vector<opencl::Event> events;
    for (std::size_t i = 0; i < count; ++i) {
      natives.push_back(ended_event());
      events.push_back(backend.make_event());
      backend.adopt(events.back(), natives.back());
    }
    EventPointers waits{&never};
    for (const opencl::Event& event : events) {
      waits.push_back(&event);
      waits.push_back(&never);
    }
    const opencl::WaitList list = backend.wait_list(waits);
    REQUIRE(list.size() == count);
    CHECK((list.data() == nullptr) == (count == 0));
    CHECK(std::vector<cl_event>(list.data(), list.data() + list.size()) == natives);
  }
}

TEST_CASE("a native event is true if there is one") {
  CHECK_FALSE(static_cast<bool>(opencl::NativeEvent()));
  CHECK_FALSE(static_cast<bool>(opencl::NativeEvent(nullptr)));
  CHECK(static_cast<bool>(opencl::NativeEvent(ended_event())));
}

TEST_CASE("a wait for nothing queues nothing, for a barrier without a list would wait for the whole queue") {
  opencl::Backend backend = shared_backend();
  const opencl::Event never = backend.make_event();
  const opencl::Event event = recorded_event(backend);
  reset_api_calls();
  for (const QueueKind queue : every_queue) {
    backend.wait(queue, {});
    backend.wait(queue, EventPointers{&never});
  }
  CHECK(api_calls().barriers == 0);
  backend.wait(QueueKind::d2h, EventPointers{&never, &event});
  CHECK(api_calls().barriers == 1);
}

TEST_CASE("a wait of the host for work that failed tells its status") {
  opencl::Backend backend = shared_backend();
  opencl::Event event = backend.make_event();
  for (const cl_int status : {CL_OUT_OF_RESOURCES, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_DEVICE_NOT_AVAILABLE}) {
    backend.adopt(event, ended_event(status));
    CHECK(backend.status(event) == EventStatus::failed);
    try {
      backend.wait(event);
      FAIL_CHECK("nothing was thrown");
    } catch (const BackendError& error) {
      CHECK(error.code == status);
      CHECK(error.kind == opencl::kind_of(status));
      CHECK(error.what() ==
            "work on the device: " + std::string(opencl::status_name(status)) + " (" + std::to_string(status) + ")");
    }
  }
}

TEST_CASE("the time between two events is what the device tells of their ends") {
  opencl::Backend backend = shared_backend();
  backend.set_timing(true);
  const opencl::Event from = recorded_event(backend);
  const opencl::Event to = recorded_event(backend);
  CHECK(between(backend, from, to, 100, 350) == nanoseconds(250));
  CHECK(between(backend, from, to, 100, 100) == nanoseconds(0));
  CHECK(between(backend, from, to, 1, std::uint64_t{1} << 40U) == nanoseconds((std::int64_t{1} << 40U) - 1));
  // Drivers that know no times of markers may tell 0, and clocks of two queues may differ.
  CHECK_FALSE(between(backend, from, to, 0, 350).has_value());
  CHECK_FALSE(between(backend, from, to, 100, 99).has_value());
}

TEST_CASE("an event has a time only if timing was on when it was recorded") {
  opencl::Backend backend = shared_backend();
  const opencl::Event never = backend.make_event();
  const opencl::Event before = recorded_event(backend);
  backend.set_timing(true);
  const opencl::Event timed = recorded_event(backend);
  opencl::Event again = recorded_event(backend);
  CHECK(between(backend, timed, again, 100, 350) == nanoseconds(250));
  backend.set_timing(false);
  const opencl::Event after = recorded_event(backend);
  CHECK(between(backend, timed, again, 100, 350) == nanoseconds(250));
  backend.record(QueueKind::compute, again);
  for (const opencl::Event* const untimed : {&never, &before, &after, static_cast<const opencl::Event*>(&again)}) {
    CHECK_FALSE(between(backend, timed, *untimed, 100, 350).has_value());
    CHECK_FALSE(between(backend, *untimed, timed, 100, 350).has_value());
    CHECK_FALSE(between(backend, *untimed, *untimed, 100, 350).has_value());
  }
}

TEST_CASE("on a queue that cannot profile the host waits for each timed command, and for no other one") {
  const auto queue = queue_without_times();
  opencl::Backend backend = shared_backend(queue.get());
  opencl::DeviceMemory memory = backend.allocate(Bytes{4096});
  const opencl::Address place = backend.address(memory, Bytes{0}, Bytes{4096});
  opencl::HostMemory host = backend.allocate_host(Bytes{4096}, HostKind::pinned);
  opencl::Event copied = backend.make_event();

  reset_api_calls();
  const opencl::Event untimed = recorded_event(backend);
  backend.copy_to_device(place, host, Bytes{0}, Bytes{4096}, {}, copied);
  CHECK(api_calls().host_waits == 0);
  CHECK(api_calls().flushes == 0);

  backend.set_timing(true);
  reset_api_calls();
  const opencl::Event first = recorded_event(backend);
  CHECK(api_calls().host_waits == 1);
  CHECK(api_calls().flushes == base_queue_count);  // it may depend on work in any queue
  CHECK(backend.status(first) == EventStatus::complete);
  backend.copy_to_device(place, host, Bytes{0}, Bytes{4096}, {}, copied);
  CHECK(api_calls().host_waits == 2);
  CHECK(backend.status(copied) == EventStatus::complete);
  CHECK(api_calls().queues_made == 0);  // copies are timed in the same way
  const opencl::Event last = recorded_event(backend);
  REQUIRE(backend.elapsed(first, last).has_value());
  CHECK(*backend.elapsed(first, last) >= nanoseconds(0));
  CHECK(*backend.elapsed(last, first) == -*backend.elapsed(first, last));
  CHECK(*backend.elapsed(first, last) == *backend.elapsed(first, copied) + *backend.elapsed(copied, last));
  CHECK_FALSE(backend.elapsed(untimed, last).has_value());
  CHECK_FALSE(backend.elapsed(first, untimed).has_value());
}

TEST_CASE("an event whose time the host could not take has none, also where it had one before") {
  const auto queue = queue_without_times();
  opencl::Backend backend = shared_backend(queue.get());
  backend.set_timing(true);
  const opencl::Event timed = recorded_event(backend);
  opencl::Event event = recorded_event(backend);
  CHECK(backend.elapsed(timed, event).has_value());
  {
    const FailingCall lost("clFlush", CL_DEVICE_NOT_AVAILABLE);
    CHECK_THROWS_AS(backend.record(QueueKind::compute, event), BackendError);
  }
  CHECK_FALSE(backend.elapsed(timed, event).has_value());
  CHECK_FALSE(backend.elapsed(event, timed).has_value());
  CHECK_FALSE(backend.elapsed(event, event).has_value());
  backend.record(QueueKind::compute, event);
  CHECK(backend.elapsed(timed, event).has_value());
}

TEST_CASE("a change to timed commands makes one queue once, and costs one marker where something was queued") {
  opencl::Backend backend = shared_backend();
  const auto use = [&](bool timed) {
    backend.set_timing(timed);
    reset_api_calls();
    for (int i = 0; i < 3; ++i) (void)backend.queue();
    return api_calls();
  };
  const ApiCalls at_first = use(true);
  CHECK(at_first.queues_made == 1);
  CHECK(at_first.markers == 0);
  CHECK(use(true).markers == 0);
  for (int round = 0; round < 3; ++round) {
    for (const bool timed : {false, true}) {
      const ApiCalls change = use(timed);
      CHECK(change.queues_made == 0);
      CHECK(change.markers == 1);
      CHECK(change.flushes == 1);
      const ApiCalls no_change = use(timed);
      CHECK(no_change.markers == 0);
      CHECK(no_change.barriers == 0);
    }
  }
}

TEST_CASE("the last object of a backend waits for all queued work") {
  opencl::Handle<cl_event> end;
  {
    opencl::Backend backend = shared_backend();
    std::optional<opencl::DeviceMemory> memory(backend.allocate(Bytes{1U << 16U}));
    const opencl::Address place = backend.address(*memory, Bytes{0}, Bytes{1U << 16U});
    const opencl::View<Number> view(place, 1U << 14U);
    for (Number round = 0; round < 50; ++round) {
      kernels().affine.set(view, view, round).enqueue(backend.queue(), {view.size()});
    }
    cl_event last = nullptr;
    REQUIRE(clEnqueueMarkerWithWaitList(backend.queue(), 0, nullptr, &last) == CL_SUCCESS);
    end.reset(last);
    reset_api_calls();
  }
  CHECK(api_calls().finishes == base_queue_count);
  cl_int status = CL_QUEUED;
  REQUIRE(clGetEventInfo(end.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) == CL_SUCCESS);
  CHECK(status == CL_COMPLETE);
}

TEST_CASE("a handle of nothing asks the API nothing, and one that is moved to itself keeps its object") {
  const ApiObjects before = objects_at_rest();
  { const auto none = opencl::Handle<cl_mem>::retain(nullptr); }
  CHECK(api_objects() == before);
  {
    auto context = opencl::Handle<cl_context>::retain(first_backend().context());
    auto& same = context;
    context = std::move(same);
    CHECK(context.get() == first_backend().context());
    CHECK(api_objects().contexts == before.contexts + 1);
  }
  CHECK(api_objects() == before);
}
