// SPDX-License-Identifier: Apache-2.0
#include "nvidia.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace watch::nvidia {
namespace {

cl_icd_dispatch down{};

template <class T>
cl_int answer(const T& value, std::size_t room, void* to, std::size_t* needed) {
  if (to != nullptr && room < sizeof value) return CL_INVALID_VALUE;
  if (to != nullptr) std::memcpy(to, &value, sizeof value);
  if (needed != nullptr) *needed = sizeof value;
  return CL_SUCCESS;
}

cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, std::size_t room, void* value,
                               std::size_t* needed) {
  constexpr char vendor[] = "NVIDIA Corporation";
  switch (what) {
    case CL_DEVICE_VENDOR:
      if (value != nullptr && room < sizeof vendor) return CL_INVALID_VALUE;
      if (value != nullptr) std::memcpy(value, vendor, sizeof vendor);
      if (needed != nullptr) *needed = sizeof vendor;
      return CL_SUCCESS;
    case CL_DEVICE_TYPE: return answer<cl_device_type>(CL_DEVICE_TYPE_GPU, room, value, needed);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: return answer<cl_bool>(CL_FALSE, room, value, needed);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return answer<cl_uint>(512 * 8, room, value, needed);
    default: return down.clGetDeviceInfo(device, what, room, value, needed);
  }
}

// ---- what commands keep

struct Kept {
  std::mutex mutex;
  std::map<cl_command_queue, std::set<cl_mem>> of_queues;
  std::map<cl_kernel, std::map<cl_uint, cl_mem>> arguments;  // that may be memory
  std::set<cl_mem> live;                                     // buffers and their parts
};

Kept& kept() {
  static auto& all = *new Kept;
  return all;
}

void made(cl_mem object) {
  const std::lock_guard lock(kept().mutex);
  kept().live.insert(object);
}

// Called before the command is queued.
void keep(cl_command_queue queue, std::initializer_list<cl_mem> objects) {
  const std::lock_guard lock(kept().mutex);
  for (const cl_mem object : objects) {
    if (kept().live.contains(object) && kept().of_queues[queue].insert(object).second) down.clRetainMemObject(object);
  }
}

void let_go(cl_command_queue queue) {
  std::set<cl_mem> gone;
  {
    const std::lock_guard lock(kept().mutex);
    gone.swap(kept().of_queues[queue]);
  }
  for (const cl_mem object : gone) down.clReleaseMemObject(object);
}

cl_int CL_API_CALL finish(cl_command_queue queue) {
  const cl_int status = down.clFinish(queue);
  let_go(queue);
  return status;
}

cl_int CL_API_CALL release_queue(cl_command_queue queue) {
  cl_uint references = 0;
  (void)down.clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof references, &references, nullptr);
  if (references == 1) (void)finish(queue);
  return down.clReleaseCommandQueue(queue);
}

cl_mem CL_API_CALL buffer(cl_context context, cl_mem_flags flags, std::size_t bytes, void* host, cl_int* error) {
  constexpr cl_mem_flags both = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  if ((flags & both) == both) flags &= ~cl_mem_flags{CL_MEM_COPY_HOST_PTR};
  const cl_mem object = down.clCreateBuffer(context, flags, bytes, host, error);
  if (object != nullptr) made(object);
  return object;
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, std::size_t bytes, const void* value) {
  cl_mem object = nullptr;
  if (value != nullptr && bytes == sizeof object) std::memcpy(&object, value, bytes);
  {
    const std::lock_guard lock(kept().mutex);
    kept().arguments[kernel][index] = object;
  }
  return down.clSetKernelArg(kernel, index, bytes, value);
}

cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
                          const std::size_t* global, const std::size_t* local, cl_uint count, const cl_event* waits,
                          cl_event* event) {
  std::map<cl_uint, cl_mem> arguments;
  {
    const std::lock_guard lock(kept().mutex);
    arguments = kept().arguments[kernel];
  }
  for (const auto& [index, object] : arguments) keep(queue, {object});
  return down.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, count, waits, event);
}

bool has_hole(cl_uint count, const cl_event* waits) {
  return waits != nullptr && std::find(waits, waits + count, nullptr) != waits + count;
}

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem object, cl_bool blocking, std::size_t offset,
                               std::size_t bytes, void* to, cl_uint count, const cl_event* waits, cl_event* event) {
  if (has_hole(count, waits)) return CL_INVALID_EVENT;
  keep(queue, {object});
  return down.clEnqueueReadBuffer(queue, object, blocking, offset, bytes, to, count, waits, event);
}

cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to, std::size_t from_offset,
                               std::size_t to_offset, std::size_t bytes, cl_uint count, const cl_event* waits,
                               cl_event* event) {
  keep(queue, {from, to});
  return down.clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, bytes, count, waits, event);
}

cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem object, const void* pattern, std::size_t pattern_bytes,
                               std::size_t offset, std::size_t bytes, cl_uint count, const cl_event* waits,
                               cl_event* event) {
  if (has_hole(count, waits)) return CL_INVALID_EVENT;
  keep(queue, {object});
  return down.clEnqueueFillBuffer(queue, object, pattern, pattern_bytes, offset, bytes, count, waits, event);
}

// ---- writes

/// Memory that the driver has mapped: it is page-locked.
class Mapped {
 public:
  void add(const void* begin, std::size_t size) {
    const std::lock_guard lock(mutex_);
    std::size_t& known = all_[static_cast<const std::byte*>(begin)];
    known = std::max(known, size);
  }
  [[nodiscard]] bool has(const void* begin, std::size_t size) {
    const std::lock_guard lock(mutex_);
    const auto* const at = static_cast<const std::byte*>(begin);
    const auto behind = all_.upper_bound(at);
    if (behind == all_.begin()) return false;
    const auto& [start, length] = *std::prev(behind);
    return at + size <= start + length;
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, std::size_t> all_;
};

Mapped& mapped() {
  static auto& all = *new Mapped;
  return all;
}

void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem object, cl_bool blocking, cl_map_flags flags,
                             std::size_t offset, std::size_t bytes, cl_uint count, const cl_event* waits,
                             cl_event* event, cl_int* error) {
  if (bytes == 0) {
    if (error != nullptr) *error = CL_SUCCESS;
    return nullptr;
  }
  void* const at = down.clEnqueueMapBuffer(queue, object, blocking, flags, offset, bytes, count, waits, event, error);
  if (at != nullptr) mapped().add(at, bytes);
  return at;
}

cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem object, void* address, cl_uint count, const cl_event* waits,
                         cl_event* event) {
  if (address == nullptr && event == nullptr) return CL_SUCCESS;
  return down.clEnqueueUnmapMemObject(queue, object, address, count, waits, event);
}

using Bytes = std::vector<std::byte>;

// With such an event the driver was not seen to take them early.
bool waits_for_the_program(cl_uint count, const cl_event* waits) {
  return waits != nullptr && std::any_of(waits, waits + count, [](cl_event event) {
           cl_command_type type = 0;
           cl_int status = CL_COMPLETE;
           (void)down.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr);
           (void)down.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
           return type == CL_COMMAND_USER && status > CL_COMPLETE;
         });
}

// Calls write(from, event) with the bytes as they are now, which stay until the command has ended.
template <class Write>
cl_int write_now(const void* from, std::size_t size, bool late, cl_event* event, Write&& write) {
  if (late || from == nullptr || size == 0 || mapped().has(from, size)) return write(from, event);
  const auto* const first = static_cast<const std::byte*>(from);
  auto taken = std::make_unique<Bytes>(first, first + size);
  cl_event done = nullptr;
  const cl_int status = write(taken->data(), &done);
  if (status != CL_SUCCESS) return status;
  const auto ended = [](cl_event, cl_int, void* data) { delete static_cast<Bytes*>(data); };
  if (down.clSetEventCallback(done, CL_COMPLETE, ended, taken.get()) == CL_SUCCESS) (void)taken.release();
  if (event != nullptr) {
    *event = done;
  } else {
    down.clReleaseEvent(done);
  }
  return CL_SUCCESS;
}

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem object, cl_bool blocking, std::size_t offset,
                                std::size_t bytes, const void* from, cl_uint count, const cl_event* waits,
                                cl_event* event) {
  keep(queue, {object});
  const bool late = blocking != CL_FALSE || waits_for_the_program(count, waits);
  return write_now(from, bytes, late, event, [&](const void* taken, cl_event* done) {
    return down.clEnqueueWriteBuffer(queue, object, blocking, offset, bytes, taken, count, waits, done);
  });
}

cl_int CL_API_CALL write_rect(cl_command_queue queue, cl_mem object, cl_bool blocking, const std::size_t* origin,
                              const std::size_t* host_origin, const std::size_t* region, std::size_t row,
                              std::size_t slice, std::size_t host_row, std::size_t host_slice, const void* from,
                              cl_uint count, const cl_event* waits, cl_event* event) {
  const std::size_t own_row = host_row != 0 ? host_row : region[0];
  const std::size_t own_slice = host_slice != 0 ? host_slice : own_row * region[1];
  const std::size_t size = (host_origin[2] + region[2] - 1) * own_slice + (host_origin[1] + region[1] - 1) * own_row +
                           host_origin[0] + region[0];
  const bool late = blocking != CL_FALSE || waits_for_the_program(count, waits);
  return write_now(from, size, late, event, [&](const void* taken, cl_event* done) {
    return down.clEnqueueWriteBufferRect(queue, object, blocking, origin, host_origin, region, row, slice, host_row,
                                         host_slice, taken, count, waits, done);
  });
}

