// SPDX-License-Identifier: Apache-2.0
#include "opencl/api_calls.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swapmm::test {

namespace {

ApiCalls calls;

/// Buffers in device memory that were not released yet. Nobody keeps a second reference of them.
class DeviceBuffers {
 public:
  void add(cl_mem buffer, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[buffer] = bytes;
    sum_ += bytes;
    calls.most_device_bytes = std::max(calls.most_device_bytes, sum_);
  }
  void remove(cl_mem buffer) {
    const std::lock_guard lock(mutex_);
    const auto found = bytes_.find(buffer);
    if (found == bytes_.end()) return;
    sum_ -= found->second;
    bytes_.erase(found);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    bytes_.clear();
    sum_ = 0;
  }

 private:
  std::mutex mutex_;
  std::map<cl_mem, std::uint64_t> bytes_;
  std::uint64_t sum_ = 0;
};
DeviceBuffers device_buffers;

/// Sub-buffers that were not released yet, in the order in which they were made. Nobody keeps a second reference.
class SubBuffers {
 public:
  void add(cl_mem part, cl_mem whole, const cl_buffer_region& region) {
    const std::lock_guard lock(mutex_);
    parts_.push_back({part, whole, region.origin, region.origin + region.size});
  }
  void remove(cl_mem memory) {
    const std::lock_guard lock(mutex_);
    const auto is_it = [&](const Part& part) { return part.memory == memory; };
    const auto found = std::find_if(parts_.begin(), parts_.end(), is_it);
    if (found == parts_.end()) return;
    const Part gone = *found;
    const auto later = parts_.erase(found);
    const auto overlaps = [&](const Part& other) {
      return other.whole == gone.whole && other.begin < gone.end && gone.begin < other.end;
    };
    if (std::any_of(later, parts_.end(), overlaps)) ++calls.sub_buffers_out_of_order;
  }

 private:
  struct Part {
    cl_mem memory;
    cl_mem whole;
    std::size_t begin;
    std::size_t end;
  };
  std::mutex mutex_;
  std::vector<Part> parts_;
};
SubBuffers sub_buffers;
ApiObjects objects;
std::mutex mutex;  // a driver's own threads release events

struct Failure {
  const char* function = nullptr;
  cl_int status = CL_SUCCESS;
  std::uint64_t left = 0;
  bool happened = false;
  bool then_all = false;
};
Failure failure;

struct Loss {
  cl_int status = CL_SUCCESS;  // of every call; CL_SUCCESS: the device stays
  std::uint64_t left = 0;
  std::uint64_t refused = 0;
};
Loss loss;

// Answers in the place of the driver's: what clGetDeviceInfo tells of a question, as bytes.
std::map<cl_device_info, std::string> device_answers;
const char* empty_function = nullptr;
cl_int said_of_complete = CL_COMPLETE;
bool eager_writes = false;
std::list<std::vector<std::byte>> taken_bytes;  // by eager writes

// Memory of the host that is a mapped buffer: page-locked.
std::mutex mapped_mutex;
std::map<const std::byte*, std::size_t> mapped_bytes;
bool is_mapped(const void* begin, std::size_t size) {
  const std::lock_guard lock(mapped_mutex);
  const auto* const at = static_cast<const std::byte*>(begin);
  const auto behind = mapped_bytes.upper_bound(at);
  if (behind == mapped_bytes.begin()) return false;
  const auto& [start, length] = *std::prev(behind);
  return at + size <= start + length;
}
std::vector<cl_ulong> times;  // of the next questions; the first one last

template <class Function>
Function next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s behind the test program\n", name);
    std::abort();
  }
  Function function{};
  static_assert(sizeof function == sizeof found);
  std::memcpy(&function, &found, sizeof function);
  return function;
}

// Each as often as it has references.
std::vector<cl_command_queue> live_queues;

