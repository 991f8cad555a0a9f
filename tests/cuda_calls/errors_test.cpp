// SPDX-License-Identifier: Apache-2.0
// What the backend makes of the API's errors, and what it leaves to the program.

#include <doctest/doctest.h>

#include <optional>
#include <sstream>
#include <string>

#include <swapmm/cuda/devices.hpp>
#include <swapmm/cuda/status.hpp>

#include "cuda_calls/support.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Manager = MemoryManager<CheckedBackend>;

template <class ErrorType, class Call>
std::string error_text(Call&& call) {
  try {
    call();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace

TEST_CASE("a status has a kind, the API's code, and its words") {
  fake_cuda::restart();
  CHECK(cuda::kind_of(cudaErrorMemoryAllocation) == BackendError::Kind::out_of_device_memory);
  CHECK(cuda::kind_of(cudaErrorInvalidValue) == BackendError::Kind::failed);
  for (const cudaError_t code :
       {cudaErrorCudartUnloading, cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable, cudaErrorIllegalAddress,
        cudaErrorLaunchTimeout, cudaErrorContextIsDestroyed, cudaErrorAssert, cudaErrorHardwareStackError,
        cudaErrorIllegalInstruction, cudaErrorMisalignedAddress, cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,
        cudaErrorLaunchFailure, cudaErrorMpsClientTerminated, cudaErrorExternalDevice, cudaErrorUnknown}) {
    CHECK(cuda::kind_of(code) == BackendError::Kind::device_lost);
  }
  const BackendError error = cuda::error_of(cudaErrorInvalidValue, "cudaMemcpyAsync", " of 8 bytes");
  CHECK(error.code == 1);
  CHECK(std::string(error.what()) == "cudaMemcpyAsync of 8 bytes: cudaErrorInvalidValue (1): a text of the runtime");
}

TEST_CASE("errors of our own calls are cleared, the program's stay") {
  fake_cuda::restart();
  CheckedBackend backend = fake_backend();
  {
    const fake_cuda::FailingCall refused("cudaMalloc", cudaErrorMemoryAllocation);
    CHECK_THROWS_AS((void)backend.allocate(Bytes{64}), BackendError);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  {
    const fake_cuda::FailingCall refused("launch", cudaErrorInvalidConfiguration);
    fake_cuda::launch(backend.queue(), {});
  }
  const auto memory = backend.allocate(Bytes{64});
  auto event = backend.make_event();
  backend.record(QueueKind::compute, event);
  fake_cuda::set_query_luck(0);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);  // nobody took it away
  CHECK(backend.status(event) == EventStatus::running);
  CHECK(cudaPeekAtLastError() == cudaSuccess);  // "not ready" is no error to the program
  backend.finish();
}

TEST_CASE("a launch that failed in an operation, unseen, is the operation's error") {
  fake_cuda::restart();
  {
    Manager manager(fake_backend(), {.device_budget = Bytes{1 << 20}});
    auto a = manager.tensor<Number>({chain_length}, "a");
    auto b = manager.tensor<Number>({chain_length}, "b");
    a.upload(numbers(chain_length, 1));
    b.upload(numbers(chain_length, 1));
    for (const Form form : {Form::plain, Form::with_event}) {
      const fake_cuda::FailingCall refused("launch", cudaErrorInvalidConfiguration);
      CHECK(error_text<BackendError>([&] { run_affine(manager, form, "widen", a, b, 1); }) ==
            "operation \"widen\": a kernel launch or a call in it: cudaErrorInvalidConfiguration (9): a text of the "
            "runtime");
      CHECK(refused.happened());
      CHECK(cudaPeekAtLastError() == cudaSuccess);
      CHECK_THROWS_AS((void)b.download(), WorkFailed);  // it was to be written
      CHECK(a.download() == numbers(chain_length, 1));
    }
    // An error from before neither stops an operation nor hides its own.
    for (const bool own : {false, true}) {
      {
        const fake_cuda::FailingCall refused("launch", cudaErrorInvalidConfiguration);
        fake_cuda::launch(CheckedBackend(manager.backend()).queue(), {});
      }
      const fake_cuda::FailingCall again("launch", cudaErrorInvalidConfiguration, own ? 1 : 1000);
      if (own) {
        CHECK_THROWS_AS(run_affine(manager, Form::plain, "widen", a, b, 1), BackendError);
      } else {
        run_affine(manager, Form::plain, "widen", a, b, 1);
      }
      CHECK(cudaPeekAtLastError() == cudaSuccess);
    }
    // A callable that throws tells of its error itself.
    CHECK_THROWS_AS(manager.run("throw", updates(a),
                                [&](auto& op) {
                                  const fake_cuda::FailingCall refused("launch", cudaErrorInvalidConfiguration);
                                  fake_cuda::launch(op.stream(), {});
                                  throw 1;
                                }),
                    int);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
}

TEST_CASE("in an operation the backend's device is the current one, behind it the caller's") {
  fake_cuda::restart({{.name = "first"}, {.name = "second"}});
  {
    CheckedBackend backend(1, cuda::Settings{.measure = false});
    Manager manager(backend, {.device_budget = Bytes{1 << 20}});
    auto a = manager.tensor<Number>({chain_length}, "a");
    manager.run("set", writes(a), [&](auto& op) {
      CHECK(fake_cuda::current_device() == 1);
      fake_cuda::launch(op.stream(), {bytes_of(op[a], true)});
    });
    CHECK(fake_cuda::current_device() == 0);
    CHECK_THROWS_AS(manager.run("throw", writes(a), [&](auto&) { throw 1; }), int);
    CHECK(fake_cuda::current_device() == 0);
  }
  CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
}

TEST_CASE("where the backend's device cannot be made the current one, nothing is done on another one") {
  fake_cuda::restart({{.name = "the program's"}, {.name = "the backend's"}});
  const auto refused = [](auto&& call) {
    const fake_cuda::FailingCall set("cudaSetDevice", cudaErrorDevicesUnavailable);
    fake_cuda::clear_calls();
    const std::string text = error_text<BackendError>(call);
    CHECK(set.happened());
    CHECK(text.starts_with("cudaSetDevice: "));
    CHECK(fake_cuda::count("cudaMalloc") + fake_cuda::count("cudaHostAlloc") + fake_cuda::count("cudaMemGetInfo") == 0);
    CHECK(fake_cuda::count("cudaEventCreateWithFlags") + fake_cuda::count("cudaStreamCreateWithFlags") == 0);
    CHECK(fake_cuda::current_device() == 0);
  };
  refused([] { CheckedBackend(1, cuda::Settings{.measure = false}); });
  {
    CheckedBackend backend(1, cuda::Settings{.measure = false});
    refused([&] { (void)backend.allocate(Bytes{64}); });
    refused([&] { (void)backend.allocate_host(Bytes{64}, HostKind::pinned); });
    refused([&] { (void)backend.make_event(); });
    refused([&] { (void)backend.default_device_budget(); });
    const auto memory = backend.allocate(Bytes{64});
    CHECK(fake_cuda::calls().back().number == 1);  // the device
  }
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
}

TEST_CASE("an error that sticks, found behind a callable, is the loss of the device") {
  fake_cuda::restart();
  {
    Manager manager(fake_backend(), {.device_budget = Bytes{1 << 20}});
    auto a = manager.tensor<Number>({chain_length}, "a");
    std::optional<fake_cuda::LosingDevice> lost;
    CHECK_THROWS_AS(manager.run("lose", writes(a),
                                [&](auto& op) {
                                  lost.emplace(cudaErrorIllegalAddress, 1);
                                  fake_cuda::launch(op.stream(), {});
                                }),
                    DeviceLost);
  }
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
}

TEST_CASE("on a default stream all calls are made with the backend's device, and nothing is captured") {
  fake_cuda::restart({{.name = "first"}, {.name = "second"}});
  CHECK_THROWS_AS(cuda::Backend(1, cudaStreamPerThread), UsageError);
  {
    CheckedBackend backend(1, cuda::Settings{.stream = nullptr, .measure = false});
    CHECK(fake_cuda::current_device() == 0);
    MemoryManager manager(backend, {.device_budget = Bytes{chain_bytes(4).value / 2}});
    Chain<CheckedBackend> chain(manager, 4, Form::with_event);
    for (Number step = 0; step < 7; ++step) chain.iterate(step);
    CHECK(manager.report().iterations_followed > 0);
    CHECK(fake_cuda::current_device() == 0);
    backend.finish();
    CHECK_THROWS_AS(backend.begin_capture(), UsageError);
    cudaEvent_t done = nullptr;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&done, cudaEventDisableTiming) == cudaSuccess);
    REQUIRE(cudaEventRecord(done, nullptr) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    auto slot = backend.make_event();
    fake_cuda::clear_calls();
    backend.adopt(slot, done);
    CHECK(fake_cuda::count("cudaStreamWaitEvent") == 1);
    CHECK(cudaEventDestroy(done) == cudaSuccess);
  }
  CHECK_MESSAGE(fake_cuda::violations().empty(), violations_text());
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
}

TEST_CASE("a device that is lost is told by every later call, and everything ends") {
  fake_cuda::restart();
  {
    std::optional<Manager> manager(std::in_place, fake_backend(), Options{.device_budget = Bytes{1 << 20}});
    auto a = manager->tensor<Number>({chain_length}, "a");
    auto b = manager->tensor<Number>({chain_length}, "b");
    a.upload(numbers(chain_length, 1));
    run_affine(*manager, Form::plain, "first", a, b, 1);
    const fake_cuda::LosingDevice lost(cudaErrorIllegalAddress, 1);
    const std::string first = error_text<DeviceLost>([&] { (void)b.download(); });
    CHECK_MESSAGE(first.find("cudaErrorIllegalAddress (700)") != std::string::npos, first);
    CHECK_THROWS_AS(run_affine(*manager, Form::plain, "second", a, b, 1), DeviceLost);
    CHECK_THROWS_AS(manager->synchronize(), DeviceLost);
    manager.reset();
  }
  CHECK(fake_cuda::objects() == fake_cuda::Objects{});
}

// ---- devices

TEST_CASE("without a driver there is no device, and the reason is said") {
  fake_cuda::restart();
  fake_cuda::set_device_count_status(cudaErrorInsufficientDriver);
  CHECK(cuda::devices().devices.empty());
  CHECK(cuda::devices().why_none == "There is no CUDA device: no NVIDIA driver is installed.");
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  std::ostringstream said;
  CHECK(error_text<UsageError>([&] { (void)cuda::Backend::pick("", said); }) ==
        "no CUDA device can be used.\nThere is no CUDA device: no NVIDIA driver is installed.");
  CHECK(error_text<UsageError>([] { const cuda::Backend backend(0); }) ==
        "there is no CUDA device with number 0. There is no CUDA device: no NVIDIA driver is installed.");
  fake_cuda::set_device_count_status(cudaErrorNoDevice);
  CHECK(cuda::devices().why_none ==
        "There is no CUDA device: the driver finds none (or CUDA_VISIBLE_DEVICES hides all).");
  CHECK(said.str().empty());
}

TEST_CASE("a device that shares the host's memory is refused in words") {
  fake_cuda::restart({{.name = "Small board", .integrated = true}});
  CHECK(error_text<UsageError>([] { const cuda::Backend backend(0); }) ==
        "CUDA device [0] Small board (9.0), 1024 MiB (cannot be used: it shares the host's memory, so that swapping "
        "would free nothing)");
  CHECK_THROWS_AS((void)cuda::choose(cuda::devices(), ""), UsageError);
  CHECK_THROWS_AS((void)cuda::choose(cuda::devices(), "board"), UsageError);
}

TEST_CASE("of several devices the one with the most memory is taken, or the one that is named") {
  fake_cuda::restart({{.name = "Tiny", .memory = std::size_t{1} << 30U},
                      {.name = "Large A", .memory = std::size_t{8} << 30U, .bus = "0000:AF:00.0"},
                      {.name = "Large B", .memory = std::size_t{8} << 30U}});
  const cuda::DeviceList list = cuda::devices();
  REQUIRE(list.devices.size() == 3);
  CHECK(list.devices[1].bus == "0000:af:00.0");
  CHECK(cuda::describe(list.devices[1]) == "[1] Large A (9.0), 8192 MiB");
  CHECK(cuda::choose(list, "") == 1);
  CHECK(cuda::choose(list, "0") == 0);
  CHECK(cuda::choose(list, "large b") == 2);
  CHECK_THROWS_AS((void)cuda::choose(list, "large"), UsageError);
  CHECK_THROWS_AS((void)cuda::choose(list, "7"), UsageError);
  {
    std::ostringstream said;
    const cuda::Backend backend = cuda::Backend::pick("tiny", said, cuda::Settings{.measure = false});
    CHECK(backend.device() == 0);
    CHECK(said.str() == "swapmm: [0] Tiny (9.0), 1024 MiB, 2 copy engines\n");
  }
  CHECK_THROWS_WITH_AS(cuda::Backend(3), "there is no CUDA device with number 3. There are 3, from 0 on.", UsageError);
  CHECK_THROWS_AS(cuda::Backend(-1), UsageError);
}
