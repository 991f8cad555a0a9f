// SPDX-License-Identifier: Apache-2.0
// What a program sees of the API's failures through a manager: exceptions with names and numbers, and a manager that
// works on.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "opencl/support.hpp"
#include "support/chain.hpp"
#include "support/steady_plans.hpp"
#include "support/tensor_names.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Manager = MemoryManager<opencl::Backend>;

constexpr std::size_t three_layers = 3;

/// A manager that must swap, with a chain on it that has run twice and so learned nothing yet.
struct Desk {
  Desk() {
    for (const Number seed : {1U, 2U}) run(seed);
  }
  /// One iteration of program and model.
  void run(Number seed) {
    chain.iterate(seed);
    model.iterate(seed);
  }
  /// Several more iterations, by a plan in the end, and every bit is right.
  bool works() {
    for (Number seed = 50; seed < 56; ++seed) run(seed);
    return chain.output().download() == model.output() && same_weights(chain, model) &&
           manager.report().iterations_followed > 0;
  }

  Manager manager{shared_backend(), {.device_budget = Bytes{4 * chain_tensor.value}}, steady_plans()};
  Chain<opencl::Backend> chain{manager, three_layers};
  ChainModel model{three_layers};
};

std::string status_text(cl_int status) {
  return std::string(opencl::status_name(status)) + " (" + std::to_string(status) + ")";
}