// What is queued ends, as it does on a device that is gone.
void end_all_work() {
  for (const cl_command_queue queue : live_queues) next<decltype(&clFlush)>("clFlush")(queue);
  for (const cl_command_queue queue : live_queues) next<decltype(&clFinish)>("clFinish")(queue);
}

/// CL_SUCCESS, or what the call is to return instead of being done.
cl_int gate(std::string_view function) {
  if (loss.status != CL_SUCCESS) {
    if (loss.left > 0 && --loss.left == 0) end_all_work();
    loss.refused += loss.left == 0 ? 1 : 0;
    return loss.left == 0 ? loss.status : CL_SUCCESS;
  }
  if (failure.function == nullptr || function != failure.function) return CL_SUCCESS;
  if (failure.happened) return failure.then_all ? failure.status : CL_SUCCESS;
  if (--failure.left > 0) return CL_SUCCESS;
  failure.happened = true;
  return failure.status;
}

// Only how many there are: there is nothing to list, and the API refuses to.
bool is_empty(std::string_view function, cl_uint* found) {
  if (empty_function == nullptr || function != empty_function || found == nullptr) return false;
  *found = 0;
  return true;
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void count(std::int64_t& of, std::int64_t by) {
  const std::lock_guard lock(mutex);
  of += by;
}

void add_queue(cl_command_queue queue) {
  count(objects.queues, 1);
  live_queues.push_back(queue);
}
void remove_queue(cl_command_queue queue) {
  count(objects.queues, -1);
  const auto found = std::find(live_queues.begin(), live_queues.end(), queue);
  if (found != live_queues.end()) live_queues.erase(found);
}

// What an enqueuing call's event adds.
void count_event(cl_int status, const cl_event* event) {
  if (status == CL_SUCCESS && event != nullptr) count(objects.events, 1);
}

}  // namespace

const ApiCalls& api_calls() { return calls; }
void reset_api_calls() {
  calls = {};
  device_buffers.clear();
}
const ApiObjects& api_objects() { return objects; }
std::ostream& operator<<(std::ostream& out, const ApiObjects& seen) {
  return out << seen.memories << " memories, " << seen.queues << " queues, " << seen.contexts << " contexts, "
             << seen.events << " events";
}

FailingCall::FailingCall(const char* function, cl_int status, std::uint64_t n, bool then_all) {
  failure = {function, status, n, false, then_all};
}
FailingCall::~FailingCall() { failure = {}; }
bool FailingCall::happened() const { return failure.happened; }

LosingDevice::LosingDevice(cl_int status, std::uint64_t n) { loss = {status, n, 0}; }
LosingDevice::~LosingDevice() { loss = {}; }
bool LosingDevice::happened() const { return loss.left == 0; }
std::uint64_t LosingDevice::refused_calls() const { return loss.refused; }

PretendedDeviceValue::PretendedDeviceValue(cl_device_info what, cl_ulong value) : what_(what) {
  device_answers[what] = bytes_of(value);
}
PretendedDeviceValue::PretendedDeviceValue(cl_device_info what, const std::string& text) : what_(what) {
  device_answers[what] = text + '\0';
}
PretendedDeviceValue::~PretendedDeviceValue() { device_answers.erase(what_); }

EmptyAnswer::EmptyAnswer(const char* function) { empty_function = function; }
EmptyAnswer::~EmptyAnswer() { empty_function = nullptr; }

LateNews::LateNews() { said_of_complete = CL_RUNNING; }
LateNews::~LateNews() { said_of_complete = CL_COMPLETE; }

EagerWrites::EagerWrites() : vendor_(CL_DEVICE_VENDOR, "NVIDIA Corporation") { eager_writes = true; }
EagerWrites::~EagerWrites() {
  eager_writes = false;
  taken_bytes.clear();
}

BadNews::BadNews(cl_int status) { said_of_complete = status; }
BadNews::~BadNews() { said_of_complete = CL_COMPLETE; }

