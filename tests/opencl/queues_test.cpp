// SPDX-License-Identifier: Apache-2.0
// The queue that operations run on: the program's own or swapmm's, with and without times, and what the second form of
// an operation may give back.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "opencl/support.hpp"
#include "support/chain.hpp"
#include "support/steady_plans.hpp"

using namespace swapmm;
using namespace swapmm::test;
using namespace swapmm::literals;

namespace {

using Manager = MemoryManager<opencl::Backend>;

opencl::Handle<cl_command_queue> make_queue(cl_command_queue_properties properties) {
  cl_int status = CL_SUCCESS;
  opencl::Handle<cl_command_queue> queue(
      clCreateCommandQueue(first_backend().context(), first_backend().device(), properties, &status));
  REQUIRE(status == CL_SUCCESS);
  return queue;
}
opencl::Handle<cl_mem> make_buffer(std::size_t bytes) {
  cl_int status = CL_SUCCESS;
  opencl::Handle<cl_mem> buffer(clCreateBuffer(first_backend().context(), CL_MEM_READ_WRITE, bytes, nullptr, &status));
  REQUIRE(status == CL_SUCCESS);
  return buffer;
}

constexpr std::size_t four_layers = 4;
const Options half_budget{.device_budget = Bytes{chain_bytes(four_layers).value / 2}};

}  // namespace

TEST_CASE("operations run on the program's queue, in order with the program's own commands") {
  for (const cl_command_queue_properties properties :
       {cl_command_queue_properties{0}, cl_command_queue_properties{CL_QUEUE_PROFILING_ENABLE}}) {
    const auto queue = make_queue(properties);
    const auto mine = make_buffer(chain_tensor.value);
    Manager manager(shared_backend(queue.get()), {.device_budget = Bytes{3 * chain_tensor.value}}, steady_plans());
    std::vector<Tensor<Number, opencl::Backend>> sums;
    for (const char* const name : {"a", "b", "c", "d"}) {
      sums.push_back(manager.tensor<Number>({chain_length}, name));
      sums.back().upload(Numbers(chain_length, 0));
    }
    // The program writes its buffer, an operation reads it, the program writes it anew: any other order shows.
    std::vector<Numbers> expected(sums.size(), Numbers(chain_length, 0));
    Number value = 0;
    for (int round = 0; round < 40; ++round) {
      const auto iteration = manager.iteration("loop");
      for (std::size_t i = 0; i < sums.size(); ++i) {
        ++value;
        CHECK(clEnqueueFillBuffer(queue.get(), mine.get(), &value, sizeof value, 0, chain_tensor.value, 0, nullptr,
                                  nullptr) == CL_SUCCESS);
        manager.run("take", updates(sums[i]), [&](auto& op) {
          CHECK(op.queue() == queue.get());
          const cl_mem from = mine.get();
          auto& kernel = kernels().grow;
          clSetKernelArg(kernel.get(), 0, sizeof from, &from);
          const cl_mem to = op[sums[i]].buffer();
          clSetKernelArg(kernel.get(), 1, sizeof to, &to);
          kernel.enqueue(op.queue(), {chain_length});
        });
        grow(Numbers(chain_length, value), expected[i]);
      }
    }
    const Report report = manager.report();
    CHECK(report.iterations_followed > 30);
    CHECK(report.swap_ins > 30);
    for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i].download() == expected[i]);
  }
}

TEST_CASE("times are observed on swapmm's queue, and on the program's with or without profiling") {
  const auto plain = make_queue(0);
  const auto profiling = make_queue(CL_QUEUE_PROFILING_ENABLE);
  for (const cl_command_queue queue : {cl_command_queue{nullptr}, profiling.get(), plain.get()}) {
    for (const Form form : {Form::plain, Form::with_event}) {
      CAPTURE(std::string(queue == nullptr ? "own" : queue == plain.get() ? "plain" : "profiling"));
      Manager manager(shared_backend(queue), half_budget, steady_plans());
      Chain<opencl::Backend> chain(manager, four_layers, form);
      ChainModel model(four_layers);
      for (Number seed = 0; seed < 8; ++seed) {
        chain.iterate(seed);
        model.iterate(seed);
      }
      const auto trace = manager.scheduler().trace("train");
      REQUIRE(trace.has_value());
      REQUIRE(trace->operations.size() == 2 * four_layers + 1);
      for (const TraceOperation& operation : trace->operations) {
        CAPTURE(operation.name);
        CHECK(operation.duration > std::chrono::nanoseconds(0));
        CHECK(operation.duration < std::chrono::seconds(10));
      }
      const Machine machine = manager.machine();
      CHECK(machine.h2d.bytes_per_second > 0);
      CHECK(machine.d2h.bytes_per_second > 0);
      CHECK(manager.report().iterations_followed == 5);  // the first one has the weights' uploads
      CHECK(chain.output().download() == model.output());
      CHECK(same_weights(chain, model));
    }
  }
}

