// SPDX-License-Identifier: Apache-2.0
// The end of managers on a real device: objects in any order, and what lies in memory that goes back.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "opencl/support.hpp"
#include "support/chain.hpp"

using namespace swapmm;
using namespace swapmm::test;

namespace {

using Manager = MemoryManager<opencl::Backend>;

constexpr std::size_t few_layers = 4;
constexpr Bytes half_of_few{chain_bytes(few_layers).value / 2};

/// The buffer that a tensor's place is a part of, with a reference of its own.
opencl::Handle<cl_mem> memory_of(Manager& manager, Tensor<Number, opencl::Backend>& tensor) {
  cl_mem whole = nullptr;
  manager.run("look", updates(tensor), [&](auto& op) {
    const cl_mem part = op[tensor].buffer();
    REQUIRE(clGetMemObjectInfo(part, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, nullptr) == CL_SUCCESS);
    if (whole == nullptr) whole = part;
  });
  return opencl::Handle<cl_mem>::retain(whole);
}

/// Its bytes that are not 0.
std::size_t bytes_left(cl_mem memory) {
  std::size_t size = 0;
  REQUIRE(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, nullptr) == CL_SUCCESS);
  std::vector<std::byte> bytes(size);
  cl_int status = CL_SUCCESS;
  const opencl::Handle<cl_command_queue> queue(
      clCreateCommandQueue(first_backend().context(), first_backend().device(), 0, &status));
  REQUIRE(clEnqueueReadBuffer(queue.get(), memory, CL_TRUE, 0, size, bytes.data(), 0, nullptr, nullptr) == CL_SUCCESS);
  return size - static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), std::byte{0}));
}

/// Of a manager that has ended with work in flight.
std::size_t left_by(const Options& options) {
  opencl::Handle<cl_mem> memory;
  {
    Manager manager(shared_backend(), options);
    Chain<opencl::Backend> chain(manager, few_layers, Form::plain);
    memory = memory_of(manager, chain.weights.front());
    for (Number seed = 1; seed < 5; ++seed) {
      const auto iteration = manager.iteration();
      chain.forward(seed);
      chain.backward();
    }
  }
  return bytes_left(memory.get());
}

}  // namespace

TEST_CASE("with Options::scrub the device memory that goes back is zero, and without it values lie in it") {
  const ApiObjects before = objects_at_rest();
  CHECK(left_by({.device_budget = half_of_few}) > half_of_few.value / 4);
  CHECK(left_by({.device_budget = half_of_few, .scrub = true}) == 0);
  CHECK(api_objects() == before);
}

TEST_CASE("manager, tensors, promise and iteration may go in every order while work is in flight") {
  const ApiObjects before = objects_at_rest();
  std::array<int, 4> order{0, 1, 2, 3};
  do {
    CAPTURE(order);
    Numbers target(chain_length);
    ChainModel model(few_layers);
    {
      std::optional<Manager> manager(std::in_place, shared_backend(), Options{.device_budget = half_of_few});
      std::optional<Chain<opencl::Backend>> chain(std::in_place, *manager, few_layers, Form::with_event);
      std::optional<Iteration<opencl::Backend>> iteration;
      for (Number seed = 1; seed < 5; ++seed) {
        iteration.reset();
        iteration.emplace(manager->iteration());
        chain->forward(seed);
        chain->backward();
        model.iterate(seed);
      }
      std::optional<PendingDownload<opencl::Backend>> promise(chain->output().download_async(target));
      bool promised = true;
      for (const int which : order) {
        if (which == 0) manager.reset();
        if (which == 1) chain.reset();
        if (which == 2) promise.reset();
        if (which == 3) iteration.reset();
        promised = promised && which != 2;
        if (which == 0 && promised) CHECK(target == model.output());
      }
    }
    CHECK(api_objects() == before);
  } while (std::next_permutation(order.begin(), order.end()));
}
