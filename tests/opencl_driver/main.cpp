// SPDX-License-Identifier: Apache-2.0
// What the OpenCL driver of a device does where drivers differ, or are wrong. No answer makes it fail: what swapmm does
// about each stands beside the question.
//
// driver             asks everything, each question in a process of its own, for some drivers crash
// driver QUESTION    asks that one

#include <sys/wait.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Device {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  std::array<cl_command_queue, 3> queues{};
  cl_kernel fill = nullptr;
  std::size_t alignment = 1;
  bool is_cpu = false;
};

void check(cl_int status, const char* call) {
  if (status == CL_SUCCESS) return;
  std::printf("%s: %d\n", call, status);
  std::exit(1);
}
#define OK(call) check(call, #call)

// Slow, so that what waits for it is queued long before it ends.
const char* const fill_source =
    "kernel void fill(global uint* to, uint value, uint rounds) {"
    "  uint x = value;"
    "  for (uint i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;"
    "  to[get_global_id(0)] = rounds == 0 || x != 77u ? value : 0u; }";

cl_device_id best_device() {
  std::array<cl_platform_id, 16> platforms{};
  cl_uint count = 0;
  OK(clGetPlatformIDs(platforms.size(), platforms.data(), &count));
  for (const cl_device_type type : {cl_device_type{CL_DEVICE_TYPE_GPU}, cl_device_type{CL_DEVICE_TYPE_ALL}}) {
    for (cl_uint i = 0; i < std::min<cl_uint>(count, platforms.size()); ++i) {
      cl_device_id device = nullptr;
      if (clGetDeviceIDs(platforms[i], type, 1, &device, nullptr) == CL_SUCCESS) return device;
    }
  }
  std::printf("skipped: there is no OpenCL device\n");
  std::exit(0);
}

std::string text_of(cl_device_id device, cl_device_info what) {
  std::array<char, 256> text{};
  OK(clGetDeviceInfo(device, what, text.size() - 1, text.data(), nullptr));
  return text.data();
}

cl_program program_of(const Device& device, const char* source) {
  cl_int status = CL_SUCCESS;
  const cl_program program = clCreateProgramWithSource(device.context, 1, &source, nullptr, &status);
  OK(status);
  return program;
}

Device open() {
  Device device;
  device.id = best_device();
  cl_int status = CL_SUCCESS;
  device.context = clCreateContext(nullptr, 1, &device.id, nullptr, nullptr, &status);
  OK(status);
  for (cl_command_queue& queue : device.queues) {
    queue = clCreateCommandQueue(device.context, device.id, 0, &status);
    OK(status);
  }
  const cl_program program = program_of(device, fill_source);
  OK(clBuildProgram(program, 1, &device.id, "", nullptr, nullptr));
  device.fill = clCreateKernel(program, "fill", &status);
  OK(status);
  cl_uint bits = 0;
  OK(clGetDeviceInfo(device.id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr));
  device.alignment = std::max<std::size_t>(bits / 8, 128);
  cl_device_type type = 0;
  OK(clGetDeviceInfo(device.id, CL_DEVICE_TYPE, sizeof type, &type, nullptr));
  device.is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
  return device;
}