TEST_CASE("commands keep their order where timing goes on and off between them") {
  // Long enough to be still running when the next command is queued.
  const std::size_t count = device_is_slow() ? 4096 : 256 * 1024;
  opencl::Backend backend = shared_backend();
  opencl::DeviceMemory memory = backend.allocate(Bytes{count * sizeof(Number)});
  const opencl::Address place = backend.address(memory, Bytes{0}, Bytes{count * sizeof(Number)});
  opencl::HostMemory host = backend.allocate_host(Bytes{count * sizeof(Number)}, HostKind::pinned);
  opencl::Event event = backend.make_event();
  const opencl::View<Number> view(place, count);
  kernels().set.set(view, Number{1});
  kernels().set.enqueue(backend.queue(), {count});
  Number expected = 1;
  for (Number round = 0; round < 60; ++round) {
    backend.set_timing(round % 3 != 0);
    kernels().affine.set(view, view, round);
    kernels().affine.enqueue(backend.queue(), {count});
    expected = 3 * expected + round;
  }
  backend.set_timing(true);
  backend.record(QueueKind::compute, event);
  const std::vector<const opencl::Event*> waits{&event};
  backend.copy_to_host(host, Bytes{0}, place, Bytes{count * sizeof(Number)}, waits, event);
  backend.wait(event);
  const auto* const seen = reinterpret_cast<const Number*>(host.data());
  CHECK(std::all_of(seen, seen + count, [&](Number number) { return number == expected; }));
}

TEST_CASE("copies keep their order where timing goes on and off between them") {
  constexpr std::size_t count = 1024 * 1024;
  opencl::Backend backend = shared_backend();
  const Bytes size{count * sizeof(Number)};
  opencl::DeviceMemory memory = backend.allocate(size);
  const opencl::Address place = backend.address(memory, Bytes{0}, size);
  opencl::HostMemory back = backend.allocate_host(size, HostKind::pinned);
  std::vector<opencl::HostMemory> values;
  for (Number i = 0; i < 2; ++i) {
    values.push_back(backend.allocate_host(size, HostKind::pinned));
    std::fill_n(reinterpret_cast<Number*>(values.back().data()), count, i + 1);
  }
  opencl::Event up = backend.make_event();
  opencl::Event down = backend.make_event();
  for (int round = 0; round < 8; ++round) {
    // The long copy first, a short one over its beginning behind it: the short one must win.
    backend.set_timing(round % 2 == 0);
    backend.copy_to_device(place, values[0], Bytes{0}, size, {}, up);
    backend.set_timing(round % 2 != 0);
    backend.copy_to_device(place, values[1], Bytes{0}, Bytes{64}, {}, up);
    const std::vector<const opencl::Event*> waits{&up};
    backend.copy_to_host(back, Bytes{0}, place, size, waits, down);
    backend.set_timing(round % 2 == 0);
    backend.copy_to_host(back, Bytes{0}, place, Bytes{64}, waits, down);
    for (const QueueKind queue : {QueueKind::h2d, QueueKind::d2h}) backend.flush(queue);
    backend.wait(down);
    const auto* const seen = reinterpret_cast<const Number*>(back.data());
    CHECK(std::count(seen, seen + 16, 2) == 16);
    CHECK(std::count(seen + 16, seen + count, 1) == count - 16);
    const std::vector<const opencl::Event*> after{&down};
    backend.wait(QueueKind::h2d, after);
  }
}

TEST_CASE("an operation of the second form may give no event") {
  Manager manager(shared_backend(), half_budget, steady_plans());
  Chain<opencl::Backend> chain(manager, four_layers);
  ChainModel model(four_layers);
  for (Number seed = 0; seed < 6; ++seed) {
    const auto iteration = manager.iteration("train");
    chain.forward(seed);
    for (std::size_t i = four_layers; i-- > 0;) {
      manager.run("backward", reads(chain.hidden[i]), updates(chain.weights[i]),
                  [&](auto& op, const opencl::WaitList& waits) -> opencl::NativeEvent {
                    kernels().grow.set(op[chain.hidden[i]], op[chain.weights[i]]);
                    (void)kernels().grow.enqueue(op.queue(), {chain_length}, {}, waits);
                    return nullptr;
                  });
    }
    model.iterate(seed);
  }
  CHECK(manager.report().iterations_followed == 3);
  CHECK(chain.output().download() == model.output());
  CHECK(same_weights(chain, model));
}

