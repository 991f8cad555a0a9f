// SPDX-License-Identifier: Apache-2.0
// Which calls of the API each function of the backend makes, with which arguments, in which order.

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cuda_calls/support.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using fake_cuda::Call;
using Event = cuda::Backend::Event;

/// The names of the calls since the last time, without those that only ask or set the device.
std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const Call& call : fake_cuda::calls()) result.push_back(call.function);
  fake_cuda::clear_calls();
  return result;
}
using Names = std::vector<std::string>;

struct CallsFixture {
  CallsFixture() { fake_cuda::restart(); }
  ~CallsFixture() {
    CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
    CHECK(fake_cuda::objects() == fake_cuda::Objects{});
  }
};

std::array<const Event*, 1> after(const Event& event) { return {&event}; }

}  // namespace

TEST_CASE_FIXTURE(CallsFixture, "a backend makes three streams that do not wait for the default stream") {
  const CheckedBackend backend = fake_backend();
  std::size_t streams = 0;
  for (const Call& call : fake_cuda::calls()) {
    if (call.function != "cudaStreamCreateWithFlags") continue;
    ++streams;
    CHECK(call.number == cudaStreamNonBlocking);
  }
  CHECK(streams == 3);
  CHECK(fake_cuda::objects().streams == 3);
  const Capabilities& can = backend.capabilities();
  CHECK(can.device_name == "Fake GPU (CUDA)");
  CHECK(can.alignment == Bytes{256});
  CHECK(can.view_alignment == Bytes{1});
  CHECK_FALSE(can.max_allocation.has_value());
  CHECK(can.failures_stick);
  CHECK(can.graph_capture);
  CHECK_FALSE(can.host_shares_memory);
  CHECK(can.host_slab == Bytes{std::uint64_t{512} << 20U});
}

TEST_CASE_FIXTURE(CallsFixture, "a copy waits, copies and records, on its own stream") {
  CheckedBackend backend = fake_backend();
  auto memory = backend.allocate(Bytes{4096});
  auto host = backend.allocate_host(Bytes{4096}, HostKind::pinned);
  const auto place = backend.address(memory, Bytes{1024}, Bytes{512});
  Event first = backend.make_event();
  Event second = backend.make_event();
  Event third = backend.make_event();
  fake_cuda::clear_calls();

  backend.copy_to_device(place, host, Bytes{64}, Bytes{512}, {}, first);
  const std::vector<Call> in = fake_cuda::calls();
  REQUIRE(in.size() == 2);
  CHECK(in[0].function == "cudaMemcpyAsync");
  CHECK(in[0].to == place.data());
  CHECK(in[0].from == host.data() + 64);
  CHECK(in[0].size == 512);
  CHECK(in[0].number == cudaMemcpyHostToDevice);
  CHECK(in[0].stream != backend.queue());
  CHECK(in[1].function == "cudaEventRecord");
  CHECK(in[1].stream == in[0].stream);
  CHECK(in[1].number == 0);  // an event without times
  fake_cuda::clear_calls();

  backend.record(QueueKind::compute, second);
  const std::array<const Event*, 2> both{&first, &second};
  backend.copy_to_host(host, Bytes{128}, place, Bytes{256}, both, third);
  const std::vector<Call> out = fake_cuda::calls();
  REQUIRE(out.size() == 5);
  CHECK(out[0].function == "cudaEventRecord");
  CHECK(out[0].stream == backend.queue());
  CHECK(out[1].function == "cudaStreamWaitEvent");
  CHECK(out[1].event == in[1].event);
  CHECK(out[2].function == "cudaStreamWaitEvent");
  CHECK(out[2].event == out[0].event);
  CHECK(out[3].function == "cudaMemcpyAsync");
  CHECK(out[3].to == host.data() + 128);
  CHECK(out[3].from == place.data());
  CHECK(out[3].size == 256);
  CHECK(out[3].number == cudaMemcpyDeviceToHost);
  CHECK(out[3].stream != in[0].stream);
  CHECK(out[3].stream != backend.queue());
  for (const std::size_t i : {1U, 2U, 4U}) CHECK(out[i].stream == out[3].stream);
}