// ---- programs

bool asks_for_arguments(const char* options) {
  return options != nullptr && std::strstr(options, "-cl-kernel-arg-info") != nullptr;
}

cl_int CL_API_CALL build(cl_program program, cl_uint count, const cl_device_id* devices, const char* options,
                         void(CL_CALLBACK* notify)(cl_program, void*), void* data) {
  std::size_t size = 0;
  (void)down.clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, nullptr, &size);
  std::string source(size, ' ');
  (void)down.clGetProgramInfo(program, CL_PROGRAM_SOURCE, size, source.data(), nullptr);
  static const std::regex without_arguments("kernel\\s+void\\s+\\w+\\s*\\(\\s*\\)");
  if (asks_for_arguments(options) && std::regex_search(source, without_arguments)) return CL_BUILD_PROGRAM_FAILURE;
  return down.clBuildProgram(program, count, devices, options, notify, data);
}

cl_int CL_API_CALL argument_info(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what, std::size_t room,
                                 void* value, std::size_t* needed) {
  cl_program program = nullptr;
  cl_device_id device = nullptr;
  (void)down.clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, nullptr);
  (void)down.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device, nullptr);
  std::size_t size = 0;
  (void)down.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, 0, nullptr, &size);
  std::string options(size, '\0');
  (void)down.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, size, options.data(), nullptr);
  if (!asks_for_arguments(options.c_str())) return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
  return down.clGetKernelArgInfo(kernel, index, what, room, value, needed);
}

// ---- parts of buffers

struct Part {
  cl_mem object;
  cl_mem root;
  std::size_t begin;
  std::size_t size;
};

struct Parts {
  std::mutex mutex;
  std::vector<Part> all;  // in the order in which they were made
};

Parts& parts() {
  static auto& known = *new Parts;
  return known;
}
std::atomic<std::uint64_t> out_of_order{0};

cl_mem CL_API_CALL sub_buffer(cl_mem root, cl_mem_flags flags, cl_buffer_create_type type, const void* region,
                              cl_int* error) {
  const auto* const place = static_cast<const cl_buffer_region*>(region);
  if (type == CL_BUFFER_CREATE_TYPE_REGION && place != nullptr && place->origin % 512 != 0) {
    if (error != nullptr) *error = CL_MISALIGNED_SUB_BUFFER_OFFSET;
    return nullptr;
  }
  const cl_mem made = down.clCreateSubBuffer(root, flags, type, region, error);
  if (made == nullptr) return nullptr;
  nvidia::made(made);
  const std::lock_guard lock(parts().mutex);
  parts().all.push_back({made, root, place->origin, place->size});
  return made;
}

cl_int CL_API_CALL release(cl_mem object) {
  {
    const std::lock_guard lock(parts().mutex);
    auto& all = parts().all;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Part& part) { return part.object == object; });
    if (found != all.end()) {
      const bool too_early = std::any_of(std::next(found), all.end(), [&](const Part& later) {
        return later.root == found->root && later.begin < found->begin + found->size &&
               found->begin < later.begin + later.size;
      });
      if (too_early) ++out_of_order;
      all.erase(found);
    }
  }
  {
    const std::lock_guard lock(kept().mutex);
    cl_uint references = 0;
    (void)down.clGetMemObjectInfo(object, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr);
    if (references == 1) kept().live.erase(object);
  }
  return down.clReleaseMemObject(object);
}

}  // namespace

void pretend(cl_icd_dispatch& table, const cl_icd_dispatch& below) {
  down = below;
  table.clGetDeviceInfo = device_info;
  table.clFinish = finish;
  table.clReleaseCommandQueue = release_queue;
  table.clCreateBuffer = buffer;
  table.clSetKernelArg = set_argument;
  table.clEnqueueNDRangeKernel = launch;
  table.clEnqueueReadBuffer = read_buffer;
  table.clEnqueueCopyBuffer = copy_buffer;
  table.clEnqueueFillBuffer = fill_buffer;
  table.clEnqueueMapBuffer = map_buffer;
  table.clEnqueueUnmapMemObject = unmap;
  table.clEnqueueWriteBuffer = write_buffer;
  table.clEnqueueWriteBufferRect = write_rect;
  table.clBuildProgram = build;
  table.clGetKernelArgInfo = argument_info;
  table.clCreateSubBuffer = sub_buffer;
  table.clReleaseMemObject = release;
}

std::uint64_t parts_released_out_of_order() { return out_of_order; }

}  // namespace watch::nvidia