TEST_CASE("an operation of the second form that queues nothing still waits for what it was to wait for") {
  Manager manager(shared_backend(), half_budget, steady_plans());
  auto tensor = manager.tensor<Number>({chain_length}, "t");
  for (Number seed = 0; seed < 200; ++seed) {
    tensor.upload(numbers(chain_length, seed));
    manager.run("look", reads(tensor), [](auto&, const opencl::WaitList&) { return opencl::NativeEvent(); });
    // Reads what is on its way up: the value before it, if nobody waited.
    run_kernel(
        manager, "add", Form::with_event, kernels().affine, chain_length,
        [&](auto& op) { kernels().affine.set(op[tensor], op[tensor], seed); }, updates(tensor));
    Numbers expected(chain_length);
    affine(numbers(chain_length, seed), expected, seed);
    CHECK(tensor.download() == expected);
  }
}

TEST_CASE("an operation of the second form may be a marker behind its waits") {
  Manager manager(shared_backend(), half_budget, steady_plans());
  auto tensor = manager.tensor<Number>({chain_length}, "t");
  for (Number seed = 0; seed < 20; ++seed) {
    tensor.upload(numbers(chain_length, seed));
    manager.run("look", reads(tensor), [](auto& op, const opencl::WaitList& waits) -> opencl::NativeEvent {
      cl_event event = nullptr;
      CHECK(clEnqueueMarkerWithWaitList(op.queue(), waits.size(), waits.data(), &event) == CL_SUCCESS);
      return event;
    });
    // Behind it nothing is waited for again.
    manager.run("add", updates(tensor), [&](auto& op, const opencl::WaitList& waits) {
      CHECK(waits.size() == 0);
      kernels().affine.set(op[tensor], op[tensor], seed);
      return kernels().affine.enqueue(op.queue(), {chain_length}, {}, waits);
    });
    Numbers expected(chain_length);
    affine(numbers(chain_length, seed), expected, seed);
    CHECK(tensor.download() == expected);
  }
}

TEST_CASE("an event that tells of failed work is reported with the value it was for, and the manager works on") {
  const auto at_rest = objects_at_rest();
  {
    Manager manager(shared_backend(), half_budget, steady_plans());
    Chain<opencl::Backend> chain(manager, four_layers);
    ChainModel model(four_layers);
    chain.iterate(1);
    model.iterate(1);
    manager.run("fails", updates(chain.weights[0]), [&](auto&, const opencl::WaitList&) -> opencl::NativeEvent {
      cl_int status = CL_SUCCESS;
      const cl_event failed = clCreateUserEvent(first_backend().context(), &status);
      CHECK(clSetUserEventStatus(failed, -5) == CL_SUCCESS);
      return failed;
    });
    const std::string text = text_of<WorkFailed>([&] { manager.synchronize(); });
    CHECK(says(text, {"operation \"fails\" failed", "\"w0\""}));
    CHECK(says(text_of<WorkFailed>([&] { (void)chain.weights[0].download(); }), {"\"w0\""}));
    model.weights[0] = numbers(chain_length, 77);
    chain.weights[0].upload(model.weights[0]);
    for (Number seed = 0; seed < 6; ++seed) {
      chain.iterate(seed);
      model.iterate(seed);
    }
    CHECK(manager.report().iterations_followed > 0);
    CHECK(chain.output().download() == model.output());
    CHECK(same_weights(chain, model));
  }
  CHECK(api_objects() == at_rest);
}

TEST_CASE("what an operation of the second form throws passes through, and its waits are not lost") {
  Manager manager(shared_backend(), half_budget, steady_plans());
  Chain<opencl::Backend> chain(manager, four_layers);
  ChainModel model(four_layers);
  for (Number seed = 0; seed < 8; ++seed) {
    if (seed == 4) {  // a plan is followed by now
      const auto iteration = manager.iteration("train");
      CHECK_THROWS_WITH_AS(
          manager.run("input", reads(chain.input), writes(chain.hidden[0]),
                      [](auto&, const opencl::WaitList&) -> opencl::NativeEvent { throw std::domain_error("mine"); }),
          "mine", std::domain_error);
    }
    chain.iterate(seed);
    model.iterate(seed);
  }
  CHECK(chain.output().download() == model.output());
  CHECK(same_weights(chain, model));
}
