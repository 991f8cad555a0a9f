// SPDX-License-Identifier: Apache-2.0
// The C interface on CUDA: streams, events and the current device between the begin and the end of an operation.

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <swapmm/c/cuda.h>

#include "cuda_calls/support.hpp"

using namespace swapmm::test;

namespace {

constexpr std::size_t tensors = 6;
constexpr std::uint64_t tensor_bytes = 4096;

#define NEED(call) REQUIRE_MESSAGE((call) == SWAPMM_OK, std::string(swapmm_last_error()))

// A manager on the second of two devices, while the first one is current.
struct Desk {
  explicit Desk(bool own_stream = false) {
    fake_cuda::restart({fake_cuda::FakeDevice{}, fake_cuda::FakeDevice{.name = "Second"}});
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    if (own_stream) {
      NEED(swapmm_cuda_create_on_stream(1, stream, &backend));
    } else {
      NEED(swapmm_cuda_create(1, &backend));
    }
    swapmm_options options;
    NEED(swapmm_options_init(&options, sizeof options));
    options.device_budget = 3 * tensor_bytes;
    options.trial_iterations = 0;
    options.replan_above = 0;
    NEED(swapmm_manager_create(backend, &options, &manager));
    const std::vector<std::byte> data(tensor_bytes);
    for (swapmm_tensor& one : tensor) {
      NEED(swapmm_tensor_create(manager, tensor_bytes, "tensor", SWAPMM_KEPT, &one));
      NEED(swapmm_tensor_upload(manager, one, 0, data.data(), tensor_bytes));
    }
  }
  ~Desk() {
    swapmm_manager_destroy(manager);
    swapmm_backend_destroy(backend);
    (void)cudaEventDestroy(event);  // fails on a device that is lost, and destroys all the same
    (void)cudaStreamDestroy(stream);
    CHECK(fake_cuda::current_device() == 0);
    CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
    CHECK(fake_cuda::objects() == fake_cuda::Objects{});
  }

  // Updates two tensors. On a stream of the program if the operation takes the waits.
  swapmm_status run(std::size_t first, bool takes_waits) {
    const std::array<swapmm_use, 2> uses{
        {{tensor[first], SWAPMM_READ}, {tensor[(first + 1) % tensors], SWAPMM_UPDATE}}};
    std::array<void*, 2> addresses{};
    swapmm_operation operation{};
    operation.struct_size = sizeof operation;
    operation.name = "step";
    operation.uses = uses.data();
    operation.use_count = uses.size();
    operation.takes_waits = takes_waits ? 1 : 0;
    operation.addresses = addresses.data();
    NEED(swapmm_operation_begin(manager, &operation));
    CHECK(fake_cuda::current_device() == 1);
    const auto work_on = takes_waits ? stream : static_cast<cudaStream_t>(operation.queue);
    const auto* const waits = static_cast<const cudaEvent_t*>(operation.waits);
    for (std::uint64_t i = 0; i < operation.wait_count; ++i) {
      CHECK(cudaStreamWaitEvent(work_on, waits[i], 0) == cudaSuccess);
    }
    waited += operation.wait_count;
    fake_cuda::launch(work_on, {{reinterpret_cast<std::uintptr_t>(addresses[0]), tensor_bytes, false},
                                {reinterpret_cast<std::uintptr_t>(addresses[1]), tensor_bytes, true}});
    if (takes_waits) CHECK(cudaEventRecord(event, work_on) == cudaSuccess);
    const swapmm_status status = swapmm_operation_end(manager, takes_waits ? event : nullptr);
    CHECK(fake_cuda::current_device() == 0);
    return status;
  }