PretendedTimes::PretendedTimes(std::vector<cl_ulong> answers) {
  std::reverse(answers.begin(), answers.end());
  times = std::move(answers);
}
PretendedTimes::~PretendedTimes() { times.clear(); }

}  // namespace swapmm::test

// NOLINTBEGIN(readability-identifier-naming, readability-inconsistent-declaration-parameter-name): the API's names
using swapmm::test::add_queue;
using swapmm::test::calls;
using swapmm::test::count;
using swapmm::test::count_event;
using swapmm::test::device_answers;
using swapmm::test::device_buffers;
using swapmm::test::eager_writes;
using swapmm::test::gate;
using swapmm::test::is_empty;
using swapmm::test::is_mapped;
using swapmm::test::mapped_bytes;
using swapmm::test::mapped_mutex;
using swapmm::test::next;
using swapmm::test::objects;
using swapmm::test::remove_queue;
using swapmm::test::said_of_complete;
using swapmm::test::sub_buffers;
using swapmm::test::taken_bytes;
using swapmm::test::times;

#define NEXT(function) static const auto real = next<decltype(&function)>(#function)
#define FAIL_AS_PLANNED(function)                                      \
  if (const cl_int planned = gate(#function); planned != CL_SUCCESS) { \
    if (status != nullptr) *status = planned;                          \
    return nullptr;                                                    \
  }
#define RETURN_AS_PLANNED(function) \
  if (const cl_int planned = gate(#function); planned != CL_SUCCESS) return planned

extern "C" {

cl_int clGetPlatformIDs(cl_uint entries, cl_platform_id* platforms, cl_uint* found) {
  NEXT(clGetPlatformIDs);
  RETURN_AS_PLANNED(clGetPlatformIDs);
  if (is_empty("clGetPlatformIDs", found)) return CL_SUCCESS;
  return real(entries, platforms, found);
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint entries, cl_device_id* devices,
                      cl_uint* found) {
  NEXT(clGetDeviceIDs);
  RETURN_AS_PLANNED(clGetDeviceIDs);
  if (is_empty("clGetDeviceIDs", found)) return CL_SUCCESS;
  return real(platform, type, entries, devices, found);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void* value, size_t* needed) {
  NEXT(clGetDeviceInfo);
  RETURN_AS_PLANNED(clGetDeviceInfo);
  const auto answer = device_answers.find(what);
  if (answer == device_answers.end()) return real(device, what, size, value, needed);
  // Of a number those bytes that the question has room for: it is small enough.
  if (value != nullptr) std::memcpy(value, answer->second.data(), std::min(size, answer->second.size()));
  if (needed != nullptr) *needed = answer->second.size();
  return CL_SUCCESS;
}

cl_context clCreateContext(const cl_context_properties* properties, cl_uint count_of, const cl_device_id* devices,
                           void(CL_CALLBACK* notify)(const char*, const void*, size_t, void*), void* user,
                           cl_int* status) {
  NEXT(clCreateContext);
  FAIL_AS_PLANNED(clCreateContext);
  const cl_context made = real(properties, count_of, devices, notify, user, status);
  if (made != nullptr) count(objects.contexts, 1);
  return made;
}
cl_int clRetainContext(cl_context context) {
  NEXT(clRetainContext);
  count(objects.contexts, 1);
  return real(context);
}
cl_int clReleaseContext(cl_context context) {
  NEXT(clReleaseContext);
  count(objects.contexts, -1);
  return real(context);
}

cl_int clGetContextInfo(cl_context context, cl_context_info what, size_t size, void* value, size_t* needed) {
  NEXT(clGetContextInfo);
  RETURN_AS_PLANNED(clGetContextInfo);
  return real(context, what, size, value, needed);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                      cl_int* status) {
  NEXT(clCreateCommandQueue);
  FAIL_AS_PLANNED(clCreateCommandQueue);
  const cl_command_queue made = real(context, device, properties, status);
  if (made != nullptr) {
    ++calls.queues_made;
    add_queue(made);
  }
  return made;
}
cl_int clRetainCommandQueue(cl_command_queue queue) {
  NEXT(clRetainCommandQueue);
  add_queue(queue);
  return real(queue);
}
cl_int clReleaseCommandQueue(cl_command_queue queue) {
  NEXT(clReleaseCommandQueue);
  remove_queue(queue);
  return real(queue);
}

cl_int clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info what, size_t size, void* value,
                             size_t* needed) {
  NEXT(clGetCommandQueueInfo);
  RETURN_AS_PLANNED(clGetCommandQueueInfo);
  return real(queue, what, size, value, needed);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* status) {
  NEXT(clCreateBuffer);
  FAIL_AS_PLANNED(clCreateBuffer);
  const cl_mem made = real(context, flags, size, host, status);
  if (made != nullptr) {
    ++calls.buffers_made;
    ((flags & CL_MEM_ALLOC_HOST_PTR) != 0 ? calls.host_bytes : calls.device_bytes) += size;
    if ((flags & CL_MEM_ALLOC_HOST_PTR) == 0) device_buffers.add(made, size);
    count(objects.memories, 1);
  }
  return made;
}
cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* info,
                         cl_int* status) {
  NEXT(clCreateSubBuffer);
  FAIL_AS_PLANNED(clCreateSubBuffer);
  const cl_mem made = real(buffer, flags, type, info, status);
  if (made != nullptr) {
    ++calls.sub_buffers_made;
    sub_buffers.add(made, buffer, *static_cast<const cl_buffer_region*>(info));
    count(objects.memories, 1);
  }
  return made;
}
cl_int clRetainMemObject(cl_mem memory) {
  NEXT(clRetainMemObject);
  count(objects.memories, 1);
  return real(memory);
}
cl_int clReleaseMemObject(cl_mem memory) {
  NEXT(clReleaseMemObject);
  device_buffers.remove(memory);
  sub_buffers.remove(memory);
  count(objects.memories, -1);
  return real(memory);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count_of, const char** sources, const size_t* lengths,
                                     cl_int* status) {
  NEXT(clCreateProgramWithSource);
  FAIL_AS_PLANNED(clCreateProgramWithSource);
  return real(context, count_of, sources, lengths, status);
}

void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                         size_t size, cl_uint waits, const cl_event* list, cl_event* event, cl_int* status) {
  NEXT(clEnqueueMapBuffer);
  FAIL_AS_PLANNED(clEnqueueMapBuffer);
  void* const mapped = real(queue, buffer, blocking, flags, offset, size, waits, list, event, status);
  if (mapped == nullptr) return nullptr;
  const std::lock_guard lock(mapped_mutex);
  mapped_bytes[static_cast<const std::byte*>(mapped)] = size;
  return mapped;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory, void* mapped, cl_uint waits, const cl_event* list,
                               cl_event* event) {
  NEXT(clEnqueueUnmapMemObject);
  const cl_int planned = gate("clEnqueueUnmapMemObject");
  {
    const std::lock_guard lock(mapped_mutex);
    mapped_bytes.erase(static_cast<const std::byte*>(mapped));
  }
  const cl_int status = real(queue, memory, mapped, waits, list, event);
  if (planned != CL_SUCCESS) next<decltype(&clFinish)>("clFinish")(queue);
  if (planned != CL_SUCCESS) return planned;
  count_event(status, event);
  return status;
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void* pattern, size_t pattern_size,
                           size_t offset, size_t size, cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueFillBuffer);
  RETURN_AS_PLANNED(clEnqueueFillBuffer);
  const cl_int status = real(queue, buffer, pattern, pattern_size, offset, size, waits, list, event);
  count_event(status, event);
  return status;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint waits, const cl_event* list,
                              cl_event* event) {
  NEXT(clEnqueueNDRangeKernel);
  RETURN_AS_PLANNED(clEnqueueNDRangeKernel);
  ++calls.kernels;
  const cl_int status = real(queue, kernel, dimensions, offset, global, local, waits, list, event);
  count_event(status, event);
  return status;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                            const void* from, cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueWriteBuffer);
  RETURN_AS_PLANNED(clEnqueueWriteBuffer);
  ++calls.writes;
  if (eager_writes && blocking == CL_FALSE && !is_mapped(from, size)) {
    const auto* const bytes = static_cast<const std::byte*>(from);
    from = taken_bytes.emplace_back(bytes, bytes + size).data();
  }
  const cl_int status = real(queue, buffer, blocking, offset, size, from, waits, list, event);
  count_event(status, event);
  return status;
}
cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
                           void* to, cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueReadBuffer);
  RETURN_AS_PLANNED(clEnqueueReadBuffer);
  ++calls.reads;
  const cl_int status = real(queue, buffer, blocking, offset, size, to, waits, list, event);
  count_event(status, event);
  return status;
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                           size_t size, cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueCopyBuffer);
  RETURN_AS_PLANNED(clEnqueueCopyBuffer);
  const cl_int status = real(queue, from, to, from_offset, to_offset, size, waits, list, event);
  count_event(status, event);
  return status;
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueMarkerWithWaitList);
  RETURN_AS_PLANNED(clEnqueueMarkerWithWaitList);
  ++calls.markers;
  const cl_int status = real(queue, waits, list, event);
  count_event(status, event);
  return status;
}
cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event) {
  NEXT(clEnqueueBarrierWithWaitList);
  RETURN_AS_PLANNED(clEnqueueBarrierWithWaitList);
  ++calls.barriers;
  const cl_int status = real(queue, waits, list, event);
  count_event(status, event);
  return status;
}