cl_mem buffer_of(const Device& device, std::size_t bytes) {
  cl_int status = CL_SUCCESS;
  const cl_mem made = clCreateBuffer(device.context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
  OK(status);
  return made;
}

void run_fill(const Device& device, cl_mem to, std::size_t count, cl_uint value, cl_uint rounds, cl_event* event) {
  OK(clSetKernelArg(device.fill, 0, sizeof(cl_mem), &to));
  OK(clSetKernelArg(device.fill, 1, sizeof value, &value));
  OK(clSetKernelArg(device.fill, 2, sizeof rounds, &rounds));
  OK(clEnqueueNDRangeKernel(device.queues[0], device.fill, 1, nullptr, &count, nullptr, 0, nullptr, event));
  OK(clFlush(device.queues[0]));
}

// ---- Questions: each prints one line, or several.

// A kernel writes, a copy brings it to pageable memory, another one from there to another buffer, each after the one
// before: does the last one see what arrived? If not, the backend waits before it queues such copies.
void pageable_copies() {
  const Device device = open();
  for (const std::size_t bytes : {std::size_t{256}, std::size_t{64} << 10U, std::size_t{1} << 20U}) {
    int stale = 0;
    constexpr int tries = 5;
    for (int i = 0; i < tries; ++i) {
      const cl_mem from = buffer_of(device, bytes);
      const cl_mem to = buffer_of(device, bytes);
      const std::size_t count = bytes / sizeof(cl_uint);
      std::vector<cl_uint> host(count, 1);
      const auto value = static_cast<cl_uint>(1000 + i);
      std::array<cl_event, 3> events{};
      const cl_uint rounds = bytes > (std::size_t{64} << 10U) ? 20'000 : 500'000;
      run_fill(device, from, count, value, device.is_cpu ? rounds / 1000 : rounds, events.data());
      OK(clEnqueueReadBuffer(device.queues[1], from, CL_FALSE, 0, bytes, host.data(), 1, &events[0], &events[1]));
      OK(clFlush(device.queues[1]));
      OK(clEnqueueWriteBuffer(device.queues[2], to, CL_FALSE, 0, bytes, host.data(), 1, &events[1], &events[2]));
      OK(clFlush(device.queues[2]));
      for (const cl_command_queue queue : device.queues) OK(clFinish(queue));
      std::vector<cl_uint> seen(count);
      OK(clEnqueueReadBuffer(device.queues[0], to, CL_TRUE, 0, bytes, seen.data(), 0, nullptr, nullptr));
      stale += std::all_of(seen.begin(), seen.end(), [&](cl_uint word) { return word == value; }) ? 0 : 1;
      for (const cl_event event : events) OK(clReleaseEvent(event));
      OK(clReleaseMemObject(from));
      OK(clReleaseMemObject(to));
    }
    std::printf("  of %zu bytes: %s\n", bytes, stale == 0 ? "right" : "STALE");
  }
}

struct Region {
  std::size_t begin;
  std::size_t size;
};

// Sub-buffers that overlap in one way, released in one order. They are used by kernels before.
void sub_buffers(const std::vector<Region>& regions, const std::vector<std::size_t>& order) {
  const Device device = open();
  const cl_mem whole = buffer_of(device, 64 * device.alignment);
  std::vector<cl_mem> parts;
  for (const Region& region : regions) {
    const cl_buffer_region place{region.begin * device.alignment, region.size * device.alignment};
    cl_int status = CL_SUCCESS;
    parts.push_back(clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &place, &status));
    OK(status);
    run_fill(device, parts.back(), place.size / sizeof(cl_uint), 1, 0, nullptr);
  }
  OK(clFinish(device.queues[0]));
  for (const std::size_t i : order) OK(clReleaseMemObject(parts[i]));
  OK(clReleaseMemObject(whole));
  OK(clFinish(device.queues[0]));
  std::printf("  right\n");
}

std::vector<std::size_t> first_first(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}
std::vector<std::size_t> last_first(std::size_t count) {
  std::vector<std::size_t> order = first_first(count);
  std::reverse(order.begin(), order.end());
  return order;
}
std::vector<std::size_t> mixed(std::size_t count) {
  std::vector<std::size_t> order = first_first(count);
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count / 2), order.end());
  return order;
}

const std::vector<Region> equal_places{{0, 8}, {0, 8}, {0, 8}};
const std::vector<Region> one_begin{{0, 8}, {0, 2}, {0, 4}, {0, 16}};
const std::vector<Region> one_end{{0, 8}, {6, 2}, {4, 4}};
const std::vector<Region> within{{0, 8}, {2, 2}, {4, 2}, {3, 4}};
const std::vector<Region> across{{0, 8}, {4, 8}, {8, 8}, {6, 4}, {2, 12}};
const std::vector<Region> all_kinds{{0, 8}, {0, 2}, {2, 2}, {4, 2}, {6, 2}, {4, 8}, {6, 4}, {1, 3}, {12, 20}, {9, 16}};

void sub_buffer_beyond() {
  const Device device = open();
  const cl_mem whole = buffer_of(device, 4 * device.alignment);
  const cl_buffer_region place{2 * device.alignment, 4 * device.alignment};
  cl_int status = CL_SUCCESS;
  (void)clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &place, &status);
  std::printf("  %s (%d)\n", status == CL_SUCCESS ? "MADE" : "refused", status);
}