  swapmm_numbers iterate(int times, bool takes_waits) {
    for (int i = 0; i < times; ++i) {
      NEED(swapmm_iteration_begin(manager, "train"));
      for (std::size_t k = 0; k < tensors; ++k) NEED(run(k, takes_waits));
      NEED(swapmm_iteration_end(manager));
    }
    swapmm_numbers numbers{};
    numbers.struct_size = sizeof numbers;
    NEED(swapmm_manager_numbers(manager, &numbers));
    return numbers;
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  swapmm_backend* backend = nullptr;
  swapmm_manager* manager = nullptr;
  std::array<swapmm_tensor, tensors> tensor{};
  std::uint64_t waited = 0;
};

}  // namespace

TEST_CASE("the C interface on CUDA: work on the manager's stream is in order, on demand and by a plan") {
  Desk desk;
  const swapmm_numbers numbers = desk.iterate(8, false);
  CHECK(numbers.iterations_followed >= 5);
  CHECK(numbers.swap_outs > 0);
  CHECK(desk.waited == 0);
}

TEST_CASE("the C interface on CUDA: work on a stream of the program waits for native events, and ends with one") {
  Desk desk;
  const swapmm_numbers numbers = desk.iterate(8, true);
  CHECK(numbers.iterations_followed >= 5);
  CHECK(desk.waited > 0);
}

TEST_CASE("the C interface on CUDA: operations run on the stream that the backend was made with") {
  Desk desk(true);
  CHECK(desk.iterate(3, false).operations == 18);
  int32_t device = -1;
  NEED(swapmm_cuda_device(desk.backend, &device));
  CHECK(device == 1);
}

TEST_CASE("the C interface on CUDA: a launch that fails between begin and end is an error of the end") {
  Desk desk;
  {
    const fake_cuda::FailingCall failing("launch", cudaErrorInvalidConfiguration);
    CHECK(desk.run(0, false) == SWAPMM_BACKEND_ERROR);
    CHECK(std::string(swapmm_last_error()).find("\"step\"") != std::string::npos);
    CHECK(failing.happened());
  }
  CHECK(swapmm_operation_end(desk.manager, nullptr) == SWAPMM_USAGE_ERROR);
  std::vector<std::byte> data(tensor_bytes);
  CHECK(swapmm_tensor_download(desk.manager, desk.tensor[1], 0, data.data(), tensor_bytes) == SWAPMM_WORK_FAILED);
  CHECK(swapmm_tensor_download(desk.manager, desk.tensor[0], 0, data.data(), tensor_bytes) == SWAPMM_OK);
}

TEST_CASE("the C interface on CUDA: an operation that cannot begin changes no value, wherever its begin fails") {
  Desk desk;
  NEED(desk.run(5, false));  // updates tensor 0
  int failures = 0;
  for (std::uint64_t n = 1; n <= 8; ++n) {
    const swapmm_use use{desk.tensor[0], SWAPMM_UPDATE};
    swapmm_operation operation{};
    operation.struct_size = sizeof operation;
    operation.uses = &use;
    operation.use_count = 1;
    {
      const fake_cuda::FailingCall failing("cudaSetDevice", cudaErrorInvalidValue, n);
      if (swapmm_operation_begin(desk.manager, &operation) == SWAPMM_OK) {
        NEED(swapmm_operation_cancel(desk.manager));
      } else {
        ++failures;
      }
    }
    std::vector<std::byte> data(tensor_bytes);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    NEED(swapmm_tensor_download(desk.manager, desk.tensor[0], 0, data.data(), tensor_bytes));
  }
  CHECK(failures > 0);
}

TEST_CASE("the C interface on CUDA: a device that is lost stays lost, and the numbers can still be read") {
  Desk desk;
  NEED(desk.run(0, false));
  {
    const fake_cuda::LosingDevice losing(cudaErrorIllegalAddress, 1);
    CHECK(swapmm_manager_synchronize(desk.manager) == SWAPMM_DEVICE_LOST);
    CHECK(losing.happened());
    CHECK(swapmm_iteration_begin(desk.manager, "train") == SWAPMM_DEVICE_LOST);
    swapmm_numbers numbers{};
    numbers.struct_size = sizeof numbers;
    CHECK(swapmm_manager_numbers(desk.manager, &numbers) == SWAPMM_OK);
    CHECK(numbers.tensors == tensors);
  }
}

TEST_CASE("the C interface on CUDA: devices that do not exist are refused") {
  fake_cuda::restart();
  swapmm_backend* backend = nullptr;
  CHECK(swapmm_cuda_create(3, &backend) == SWAPMM_USAGE_ERROR);
  CHECK(swapmm_cuda_pick("no such device", &backend) == SWAPMM_USAGE_ERROR);
  CHECK(backend == nullptr);
  CHECK(swapmm_cuda_create(0, nullptr) == SWAPMM_USAGE_ERROR);
  NEED(swapmm_cuda_pick("Fake", &backend));
  swapmm_backend_destroy(backend);
  NEED(swapmm_simulated_create(nullptr, &backend));
  int32_t device = -1;
  CHECK(swapmm_cuda_device(backend, &device) == SWAPMM_USAGE_ERROR);
  swapmm_backend_destroy(backend);
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
}