/// What making a manager says when that call of the API fails.
template <class E>
std::string refused(const char* function, cl_int status) {
  const auto at_rest = objects_at_rest();
  const opencl::Backend backend = shared_backend();
  const auto with_backend = api_objects();
  std::string text;
  {
    const FailingCall failing(function, status, 1, true);
    text = text_of<E>([&] { const Manager manager(backend, {.device_budget = 12'345_KiB}); });
    CHECK(failing.happened());
  }
  CHECK(api_objects() == with_backend);
  const Manager works(backend, {.device_budget = 12'345_KiB});
  CHECK(api_objects().memories == at_rest.memories + 1);
  return text;
}

}  // namespace

TEST_CASE("a budget that the device refuses is out of memory, at its creation or its first use") {
  const std::string what = "making a manager with a device budget of 12641280 bytes: ";
  const std::string budget = " of 12641280 bytes: ";
  for (const cl_int status : {-4, -5, -6, -61}) {
    CHECK(refused<OutOfMemory>("clCreateBuffer", status) == what + "clCreateBuffer" + budget + status_text(status));
    CHECK(refused<OutOfMemory>("clEnqueueFillBuffer", status) ==
          what + "the first use (clEnqueueFillBuffer) of a buffer" + budget + status_text(status));
    CHECK(refused<OutOfMemory>("clFinish", status) ==
          what + "the first use (clFinish) of a buffer" + budget + status_text(status));
  }
  for (const cl_int status : {-36, -2, -9999}) {
    CHECK(refused<DeviceLost>("clCreateBuffer", status) == what + "clCreateBuffer" + budget + status_text(status));
  }
  CHECK(refused<BackendError>("clCreateBuffer", -30) == what + "clCreateBuffer" + budget + status_text(-30));
}

TEST_CASE("a budget above all of the device's memory is refused before the driver is asked") {
  const opencl::Backend backend = shared_backend();
  const Bytes memory = *backend.capabilities().device_memory;
  for (const Bytes bytes : {memory + 1_bytes, Bytes{std::uint64_t{1} << 50U}, Bytes{~std::uint64_t{0}}}) {
    const std::string end =
        " a device budget of " + std::to_string(bytes.value) + " bytes: the device has " + std::to_string(memory.value);
    CHECK(text_of<OutOfMemory>([&] { const Manager manager(backend, {.device_budget = bytes}); }) ==
          "making a manager with" + end);
    Manager manager(backend, {.device_budget = 1_MiB});
    CHECK(text_of<OutOfMemory>([&] { manager.set_budget(bytes); }) == "setting" + end);
    manager.set_budget(2_MiB);
  }
}

TEST_CASE("a budget below the device's alignment is refused with both numbers") {
  const opencl::Backend backend = shared_backend();
  const std::uint64_t alignment = backend.capabilities().alignment.value;
  REQUIRE(alignment > 1);
  const std::string text =
      text_of<UsageError>([&] { const Manager manager(backend, {.device_budget = Bytes{alignment - 1}}); });
  CHECK(says(text, {std::to_string(alignment - 1), std::to_string(alignment)}));
}

TEST_CASE("a bundle above the budget names the operation, its tensors and all sizes, and queues nothing") {
  Desk desk;
  auto large = desk.manager.tensor<Number>({4 * chain_length}, "large");
  const std::uint64_t kernels_before = api_calls().kernels;
  const auto error = thrown<BundleTooLarge>(
      [&] { run_affine(desk.manager, Form::plain, "too much", desk.chain.weights[0], large, 1); });
  REQUIRE(error);
  CHECK(error->operation() == "too much");
  CHECK(error->sizes.need == 20'480_bytes);
  CHECK(error->sizes.budget == 16_KiB);
  CHECK(names_are(error->tensors(), {"large", "w0"}));
  CHECK(error->tensors()[0].bytes == 16_KiB);
  CHECK(api_calls().kernels == kernels_before);
  CHECK(desk.works());
}

TEST_CASE("a bundle that the device's largest allocation does not hold names that size") {
  const PretendedDeviceValue largest(CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8192);
  Manager manager(shared_backend(), {.device_budget = 20_KiB});
  auto fits = manager.tensor<Number>({2048}, "fits");
  auto large = manager.tensor<Number>({2049}, "large");
  fits.upload(numbers(2048, 1));
  const auto error =
      thrown<BundleTooLarge>([&] { manager.run("too long", writes(large), [](auto&) { FAIL_CHECK("was run"); }); });
  REQUIRE(error);
  CHECK(error->operation() == "too long");
  CHECK(error->sizes.largest_allocation == 8_KiB);
  CHECK(names_are(error->tensors(), {"large"}));
  run_affine(manager, Form::plain, "in place", fits, manager.tensor<Number>({2048}, "other"), 1);
  CHECK(fits.download() == numbers(2048, 1));
}

TEST_CASE("a copy that cannot be queued names the operation it was for, and the operation can be tried again") {
  for (const Form form : {Form::plain, Form::with_event}) {
    for (const char* const call : {"clEnqueueWriteBuffer", "clEnqueueReadBuffer"}) {
      for (const cl_int status : {-5, -14, -30, -4, -6}) {
        CAPTURE(call);
        CAPTURE(status);
        Desk desk;
        desk.chain.form = form;
        // The last iteration ended at w0; bringing w2 and h2 moves something both ways.
        const auto grow_again = [&] {
          run_grow(desk.manager, form, "again", desk.chain.hidden[2], desk.chain.weights[2]);
        };
        std::string text;
        {
          const FailingCall failing(call, status);
          text = opencl::kind_of(status) == BackendError::Kind::failed ? text_of<BackendError>(grow_again)
                                                                       : text_of<OutOfMemory>(grow_again);
          CHECK(failing.happened());
        }
        CHECK(text == "operation \"again\": " + std::string(call) + ": " + status_text(status));
        grow_again();
        grow(desk.model.hidden[2], desk.model.weights[2]);
        CHECK(desk.works());
      }
    }
  }
}

TEST_CASE("pinned memory that is refused is replaced by pageable memory, and values are right") {
  for (const char* const call : {"clCreateBuffer", "clEnqueueMapBuffer"}) {
    Manager manager(shared_backend(), {.device_budget = 64_KiB});
    auto tensor = manager.tensor<Number>({1000}, "t");
    const FailingCall failing(call, -6);
    tensor.upload(numbers(1000, 7));
    CHECK(failing.happened());
    CHECK(manager.report().pinned_used.value == 0);
    CHECK(manager.report().host_used.value > 0);
    auto other = manager.tensor<Number>({1000}, "u");
    run_affine(manager, Form::plain, "copy", tensor, other, 3);
    Numbers expected(1000);
    affine(numbers(1000, 7), expected, 3);
    CHECK(other.download() == expected);
    CHECK(manager.report().pinned_used.value > 0);  // only that one was refused
  }
}

TEST_CASE("a kernel that cannot be queued is the program's error, and what it was to write is undefined") {
  Desk desk;
  const std::string text = text_of<BackendError>([&] {
    const FailingCall failing("clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES);
    run_grow(desk.manager, Form::plain, "grows", desk.chain.hidden[0], desk.chain.weights[0]);
  });
  CHECK(says(text, {"kernel \"grow\"", "clEnqueueNDRangeKernel", "CL_OUT_OF_RESOURCES (-5)"}));
  CHECK(says(text_of<WorkFailed>([&] { (void)desk.chain.weights[0].download(); }), {"\"w0\""}));
  desk.model.weights[0] = numbers(chain_length, 9);
  desk.chain.weights[0].upload(desk.model.weights[0]);
  CHECK(desk.works());
}

TEST_CASE("a part of a tensor that the device cannot address is refused with the tensor, the byte and the alignment") {
  Desk desk;
  const std::uint64_t alignment = desk.manager.backend().capabilities().alignment.value;
  REQUIRE(alignment > sizeof(Number));
  const std::uint64_t asked = api_calls().sub_buffers_made;
  const auto part = desk.chain.weights[0].slice(1, 32);
  const auto error =
      thrown<UsageError>([&] { desk.manager.run("part", reads(part), [&](auto& op) { (void)op[part]; }); });
  REQUIRE(error);
  CHECK(error->operation() == "part");
  CHECK(names_are(error->tensors(), {"w0"}));
  CHECK(says(error->what(), {"\"w0\"", "byte 4 of", "multiples of " + std::to_string(alignment)}));
  CHECK(api_calls().sub_buffers_made == asked);
  CHECK(desk.works());
}

TEST_CASE("a lost device is told by every call, with the values that went with it, and all objects end") {
  const auto at_rest = objects_at_rest();
  for (const cl_int status : {-36, -2, -9999}) {
    std::optional<Desk> desk(std::in_place);
    std::string text;
    {
      const FailingCall failing("clEnqueueWriteBuffer", status);
      text = text_of<DeviceLost>(
          [&] { run_grow(desk->manager, Form::plain, "lost", desk->chain.hidden[2], desk->chain.weights[2]); });
      CHECK(failing.happened());
    }
    CHECK(says(text,
               {"operation \"lost\"", "clEnqueueWriteBuffer", status_text(status), "lost with the device", "\"w0\""}));
    CHECK(text_of<DeviceLost>([&] { desk->manager.synchronize(); }) == text);
    CHECK(text_of<DeviceLost>([&] { (void)desk->chain.weights[0].download(); }) == text);
    CHECK(text_of<DeviceLost>([&] { desk->chain.input.upload(numbers(chain_length, 1)); }) == text);
    CHECK(text_of<DeviceLost>([&] { (void)desk->manager.iteration("more"); }) == text);
    CHECK(desk->manager.report().device_budget.value == 4 * chain_tensor.value);
    desk.reset();
    CHECK(api_objects() == at_rest);
  }
}