// What is told of the arguments: the layer asks for it even where a program is built without the option.
void say_arguments(cl_program program, const char* options) {
  cl_int status = CL_SUCCESS;
  const cl_kernel kernel = clCreateKernel(program, "a", &status);
  OK(status);
  cl_uint count = 0;
  OK(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr));
  std::printf("  options \"%s\":", options);
  for (cl_uint i = 0; i < count; ++i) {
    cl_kernel_arg_address_qualifier where = 0;
    status = clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, nullptr);
    std::printf(status == CL_SUCCESS ? " %x" : " NOT TOLD (%d)",
                status == CL_SUCCESS ? static_cast<int>(where) : status);
  }
  std::printf("\n");
  OK(clReleaseKernel(kernel));
}

// Sources that are built with and without -cl-kernel-arg-info. If they are refused with it, the layer builds without.
void argument_information() {
  const Device device = open();
  struct Source {
    const char* what;
    const char* text;
  };
  constexpr std::array<Source, 7> sources{{
      {"plain arguments", "kernel void a(global uint* x, uint y) { x[0] = y; }"},
      {"no arguments", "kernel void a() {}"},
      {"a constant buffer", "kernel void a(global uint* x, constant uint* y) { x[0] = y[0]; }"},
      {"local memory", "kernel void a(global uint* x, local uint* y) { y[0] = x[0]; x[1] = y[0]; }"},
      {"a structure",
       "typedef struct { uint a; uchar b; ulong c; } S; kernel void a(global uint* x, S s) { x[0] = s.a + s.b; }"},
      {"a pointer that is compared", "kernel void a(global uint* x, global const uint* y) { x[0] = y ? y[0] : 7u; }"},
      {"an image", "kernel void a(global uint* x, read_only image2d_t y) { x[0] = (uint)get_image_width(y); }"},
  }};
  for (const Source& source : sources) {
    for (const char* const options : {"", "-cl-kernel-arg-info"}) {
      const cl_program program = program_of(device, source.text);
      const cl_int status = clBuildProgram(program, 1, &device.id, options, nullptr, nullptr);
      if (status == CL_SUCCESS) {
        say_arguments(program, options);
        continue;
      }
      std::vector<char> log(8192);
      (void)clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
      std::printf("  %s, options \"%s\": REFUSED (%d) %s\n", source.what, options, status, log.data());
    }
    std::printf("  %s: asked\n", source.what);
  }
}

void native_kernels() {
  const Device device = open();
  cl_device_exec_capabilities what = 0;
  OK(clGetDeviceInfo(device.id, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof what, &what, nullptr));
  std::printf("  %s\n", (what & CL_EXEC_NATIVE_KERNEL) != 0 ? "yes" : "NO");
}

// A command that waits for a user event that fails must not run, and must say so.
void failed_user_events() {
  const Device device = open();
  const cl_mem to = buffer_of(device, 1024);
  cl_int status = CL_SUCCESS;
  const cl_event gate = clCreateUserEvent(device.context, &status);
  OK(status);
  const cl_uint zero = 0;
  cl_event after = nullptr;
  OK(clEnqueueFillBuffer(device.queues[0], to, &zero, sizeof zero, 0, 1024, 1, &gate, &after));
  OK(clFlush(device.queues[0]));
  OK(clSetUserEventStatus(gate, -1));
  const cl_int waited = clWaitForEvents(1, &after);
  cl_int told = 0;
  OK(clGetEventInfo(after, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof told, &told, nullptr));
  std::printf("  the wait gives %d, the event %d, the queue's end %d\n", waited, told, clFinish(device.queues[0]));
}