cl_int clFlush(cl_command_queue queue) {
  NEXT(clFlush);
  RETURN_AS_PLANNED(clFlush);
  ++calls.flushes;
  return real(queue);
}
cl_int clFinish(cl_command_queue queue) {
  NEXT(clFinish);
  const cl_int planned = gate("clFinish");
  ++calls.finishes;
  const cl_int status = real(queue);
  return planned != CL_SUCCESS ? planned : status;
}
cl_int clWaitForEvents(cl_uint waits, const cl_event* list) {
  NEXT(clWaitForEvents);
  RETURN_AS_PLANNED(clWaitForEvents);
  ++calls.host_waits;
  return real(waits, list);
}
cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t size, void* value, size_t* needed) {
  NEXT(clGetEventInfo);
  RETURN_AS_PLANNED(clGetEventInfo);
  const cl_int status = real(event, what, size, value, needed);
  if (said_of_complete != CL_COMPLETE && status == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS &&
      value != nullptr && size == sizeof(cl_int) && *static_cast<cl_int*>(value) == CL_COMPLETE) {
    *static_cast<cl_int*>(value) = said_of_complete;
  }
  return status;
}
cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size, void* value, size_t* needed) {
  NEXT(clGetEventProfilingInfo);
  RETURN_AS_PLANNED(clGetEventProfilingInfo);
  if (!times.empty()) {
    *static_cast<cl_ulong*>(value) = times.back();
    times.pop_back();
    return CL_SUCCESS;
  }
  return real(event, what, size, value, needed);
}
cl_event clCreateUserEvent(cl_context context, cl_int* status) {
  NEXT(clCreateUserEvent);
  FAIL_AS_PLANNED(clCreateUserEvent);
  const cl_event made = real(context, status);
  if (made != nullptr) count(objects.events, 1);
  return made;
}
cl_int clRetainEvent(cl_event event) {
  NEXT(clRetainEvent);
  count(objects.events, 1);
  return real(event);
}
cl_int clReleaseEvent(cl_event event) {
  NEXT(clReleaseEvent);
  count(objects.events, -1);
  return real(event);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)
