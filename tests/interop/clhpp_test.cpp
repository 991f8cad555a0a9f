// SPDX-License-Identifier: Apache-2.0
// The C++ bindings CL/opencl.hpp on tensors that swapmm moves.
#include <swapmm/opencl/clhpp.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <swapmm/swapmm.hpp>

#include "opencl/api_calls.hpp"
#include "opencl/device.hpp"

namespace {

using namespace swapmm;
using namespace swapmm::literals;
using opencl::as_cl_buffer;
using opencl::as_cl_queue;

using Number = std::uint32_t;

constexpr std::size_t length = 10'007;
constexpr std::size_t fields = 8;
constexpr int iterations = 8;

// Each field takes something of the one before, so that a value too old or too new shows in all that follow.
constexpr const char* source = R"(
__kernel void blend(__global const uint* from, __global uint* to, uint factor) {
  size_t i = get_global_id(0);
  to[i] = to[i] * factor + (from[i] ^ (uint)i);
})";
Number blended(Number from, Number to, Number factor, std::size_t i) {
  return to * factor + (from ^ static_cast<Number>(i));
}
Number factor_of(std::size_t field) { return static_cast<Number>(2 * field + 3); }

std::vector<Number> numbers(Number seed) {
  std::vector<Number> values(length);
  for (Number& value : values) value = seed = seed * 1664525U + 1013904223U;
  return values;
}

std::vector<std::vector<Number>> on_the_host() {
  std::vector<std::vector<Number>> data;
  for (std::size_t f = 0; f < fields; ++f) data.push_back(numbers(static_cast<Number>(f + 1)));
  for (int turn = 0; turn < iterations; ++turn) {
    for (std::size_t f = 0; f < fields; ++f) {
      for (std::size_t i = 0; i < length; ++i) {
        Number& to = data[(f + 1) % fields][i];
        to = blended(data[f][i], to, factor_of(f), i);
      }
    }
  }
  return data;
}

/// What a program that uses the bindings holds.
struct Program {
  opencl::Backend found = test::backend();
  cl::Context context{found.context(), true};
  cl::Device device{found.device(), true};
  cl::Program program = built();
  cl::Kernel kernel{program, "blend"};

  cl::Program built() const {
    cl::Program made(context, std::string(source));
    REQUIRE(made.build(std::vector<cl::Device>{device}) == CL_SUCCESS);
    return made;
  }

  template <class Op, class T>
  void set(Op& op, T& from, T& to, Number factor) {
    REQUIRE(kernel.setArg(0, as_cl_buffer(op[from])) == CL_SUCCESS);
    REQUIRE(kernel.setArg(1, as_cl_buffer(op[to])) == CL_SUCCESS);
    REQUIRE(kernel.setArg(2, factor) == CL_SUCCESS);
  }
};

/// Runs all iterations in half of the memory; `blend(manager, from, to, factor)` runs one operation.
template <class Blend>
void check(opencl::Backend backend, Blend&& blend) {
  constexpr Bytes budget = 156_KiB;
  REQUIRE(budget.value * 2 <= fields * length * sizeof(Number));
  MemoryManager<opencl::Backend> manager(std::move(backend), {.device_budget = budget});
  std::vector<Tensor<Number, opencl::Backend>> data;
  for (std::size_t f = 0; f < fields; ++f) {
    data.push_back(manager.tensor<Number>({length}, "field " + std::to_string(f)));
    data.back().upload(numbers(static_cast<Number>(f + 1)));
  }
  test::ApiCalls before{};
  for (int turn = 0; turn < iterations; ++turn) {
    if (turn == 4) before = test::api_calls();
    auto iteration = manager.iteration("blend");
    for (std::size_t f = 0; f < fields; ++f) blend(manager, data[f], data[(f + 1) % fields], factor_of(f));
  }
  CHECK(test::api_calls().buffers_made == before.buffers_made);
  CHECK(test::api_calls().sub_buffers_made == before.sub_buffers_made);
  CHECK(test::api_calls().kernels - before.kernels == 4 * fields);
  const Report report = manager.report();
  CHECK(report.iterations_followed >= 4);
  CHECK(report.divergences == 0);
  CHECK(report.swap_ins > 0);
  CHECK(report.swap_outs > 0);
  CHECK(report.device_peak <= budget);
  const auto expected = on_the_host();
  for (std::size_t f = 0; f < fields; ++f) {
    CAPTURE(f);
    CHECK(data[f].download() == expected[f]);
  }
}

}  // namespace

TEST_CASE("a cl::Kernel takes managed tensors on op.queue()") {
  Program program;
  check(opencl::make_backend(program.context, program.device), [&](auto& manager, auto& from, auto& to, Number factor) {
    manager.run("blend", reads(from), updates(to), [&](auto& op) {
      program.set(op, from, to, factor);
      const cl::CommandQueue queue = as_cl_queue(op.queue());
      REQUIRE(queue.enqueueNDRangeKernel(program.kernel, cl::NullRange, cl::NDRange(length)) == CL_SUCCESS);
    });
  });
}

TEST_CASE("operations run on the program's own cl::CommandQueue, with times and without") {
  Program program;
  for (const auto properties : {cl::QueueProperties::None, cl::QueueProperties::Profiling}) {
    const cl::CommandQueue own(program.context, program.device, properties);
    REQUIRE(own() != nullptr);
    check(opencl::make_backend(program.context, program.device, own),
          [&](auto& manager, auto& from, auto& to, Number factor) {
            manager.run("blend", reads(from), updates(to), [&](auto& op) {
              CHECK(op.queue() == own());
              program.set(op, from, to, factor);
              REQUIRE(own.enqueueNDRangeKernel(program.kernel, cl::NullRange, cl::NDRange(length)) == CL_SUCCESS);
            });
          });
  }
}

TEST_CASE("an operation of the second form gives its wait list to the bindings, and returns their cl::Event") {
  Program program;
  const test::ApiObjects before = test::api_objects();
  std::size_t waited_for = 0;
  check(opencl::make_backend(program.context, program.device), [&](auto& manager, auto& from, auto& to, Number factor) {
    manager.run("blend", reads(from), updates(to), [&](auto& op, const opencl::WaitList& waits) {
      program.set(op, from, to, factor);
      const std::vector<cl::Event> events = opencl::as_cl_events(waits);
      waited_for += events.size();
      cl::Event done;
      REQUIRE(as_cl_queue(op.queue())
                  .enqueueNDRangeKernel(program.kernel, cl::NullRange, cl::NDRange(length), cl::NullRange, &events,
                                        &done) == CL_SUCCESS);
      return opencl::native_event(std::move(done));
    });
  });
  CHECK(waited_for > 0);
  // Each reference that was taken was given back.
  CHECK(test::api_objects().events == before.events);
  CHECK(test::api_objects().queues == before.queues);
}