// When a driver destroys a released buffer that was used in these ways: a budget that two contexts share is kept only
// if one waits for that.
void released_after(const char* what, void (*use)(const Device& device, cl_mem buffer)) {
  const Device device = open();
  const cl_mem buffer = buffer_of(device, std::size_t{1} << 20U);
  use(device, buffer);
  for (const cl_command_queue queue : device.queues) OK(clFinish(queue));
  std::atomic<bool> gone{false};
  OK(clSetMemObjectDestructorCallback(
      buffer, [](cl_mem, void* data) { static_cast<std::atomic<bool>*>(data)->store(true); }, &gone));
  OK(clReleaseMemObject(buffer));
  const auto is_gone = [&] {
    for (int i = 0; i < 30 && !gone; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return gone.load();
  };
  const bool at_once = is_gone();
  const cl_mem none = nullptr;
  OK(clSetKernelArg(device.fill, 0, sizeof none, &none));
  const bool without_argument = is_gone();
  for (const cl_command_queue queue : device.queues) OK(clFinish(queue));
  std::printf("  %s: %s; when no kernel has it %s; after a wait %s\n", what, at_once ? "destroyed" : "KEPT",
              without_argument ? "destroyed" : "KEPT", is_gone() ? "destroyed" : "KEPT");
}

void released_buffers() {
  released_after("a kernel's argument",
                 [](const Device& device, cl_mem buffer) { run_fill(device, buffer, 1024, 1, 1, nullptr); });
  released_after("with an event that is kept", [](const Device& device, cl_mem buffer) {
    cl_event kept = nullptr;
    run_fill(device, buffer, 1024, 1, 1, &kept);
  });
  released_after("copied, with an event that is kept", [](const Device& device, cl_mem buffer) {
    static std::vector<cl_uint> host(1024);
    cl_event filled = nullptr;
    cl_event read = nullptr;
    run_fill(device, buffer, 1024, 1, 1, &filled);
    OK(clEnqueueReadBuffer(device.queues[1], buffer, CL_FALSE, 0, 4096, host.data(), 1, &filled, &read));
    OK(clFlush(device.queues[1]));
    OK(clReleaseEvent(filled));
  });
  released_after("in sub-buffers", [](const Device& device, cl_mem buffer) {
    for (std::size_t i = 0; i < 4; ++i) {
      const cl_buffer_region region{i * device.alignment * 64, device.alignment * 64};
      cl_int status = CL_SUCCESS;
      const cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
      OK(status);
      run_fill(device, part, 1024, 1, 1, nullptr);
      OK(clReleaseMemObject(part));
    }
  });
  released_after("in a sub-buffer, with an event that is kept", [](const Device& device, cl_mem buffer) {
    const cl_buffer_region region{0, device.alignment * 64};
    cl_int status = CL_SUCCESS;
    const cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    OK(status);
    cl_event kept = nullptr;
    run_fill(device, part, 1024, 1, 1, &kept);
    OK(clReleaseMemObject(part));
  });
}

struct Question {
  std::string name;
  void (*ask)();
};

#define SUB_BUFFERS(places)                                                                                     \
  Question{"sub-buffers, " #places ", first first", [] { sub_buffers(places, first_first(places.size())); }},   \
      Question{"sub-buffers, " #places ", last first", [] { sub_buffers(places, last_first(places.size())); }}, \
      Question {                                                                                                \
    "sub-buffers, " #places ", mixed", [] { sub_buffers(places, mixed(places.size())); }                        \
  }

const std::vector<Question>& questions() {
  static const std::vector<Question> all{
      {"copies by pageable memory", pageable_copies},
      SUB_BUFFERS(equal_places),
      SUB_BUFFERS(one_begin),
      SUB_BUFFERS(one_end),
      SUB_BUFFERS(within),
      SUB_BUFFERS(across),
      SUB_BUFFERS(all_kinds),
      {"a sub-buffer beyond its buffer", sub_buffer_beyond},
      {"released buffers", released_buffers},
      {"argument information", argument_information},
      {"native kernels", native_kernels},
      {"failed user events", failed_user_events},
  };
  return all;
}

void ask_apart(const char* program, const Question& question) {
  std::printf("%s:\n", question.name.c_str());
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    execl(program, program, question.name.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::printf("  not asked\n");
  } else if (WIFSIGNALED(status)) {
    std::printf("  ENDED by signal %d\n", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    std::printf("  ended with %d\n", WEXITSTATUS(status));
  }
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) {
    for (const Question& question : questions()) {
      if (question.name == words[1]) {
        question.ask();
        return 0;
      }
    }
    std::fprintf(stderr, "there is no question \"%s\"\n", words[1]);
    return 2;
  }
  const cl_device_id device = best_device();
  std::printf("%s, driver %s\n", text_of(device, CL_DEVICE_NAME).c_str(), text_of(device, CL_DRIVER_VERSION).c_str());
  for (const Question& question : questions()) ask_apart("/proc/self/exe", question);
  std::printf("%zu questions asked\n", questions().size());
  return 0;
}
