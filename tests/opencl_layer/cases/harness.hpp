// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the cases share. Each case is a legal program of OpenCL that prints the same on every run. Whatever lies between
// it and the driver, the output and the exit code must stay the same.

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#include <CL/cl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace cases {

struct Case {
  const char* theme;
  const char* name;
  void (*run)();
};
std::vector<Case>& all_cases();
struct Registered {
  Registered(const char* theme, const char* name, void (*run)()) { all_cases().push_back({theme, name, run}); }
};

/// Defines one case: CASE(buffers, read_only) { ... }
#define CASE(theme, name)                                                                          \
  static void run_##theme##_##name();                                                              \
  static const cases::Registered registered_##theme##_##name{#theme, #name, run_##theme##_##name}; \
  static void run_##theme##_##name()

/// Prints one line.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);
/// "CL_INVALID_VALUE" of -30.
const char* name_of(cl_int status);
/// Prints the line "what: CL_..."
void say_status(const char* what, cl_int status);
/// The same for a call whose status the specification says, `rule`, and some drivers return another one, of `natively`.
/// Where the program runs natively (CASES_LAYERED is not set), prints the rule for these as well: all output is the
/// same then, and the layer must keep to the rule.
void say_ruled(const char* what, cl_int status, cl_int rule, std::initializer_list<cl_int> natively);
/// True if the driver may do what the specification does not allow: the program runs natively.
bool is_native();
/// Prints a line "FAIL ..." and makes the exit code 1 if `holds` is false. The case goes on.
void expect(bool holds, const char* what);
/// Ends the process with exit code 1 if the call failed.
void require(cl_int status, const char* call, int line);
bool any_failed();
#define OK(call) cases::require((call), #call, __LINE__)

using Words = std::vector<cl_uint>;
/// 64 KiB: large beside what alignment adds.
constexpr std::size_t word_count = 16384;
constexpr std::size_t buffer_bytes = word_count * sizeof(cl_uint);
/// Numbers that depend on `seed` alone.
Words numbers(cl_uint seed, std::size_t count = word_count);
std::uint64_t hash(const void* data, std::size_t bytes);
std::uint64_t hash(const Words& words);
/// Prints hash, first and last number.
void say_words(const char* what, const Words& words);

/// A context of the first device with one queue and the kernels of common.cpp.
struct Setup {
  explicit Setup(cl_command_queue_properties properties = 0);
  ~Setup();
  Setup(const Setup&) = delete;
  Setup& operator=(const Setup&) = delete;

  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;

  cl_mem buffer(std::size_t bytes = buffer_bytes, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) const;
  /// With these numbers in it.
  cl_mem buffer_of(const Words& words, cl_mem_flags flags = CL_MEM_READ_WRITE) const;
  cl_command_queue another_queue(cl_command_queue_properties properties = 0) const;
  cl_kernel kernel(const char* name) const;
  cl_program build(const char* source, const char* options = "") const;
  Words read(cl_mem object, std::size_t count = word_count) const;
};

/// The first device of the first platform.
cl_device_id first_device(cl_platform_id* platform = nullptr);

inline void set_argument(cl_kernel kernel, cl_uint index, const cl_mem& object) {
  OK(clSetKernelArg(kernel, index, sizeof object, &object));
}
inline void set_argument(cl_kernel kernel, cl_uint index, cl_uint value) {
  OK(clSetKernelArg(kernel, index, sizeof value, &value));
}
/// Launches the kernel with these arguments, one work item for each of `count`.
void launch(cl_command_queue queue, cl_kernel kernel, std::size_t count, const std::vector<cl_event>& waits = {},
            cl_event* event = nullptr);

/// The kernels of common.cpp as functions. Each returns at once; `event` as OpenCL has it.
struct Kernels {
  explicit Kernels(const Setup& setup);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;
  /// to[i] = 3 a[i] + 5 b[i] + i
  void blend(cl_command_queue queue, cl_mem to, cl_mem a, cl_mem b, std::size_t count = word_count,
             const std::vector<cl_event>& waits = {}, cl_event* event = nullptr) const;
  /// data[i] = 7 data[i] + by
  void grow(cl_command_queue queue, cl_mem data, cl_uint by, std::size_t count = word_count,
            const std::vector<cl_event>& waits = {}, cl_event* event = nullptr) const;
  /// to[i] = 3 from[i] + by
  void affine(cl_command_queue queue, cl_mem to, cl_mem from, cl_uint by, std::size_t count = word_count,
              const std::vector<cl_event>& waits = {}, cl_event* event = nullptr) const;
  cl_kernel blend_kernel, grow_kernel, affine_kernel;
};

/// With the numbers of `seed` and of those after it.
std::vector<cl_mem> buffers_of(const Setup& setup, cl_uint count, cl_uint seed = 0);
void release_buffers(const std::vector<cl_mem>& buffers);
void release_events(const std::vector<cl_event>& events);

/// Waits for what a driver does at its own time. False after ten seconds.
template <class Done>
bool comes_true(Done&& done) {
  for (int i = 0; i < 10000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return done();
}

template <class Value, class Handle, class Query>
Value info(Query query, Handle handle, cl_uint name) {
  Value value{};
  std::size_t bytes = 0;
  const cl_int status = query(handle, name, sizeof value, &value, &bytes);
  if (status != CL_SUCCESS) say_status("info", status);
  expect(status != CL_SUCCESS || bytes == sizeof value, "the size of an answer");
  return value;
}
template <class Value>
Value memory_info(cl_mem object, cl_mem_info name) {
  return info<Value>(clGetMemObjectInfo, object, name);
}
template <class Value>
Value event_info(cl_event event, cl_event_info name) {
  return info<Value>(clGetEventInfo, event, name);
}
inline cl_int status_of(cl_event event) { return event_info<cl_int>(event, CL_EVENT_COMMAND_EXECUTION_STATUS); }
inline cl_uint references(cl_mem object) { return memory_info<cl_uint>(object, CL_MEM_REFERENCE_COUNT); }

}  // namespace cases
