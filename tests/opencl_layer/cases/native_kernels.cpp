// SPDX-License-Identifier: Apache-2.0
// Functions of the program as commands: they get the addresses of buffers.

#include "harness.hpp"

using namespace cases;

namespace {

bool has_native_kernels(const Setup& setup) {
  const auto able = info<cl_device_exec_capabilities>(clGetDeviceInfo, setup.device, CL_DEVICE_EXECUTION_CAPABILITIES);
  if ((able & CL_EXEC_NATIVE_KERNEL) != 0) return true;
  say("no native kernels");
  return false;
}

struct Task {
  const cl_uint* from;
  cl_uint* to;
  cl_uint added;
};
void CL_CALLBACK add_task(void* data) {
  const auto& task = *static_cast<const Task*>(data);
  for (std::size_t i = 0; i < word_count; ++i) task.to[i] = task.from[i] + task.added;
}

}  // namespace

CASE(native_kernels, two_buffers) {
  const Setup setup;
  if (!has_native_kernels(setup)) return;
  const Kernels kernels(setup);
  const cl_mem a = setup.buffer_of(numbers(1)), b = setup.buffer_of(numbers(2)), c = setup.buffer_of(numbers(3));
  for (cl_uint i = 0; i < 4; ++i) {
    kernels.blend(setup.queue, a, b, c);
    Task task{nullptr, nullptr, i};
    const cl_mem objects[] = {a, b};
    const void* places[] = {&task.from, &task.to};
    cl_event event = nullptr;
    OK(clEnqueueNativeKernel(setup.queue, add_task, &task, sizeof task, 2, objects, places, 0, nullptr, &event));
    task.added = 1000;  // the arguments are copied
    kernels.blend(setup.queue, c, b, a);
    OK(clWaitForEvents(1, &event));
    say("type %x", event_info<cl_command_type>(event, CL_EVENT_COMMAND_TYPE));
    OK(clReleaseEvent(event));
  }
  for (cl_mem one : {a, b, c}) say_words("one", setup.read(one));
  release_buffers({a, b, c});
}

// The buffers are named in the order in which they were made, and used before in another: the device's memory may
// consist of several allocations, and where a buffer lies then depends on when it was used first.
CASE(native_kernels, used_in_another_order) {
  const Setup setup;
  if (!has_native_kernels(setup)) return;
  const Kernels kernels(setup);
  std::vector<cl_mem> all;
  for (cl_uint i = 0; i < 4; ++i) all.push_back(setup.buffer_of(numbers(i)));
  for (std::size_t i = 4; i-- > 0;) kernels.grow(setup.queue, all[i], 1);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) {
      Task task{nullptr, nullptr, static_cast<cl_uint>(10 * i + j)};
      const cl_mem objects[] = {all[i], all[j]};
      const void* places[] = {&task.from, &task.to};
      OK(clEnqueueNativeKernel(setup.queue, add_task, &task, sizeof task, 2, objects, places, 0, nullptr, nullptr));
      say_words("to", setup.read(all[j]));
    }
  }
  release_buffers(all);
}

CASE(native_kernels, no_buffers) {
  const Setup setup;
  if (!has_native_kernels(setup)) return;
  static int calls = 0;
  OK(clEnqueueNativeKernel(
      setup.queue, [](void*) { ++calls; }, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, nullptr));
  int value = 5;
  OK(clEnqueueNativeKernel(
      setup.queue, [](void* data) { calls += *static_cast<int*>(data); }, &value, sizeof value, 0, nullptr, nullptr, 0,
      nullptr, nullptr));
  OK(clFinish(setup.queue));
  say("%d", calls);
}

CASE(native_kernels, errors) {
  const Setup setup;
  if (!has_native_kernels(setup)) return;
  const cl_mem a = setup.buffer();
  Task task{};
  const void* places[] = {&task.from};
  say_status("no function",
             clEnqueueNativeKernel(setup.queue, nullptr, &task, sizeof task, 1, &a, places, 0, nullptr, nullptr));
  say_status("no arguments",
             clEnqueueNativeKernel(setup.queue, add_task, nullptr, 8, 0, nullptr, nullptr, 0, nullptr, nullptr));
  say_status("no objects",
             clEnqueueNativeKernel(setup.queue, add_task, &task, sizeof task, 1, nullptr, places, 0, nullptr, nullptr));
  say_status("no places",
             clEnqueueNativeKernel(setup.queue, add_task, &task, sizeof task, 1, &a, nullptr, 0, nullptr, nullptr));
  OK(clReleaseMemObject(a));
}