TEST_CASE_FIXTURE(CallsFixture, "a slot that was never recorded is waited for by nobody") {
  CheckedBackend backend = fake_backend();
  const Event never = backend.make_event();
  fake_cuda::clear_calls();
  backend.wait(QueueKind::compute, after(never));
  backend.wait(never);
  CHECK(backend.status(never) == EventStatus::complete);
  CHECK(backend.wait_list(after(never)).size() == 0);
  CHECK(names().empty());
}

TEST_CASE_FIXTURE(CallsFixture, "times are taken by events of their own, only while they are asked for") {
  CheckedBackend backend = fake_backend();
  Event begin = backend.make_event();
  Event end = backend.make_event();
  const auto events_before = fake_cuda::objects().events;
  backend.record(QueueKind::compute, begin);
  backend.record(QueueKind::compute, end);
  CHECK(fake_cuda::objects().events == events_before);
  CHECK(backend.elapsed(begin, end) == std::nullopt);
  backend.set_timing(true);
  backend.record(QueueKind::compute, begin);
  fake_cuda::launch(backend.queue(), {});  // a microsecond on the fake's clock
  backend.record(QueueKind::compute, end);
  CHECK(fake_cuda::objects().events == events_before + 2);
  CHECK(backend.elapsed(begin, end) == std::chrono::nanoseconds(1000));
  CHECK(backend.elapsed(end, begin) == std::nullopt);
  backend.set_timing(false);
  backend.record(QueueKind::compute, end);
  CHECK(backend.elapsed(begin, end) == std::nullopt);
  CHECK(fake_cuda::objects().events == events_before + 2);
}

TEST_CASE_FIXTURE(CallsFixture, "the second form waits on any stream, and its event is tied in") {
  CheckedBackend backend = fake_backend();
  Event before = backend.make_event();
  Event slot = backend.make_event();
  backend.record(QueueKind::h2d, before);
  cudaStream_t own = nullptr;
  cudaEvent_t done = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&done, cudaEventDisableTiming) == cudaSuccess);
  fake_cuda::clear_calls();
  const cuda::WaitList waits = backend.wait_list(after(before));
  REQUIRE(waits.size() == 1);
  waits.queue_on(own);
  REQUIRE(cudaEventRecord(done, own) == cudaSuccess);
  CHECK_FALSE(cuda::NativeEvent());
  CHECK(static_cast<bool>(cuda::NativeEvent(done)));
  backend.adopt(slot, done);
  const std::vector<Call> calls = fake_cuda::calls();
  REQUIRE(calls.size() == 7);
  CHECK(calls[0].function == "cudaStreamWaitEvent");
  CHECK(calls[0].stream == own);
  // Copies that the stream of operations waits for already are not in the list: the other one comes after it.
  CHECK(calls[1].function == "cudaEventCreateWithFlags");
  CHECK(calls[2].function == "cudaEventRecord");
  CHECK(calls[2].stream == backend.queue());
  CHECK(calls[3].function == "cudaStreamWaitEvent");
  CHECK(calls[3].stream == own);
  CHECK(calls[3].event == calls[2].event);
  CHECK(calls[5].function == "cudaStreamWaitEvent");
  CHECK(calls[5].stream == backend.queue());
  CHECK(calls[5].event == done);
  CHECK(calls[6].function == "cudaEventRecord");
  CHECK(calls[6].stream == backend.queue());
  fake_cuda::clear_calls();
  waits.queue_on(backend.queue());
  REQUIRE(fake_cuda::calls().size() == 1);  // it comes after itself
  CHECK(cudaEventDestroy(done) == cudaSuccess);
  CHECK(cudaStreamDestroy(own) == cudaSuccess);
}

