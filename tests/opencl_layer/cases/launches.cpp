// SPDX-License-Identifier: Apache-2.0
// Launches: dimensions, offsets, tasks, and those that are refused.

#include "harness.hpp"

using namespace cases;

CASE(launches, dimensions) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_kernel kernel = setup.kernel("places");
  const cl_mem to = setup.buffer_of(numbers(1)), other = setup.buffer_of(numbers(2)),
               third = setup.buffer_of(numbers(3));
  const std::size_t sizes[3] = {32, 16, 8}, groups[3] = {8, 4, 2};
  set_argument(kernel, 0, to);
  for (cl_uint dimensions = 1; dimensions <= 3; ++dimensions) {
    OK(clEnqueueNDRangeKernel(setup.queue, kernel, dimensions, nullptr, sizes, nullptr, 0, nullptr, nullptr));
    say_words("any group", setup.read(to));
    kernels.blend(setup.queue, other, third, other);
    OK(clEnqueueNDRangeKernel(setup.queue, kernel, dimensions, nullptr, sizes, groups, 0, nullptr, nullptr));
    say_words("its group", setup.read(to));
  }
  OK(clReleaseKernel(kernel));
  release_buffers({to, other, third});
}

CASE(launches, offset) {
  const Setup setup;
  const cl_kernel kernel = setup.kernel("offsets");
  const cl_mem to = setup.buffer_of(numbers(1));
  const std::size_t offset = 1000, size = 500;
  set_argument(kernel, 0, to);
  OK(clEnqueueNDRangeKernel(setup.queue, kernel, 1, &offset, &size, nullptr, 0, nullptr, nullptr));
  say_words("to", setup.read(to));
  OK(clReleaseKernel(kernel));
  OK(clReleaseMemObject(to));
}

CASE(launches, tasks) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_kernel kernel = setup.kernel("one");
  const cl_mem to = setup.buffer_of(Words(word_count, 5)), other = setup.buffer_of(numbers(2)),
               third = setup.buffer_of(numbers(3));
  set_argument(kernel, 0, to);
  cl_event event = nullptr;
  for (int i = 0; i < 3; ++i) {
    OK(clEnqueueTask(setup.queue, kernel, 0, nullptr, &event));
    OK(clWaitForEvents(1, &event));
    const auto type = event_info<cl_command_type>(event, CL_EVENT_COMMAND_TYPE);
    expect(type == CL_COMMAND_TASK || type == CL_COMMAND_NDRANGE_KERNEL, "the event is a launch's");
    OK(clReleaseEvent(event));
    kernels.blend(setup.queue, other, third, other);
  }
  say_words("to", setup.read(to));
  OK(clReleaseKernel(kernel));
  release_buffers({to, other, third});
}

CASE(launches, without_arguments) {
  const Setup setup;
  // A program of its own: NVIDIA's driver refuses to build one with argument information that has such a kernel.
  const cl_program program = setup.build("kernel void nothing() {}");
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, "nothing", &error);
  OK(error);
  for (int i = 0; i < 3; ++i) launch(setup.queue, kernel, 64);
  OK(clFinish(setup.queue));
  say("finished");
  OK(clReleaseKernel(kernel));
  OK(clReleaseProgram(program));
}

// The buffers keep their values, and other commands go on.
CASE(launches, refused) {
  const Setup setup;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  const auto attempt = [&](const char* what, cl_uint dimensions, const std::size_t* size, const std::size_t* group) {
    set_argument(kernels.affine_kernel, 0, a);
    set_argument(kernels.affine_kernel, 1, b);
    set_argument(kernels.affine_kernel, 2, 1u);
    cl_event event = nullptr;
    const cl_int status = clEnqueueNDRangeKernel(setup.queue, kernels.affine_kernel, dimensions, nullptr, size, group,
                                                 0, nullptr, &event);
    say_status(what, status);
    expect(status != CL_SUCCESS, "the launch is refused");
    kernels.grow(setup.queue, c, 1);
    kernels.blend(setup.queue, c, b, c);
  };
  const auto most = info<std::size_t>(clGetDeviceInfo, setup.device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  const std::size_t size[3] = {word_count, 1, 1}, huge[1] = {most * 2};
  const std::size_t larger[1] = {most * 2};
  attempt("too large a group", 1, larger, huge);
  attempt("no dimension", 0, size, nullptr);
  attempt("four dimensions", 4, size, nullptr);
  say_words("a", setup.read(a));
  say_words("b", setup.read(b));
  say_words("c", setup.read(c));
  release_buffers({a, b, c});
}

// A launch that no driver would take is refused by the call, also where it has to wait for the program.
CASE(launches, refused_behind_a_user_event) {
  const Setup setup;
  const cl_program program =
      setup.build("kernel void fill(global uint* to, uint value) { to[get_global_id(0)] = value; }");
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, "fill", &error);
  OK(error);
  const cl_event gate = clCreateUserEvent(setup.context, &error);
  OK(error);
  const cl_mem a = setup.buffer_of(numbers(1));
  const auto most = info<std::size_t>(clGetDeviceInfo, setup.device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  const std::size_t size = word_count, huge = most * 2;
  const auto attempt = [&](const char* what, cl_uint dimensions, const std::size_t* all, const std::size_t* group) {
    say_status(what, clEnqueueNDRangeKernel(setup.queue, kernel, dimensions, nullptr, all, group, 1, &gate, nullptr));
  };
  attempt("no argument", 1, &size, nullptr);
  set_argument(kernel, 0, a);
  attempt("one of two", 1, &size, nullptr);
  set_argument(kernel, 1, 7u);
  attempt("no dimension", 0, &size, nullptr);
  attempt("too large a group", 1, &huge, &huge);
  attempt("as it should be", 1, &size, nullptr);
  OK(clSetUserEventStatus(gate, CL_COMPLETE));
  OK(clFinish(setup.queue));
  say_words("a", setup.read(a));
  OK(clReleaseEvent(gate));
  OK(clReleaseKernel(kernel));
  OK(clReleaseProgram(program));
  release_buffers({a});
}

// Several kernels in one queue, none waited for.
CASE(launches, many) {
  const Setup setup;
  const Kernels kernels(setup);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < 5; ++i) buffers.push_back(setup.buffer_of(numbers(i)));
  for (cl_uint i = 0; i < 400; ++i)
    kernels.blend(setup.queue, buffers[i % 5], buffers[(i * 3 + 1) % 5], buffers[(i * 7 + 2) % 5], 2048);
  for (cl_mem one : buffers) say_words("one", setup.read(one));
  release_buffers(buffers);
}
