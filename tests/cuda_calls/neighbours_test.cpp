// SPDX-License-Identifier: Apache-2.0
// How values go to another device and come back: what is asked of the API. Nothing is copied here.

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cuda_calls/support.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using fake_cuda::Call;
using Event = cuda::Backend::Event;

}  // namespace

TEST_CASE_FIXTURE(TwoDevicesFixture, "memory of a neighbour is on its device, and copies go from device to device") {
  CheckedBackend backend = fake_backend();
  auto memory = backend.allocate(Bytes{4096});
  const auto place = backend.address(memory, Bytes{256}, Bytes{512});
  const auto neighbour = cuda::neighbour(1, Bytes{65536});
  CHECK(neighbour->name() == "a part of Second GPU (device 1)");
  fake_cuda::clear_calls();
  auto there = backend.allocate_at(*neighbour, Bytes{8192}, 0);
  REQUIRE(calls_of("cudaMalloc").size() == 1);
  CHECK(calls_of("cudaMalloc")[0].number == 1);
  CHECK(calls_of("cudaDeviceEnablePeerAccess").size() == 1);
  auto more = backend.allocate_at(*neighbour, Bytes{8192}, 0);  // the access is enabled already

  Event out = backend.make_event();
  Event in = backend.make_event();
  fake_cuda::clear_calls();
  backend.copy_to_neighbour(there, Bytes{1024}, place, Bytes{512}, {}, out);
  const std::array<const Event*, 1> behind{&out};
  backend.copy_from_neighbour(place, there, Bytes{1024}, Bytes{512}, behind, in);
  const std::vector<Call> copies = calls_of("cudaMemcpyPeerAsync");
  REQUIRE(copies.size() == 2);
  CHECK(copies[0].to == copies[1].from);
  CHECK(copies[0].from == place.data());
  CHECK(copies[0].size == 512);
  CHECK(copies[0].number == 1);  // to the second device
  CHECK(copies[1].number == 0);
  CHECK(copies[0].stream != copies[1].stream);
  CHECK(copies[0].stream != backend.queue());
  REQUIRE(calls_of("cudaStreamWaitEvent").size() == 1);
  CHECK(calls_of("cudaStreamWaitEvent")[0].stream == copies[1].stream);
  backend.wait(in);
}

TEST_CASE_FIXTURE(TwoDevicesFixture,
                  "where devices cannot reach each other nothing is enabled, and copies are the same") {
  fake_cuda::restart({{}, {.reaches_others = false}});
  CheckedBackend backend = fake_backend();
  auto memory = backend.allocate(Bytes{4096});
  const auto place = backend.address(memory, Bytes{0}, Bytes{512});
  auto there = backend.allocate_at(*cuda::neighbour(1, Bytes{65536}), Bytes{8192}, 0);
  CHECK(calls_of("cudaDeviceEnablePeerAccess").empty());
  Event out = backend.make_event();
  backend.copy_to_neighbour(there, Bytes{0}, place, Bytes{512}, {}, out);
  CHECK(calls_of("cudaMemcpyPeerAsync").size() == 1);
  backend.wait(out);
}

TEST_CASE_FIXTURE(TwoDevicesFixture, "a manager with a neighbour orders all accesses, and leaves nothing") {
  constexpr std::size_t layers = 4;
  for (const Form form : {Form::plain, Form::with_event}) {
    Options options{.device_budget = Bytes{chain_bytes(layers).value / 2}};
    options.queue_depth = 16;
    options.neighbours = {cuda::neighbour(1, chain_bytes(layers))};
    MemoryManager<CheckedBackend> manager(fake_backend(), options);
    Chain<CheckedBackend> chain(manager, layers, form);
    for (Number step = 0; step < 7; ++step) chain.iterate(step);
    manager.synchronize();
    const Report report = manager.report();
    CHECK(report.iterations_followed == 4);
    CHECK(report.neighbours_written.value > 0);
    CHECK(report.neighbours_peak <= report.neighbours_budget);
    CHECK(calls_of("cudaMemcpyPeerAsync").size() > 8);
    fake_cuda::clear_calls();
  }
}

TEST_CASE_FIXTURE(TwoDevicesFixture, "what cannot be a neighbour is refused, and a full one is told") {
  CHECK_THROWS_WITH_AS((void)cuda::neighbour(2, Bytes{4096}), "no CUDA device has the number 2: there are 2",
                       UsageError);
  CheckedBackend backend = fake_backend();
  const auto large = cuda::neighbour(1, Bytes{std::uint64_t{1} << 40U});
  try {
    (void)backend.allocate_at(*large, large->capacity(), 0);
    FAIL("the memory was given");
  } catch (const BackendError& error) {
    CHECK(error.kind == BackendError::Kind::out_of_device_memory);
    CHECK(std::string(error.what()).find("cudaMalloc on a neighbour of 1099511627776 bytes") == 0);
  }
}
