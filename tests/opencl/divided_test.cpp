// SPDX-License-Identifier: Apache-2.0
// Slices of divided tensors on a real device.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "opencl/support.hpp"
#include "support/divided_loop.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;

TEST_CASE("operations on slices of tensors that are larger than the budget are right, in both forms") {
  for (const Form form : {Form::plain, Form::with_event}) check_divided_loop(shared_backend(), form, steady());
}

TEST_CASE("work on a queue of the program's own waits for a joined slice, and is waited for") {
  MemoryManager<opencl::Backend> manager(shared_backend(), {.device_budget = Bytes{1U << 16U}});
  auto field = manager.divided<Number>({8, 33}, "field", {.entries = 4});
  Numbers model = numbers(8 * 33, 1);
  field.upload(model);
  auto by = manager.tensor<Number>({2 * 33}, "by");
  const Numbers added = numbers(2 * 33, 2);
  by.upload(added);
  cl_int status = CL_SUCCESS;
  const opencl::Handle<cl_command_queue> own(
      clCreateCommandQueue(first_backend().context(), first_backend().device(), 0, &status));
  REQUIRE(status == CL_SUCCESS);
  const auto slice = field.slice(3, 2);
  for (int i = 0; i < 20; ++i) {
    manager.run("grow", reads(by), updates(slice), [&](auto& op, const opencl::WaitList& waits) {
      kernels().grow.set(op[by], op[slice]);
      auto end = kernels().grow.enqueue(own.get(), {slice.size()}, {}, waits);
      opencl::check(clFlush(own.get()), "clFlush");
      return end;
    });
    for (std::size_t k = 0; k < slice.size(); ++k) model[3 * 33 + k] = 7U * model[3 * 33 + k] + added[k];
  }
  CHECK(field.download() == model);
}

TEST_CASE("a slice as a raw kernel launch takes it") {
  MemoryManager<opencl::Backend> manager(shared_backend(), {.device_budget = Bytes{1U << 16U}});
  auto field = manager.divided<Number>({8, 33}, "field", {.entries = 4});
  field.upload(numbers(8 * 33, 1));
  const auto slice = field.slice(3, 2);
  manager.run("set", writes(slice), [&](auto& op) {
    kernels().set.set(op.argument(slice), cl_uint{5});
    kernels().set.enqueue(op.queue(), {slice.size()});
  });
  CHECK(slice.download() == Numbers(2 * 33, 5));
}

TEST_CASE("an event that tells of failed work on a joined slice is reported, and the manager works on") {
  MemoryManager<opencl::Backend> manager(shared_backend(), {.device_budget = Bytes{1U << 16U}});
  auto field = manager.divided<Number>({8, 33}, "field", {.entries = 4});
  const Numbers value = numbers(8 * 33, 1);
  for (const bool later : {false, true}) {
    field.upload(value);
    std::thread teller;
    const auto fail = [&](auto&, const opencl::WaitList&) -> opencl::NativeEvent {
      cl_int status = CL_SUCCESS;
      const cl_event failed = clCreateUserEvent(first_backend().context(), &status);
      REQUIRE(clRetainEvent(failed) == CL_SUCCESS);
      const auto tell = [failed, later] {
        if (later) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        clSetUserEventStatus(failed, -5);
        clReleaseEvent(failed);
      };
      teller = std::thread(tell);
      if (!later) teller.join();
      return failed;
    };
    try {
      manager.run("fails", updates(field.slice(3, 2)), fail);
      FAIL_CHECK("no error");
    } catch (const WorkFailed& error) {
      CHECK(std::string(error.what()).find("operation \"fails\" failed") != std::string::npos);
    }
    if (teller.joinable()) teller.join();
    CHECK_THROWS_AS(static_cast<void>(field.slice(3, 2).download()), WorkFailed);
    CHECK_NOTHROW(manager.synchronize());
  }
  field.upload(value);
  CHECK(field.download() == value);
}