TEST_CASE_FIXTURE(CallsFixture, "page-locked memory is portable, aligned, and goes only when nothing runs") {
  CheckedBackend backend = fake_backend();
  auto memory = backend.allocate(Bytes{1000});
  const auto place = backend.address(memory, Bytes{0}, Bytes{1000});
  Event event = backend.make_event();
  {
    auto pinned = backend.allocate_host(Bytes{1000}, HostKind::pinned);
    auto pageable = backend.allocate_host(Bytes{1000}, HostKind::pageable);
    CHECK(reinterpret_cast<std::uintptr_t>(pinned.data()) % 4096 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(pageable.data()) % 4096 == 0);
    CHECK(fake_cuda::objects().host_memories == 1);
    CHECK(fake_cuda::count("cudaHostAlloc") == 1);
    for (const Call& call : fake_cuda::calls()) {
      if (call.function == "cudaHostAlloc") CHECK(call.number == cudaHostAllocPortable);
    }
    backend.copy_to_device(place, pinned, Bytes{0}, Bytes{1000}, {}, event);
    backend.copy_to_host(pageable, Bytes{0}, place, Bytes{1000}, after(event), event);
  }  // the fake reports memory that goes while a copy may still use it
  backend.copy_to_device(place, backend.allocate_host(Bytes{1000}, HostKind::pinned), Bytes{0}, Bytes{1000}, {}, event);
  const auto stays = backend.allocate_host(Bytes{1000}, HostKind::pinned);
  backend.copy_to_device(place, stays, Bytes{0}, Bytes{1000}, {}, event);
  auto gone = std::move(memory);  // and goes first
}

TEST_CASE_FIXTURE(CallsFixture, "the program's stream is used, kept, and checked") {
  cudaStream_t own = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) == cudaSuccess);
  {
    cuda::Backend backend(0, cuda::Settings{.stream = own, .measure = false});
    CHECK(backend.queue() == own);
    CHECK(fake_cuda::objects().streams == 3);
  }
  CHECK(fake_cuda::objects().streams == 1);
  CHECK(cudaStreamDestroy(own) == cudaSuccess);
}

TEST_CASE("a stream of another device is refused, and objects are made on the backend's device alone") {
  fake_cuda::restart({{.name = "first"}, {.name = "second", .bus = "0000:AF:00.0"}});
  cudaStream_t of_first = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&of_first, cudaStreamNonBlocking) == cudaSuccess);
  CHECK_THROWS_WITH_AS(cuda::Backend(1, cuda::Settings{.stream = of_first, .measure = false}),
                       "the CUDA stream given with device 1 belongs to another device", UsageError);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  {
    cuda::Backend backend(1, cuda::Settings{.measure = false});
    CHECK(fake_cuda::current_device() == 0);
    backend.set_timing(true);
    auto memory = backend.allocate(Bytes{64});
    auto event = backend.make_event();
    backend.record(QueueKind::d2h, event);  // makes an event with times
    CHECK(fake_cuda::current_device() == 0);
    for (const Call& call : fake_cuda::calls()) {
      if (call.function == "cudaMalloc") CHECK(call.number == 1);
    }
    backend.finish();
  }
  CHECK(cudaStreamDestroy(of_first) == cudaSuccess);
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
  CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
}

TEST_CASE_FIXTURE(CallsFixture, "the default budget is what is free less a reserve") {
  const CheckedBackend backend = fake_backend();
  constexpr std::uint64_t mib = std::uint64_t{1} << 20U;
  CHECK(backend.default_device_budget() == Bytes{768 * mib});  // 1 GiB, less 256 MiB
  {
    CheckedBackend taking = backend;
    const auto taken = taking.allocate(Bytes{700 * mib});
    CHECK(backend.default_device_budget() == Bytes{68 * mib});
    const auto more = taking.allocate(Bytes{200 * mib});
    CHECK(backend.default_device_budget() == Bytes{0});
    CHECK_THROWS_AS(MemoryManager<CheckedBackend>{backend}, UsageError);
  }
  const MemoryManager<CheckedBackend> manager{backend};
  CHECK(manager.report().device_budget == Bytes{768 * mib});
}
